#!/usr/bin/env python3
"""One of two ranks of a C trial ends before its time: its log says who, where and what to do; the trial restarts, or is done."""
import json
import os
import signal
import socket
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, alive, processes_with, wait_until  # noqa: E402
from test_bad_input import CONFIG, write_trial  # noqa: E402

TWO = {**CONFIG, "max_restarts": 1, "resources": {"slots_per_trial": 2}}


# A thread that waits for input holds its stream's lock, which exit()'s flush of all streams asks for.
READER = """#include <pthread.h>
#include <signal.h>
static int ends[2];
static FILE *asked;
static void *reader(void *arg) { char line[8]; return fgets(line, sizeof line, asked); }
static void exit_while_reading(void)
{
    pthread_t t;
    if (pipe(ends) < 0 || !(asked = fdopen(ends[0], "r")) || pthread_create(&t, NULL, reader, NULL) != 0)
        _exit(9);
    while (ftrylockfile(asked) == 0)
        funlockfile(asked);
    printf("said before");
    exit(4);
}
"""


def in_batch_3(rank, what):
    return f"if (batch_idx == 3 && det_trial_rank(ctx) == {rank}) {{ {what} }}"


def ended(c, state, config=TWO, **code):
    """The trial, its log, and the steps of the checkpoints that it has left."""
    with tempfile.TemporaryDirectory() as d:
        write_trial(d, **code)
        exp = c.create(json.dumps(config), d)
    c.wait(exp, state, 60)
    trial = c.trials(exp)[0]
    wait_until(lambda: not c.processes(exp) and c.slots_free(), 15, "the end of the task")
    steps = c.sql(f"SELECT steps FROM checkpoints WHERE trial_id={trial['id']} AND state='COMPLETED' ORDER BY steps")
    return trial, c.logs(trial["id"]), steps.split()


def check_failures(c):
    """Whatever the rank does, the run failed by it, and was tried again once."""
    hurts = [
        ("volatile int *p = NULL; *p = 1;", "SIGSEGV", "was killed by signal 11"),
        ("abort();", "SIGABRT", "was killed by signal 6"),
        ("exit(3);", "the trial called exit(3) in train_batch, batch 3", "exited with code"),
        ("exit_while_reading();", "the trial called exit(4) in train_batch, batch 3", "said before", "exited with code 4"),
        ("_exit(0);", "batch 3", "had ended before, with code 0"),
        ("kill(getpid(), SIGKILL);", "was killed by signal 9", "for want of memory"),
        ('det_trial_fail(ctx, "I give up");', "I give up", "exited with code 1"),
    ]
    for i, (hurt, *words) in enumerate(hurts):
        trial, log, _ = ended(c, "STATE_ERROR", top=READER, train=in_batch_3(i % 2, hurt))
        for w in words:
            assert w in log, f"{hurt}: {w!r} is not in {log}"
        assert trial["restarts"] == 1 and trial["totalBatchesProcessed"] < 20, (hurt, trial)


def check_invalid(c):
    """By either rank: what was trained is saved, and nothing is tried again."""
    for rank in (0, 1):
        trial, log, steps = ended(c, "STATE_COMPLETED", train=in_batch_3(rank, 'det_trial_invalid_hp(ctx, "lr is silly");'))
        assert steps == ["3"] and trial["restarts"] == 0, (steps, trial, log)
        assert "lr is silly" in log and "ERROR" not in log, log


def check_storage(c):
    """A place that takes no checkpoints is named before anything is trained."""
    for place, words in (("/proc/nowhere", "that folder cannot be made"), ("/dev/null", "a part of that path is a file")):
        storage = {"checkpoint_storage": {"type": "shared_fs", "host_path": place}}
        trial, log, _ = ended(c, "STATE_ERROR", config={**TWO, **storage})
        assert place in log and words in log and trial["totalBatchesProcessed"] == 0, (trial, log)


def rank_of(c, exp, rank):
    found = processes_with(f"DET_EXPERIMENT_ID={exp}\0", f"DET_CACHE_DIR={c.path('cache')}\0", f"\0RANK={rank}\0")
    assert len(found) == 1, found
    return found[0]


def kill_unseen(c, exp):
    """Rank 1; det-task gets no processor until the other one, which is the elder, has failed by it."""
    killed, other = (rank_of(c, exp, rank) for rank in (1, 0))
    with open(f"/proc/{killed}/stat") as f:
        task = int(f.read().rpartition(")")[2].split()[1])
    os.kill(task, signal.SIGSTOP)
    try:
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not alive(other), 60, "rank 0 to end")
    finally:
        os.kill(task, signal.SIGCONT)


def check_kill(c):
    """kill -9 of a rank while the other is in a collective: the other ends at once, and the second run does the work."""
    with tempfile.TemporaryDirectory() as d:
        mark = os.path.join(d, "once")
        os.chmod(d, 0o777)
        wait = f'if (batch_idx == 3 && det_trial_rank(ctx) == 1 && access("{mark}", F_OK) != 0) {{ FILE *f = fopen("{mark}", "w"); if (f) for (fclose(f);;) sleep(1); det_trial_fail(ctx, "{mark}: %m"); }}'
        write_trial(d, train=wait)
        exp = c.create(json.dumps(TWO), d)
        wait_until(lambda: os.path.exists(mark) or any(t["state"] == "STATE_ERROR" for t in c.trials(exp)), 60, "rank 1 in batch 3")
        assert os.path.exists(mark), c.logs(c.trials(exp)[0]["id"])
        kill_unseen(c, exp)
        c.wait(exp, "STATE_COMPLETED", 60)
        trial = c.trials(exp)[0]
        log = c.logs(trial["id"])
        assert trial["restarts"] == 1 and trial["totalBatchesProcessed"] == 20, trial
        assert "rank 1 was killed by signal 9" in log, log


def check_port(c):
    """Another program of the host listens where the ranks are told to meet: they meet elsewhere."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = f"C10D_PORT={other.getsockname()[1]}"
        config = {**TWO, "environment": {"environment_variables": [port]}}
        trial, log, _ = ended(c, "STATE_COMPLETED", config=config)
    assert trial["restarts"] == 0 and port.replace("=", " ") + " by " in log, (trial, log)


def main():
    with Cluster(agents=1, slots=2) as c:
        check_failures(c)
        check_invalid(c)
        check_storage(c)
        check_kill(c)
        check_port(c)


if __name__ == "__main__":
    main()
