#!/usr/bin/env python3
"""Row 16: a trial runs out of descriptors, of memory, or of processes: only it dies, with its reason in its log; the trial
beside it, the agent and the master do not notice.
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402

PROGRAMS = {  # name: (program, what its log has)
    "descriptors": ("import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))\nwhile True:\n    os.pipe()\n",
                    "Too many open files"),
    "memory": ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))\nx = []\nwhile True:\n    x.append(bytearray(1 << 20))\n",
               "MemoryError"),
    "processes": ("import os, resource, time\nif os.getuid() == 0:\n    os.setuid(65533)\nresource.setrlimit(resource.RLIMIT_NPROC, (60, 60))\n"
                  "while True:\n    if os.fork() == 0:\n        time.sleep(1000)\n", "Resource temporarily unavailable"),
}
GOOD = {"name": "neighbour", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
        "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
        "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 1000000}},
        "scheduling_unit": 100}


def run_round(row, c, name, neighbour):
    program, says = PROGRAMS[name]
    config = {"name": name, "entrypoint": ["python3", "run.py"], "max_restarts": 0,
              "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}
    had = len(c.metrics(neighbour))
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "run.py"), "w") as f:
            f.write(program)
        exp = c.create(json.dumps(config), d)
    row.fault(name)
    c.wait(exp, "STATE_ERROR", 120)
    trial = c.trials(exp)[0]["id"]
    wait_until(lambda: says in c.logs(trial), 20, f"'{says}' in the log")
    wait_until(lambda: not c.processes(exp), 10, "its processes to be gone")
    wait_until(lambda: len(c.metrics(neighbour)) > had, 60, "the neighbour's next batches")
    for daemon in ("master", "agent-0"):
        row.check(c.procs[daemon].poll() is None, f"{daemon} ended")


def main():
    row = Row(16, __doc__, rounds=len(PROGRAMS), rounds_all=10 * len(PROGRAMS))
    with Cluster(agents=1, slots=2) as c:
        exp = c.create(json.dumps(GOOD), "examples/digits")
        neighbour = wait_until(lambda: c.trials(exp), 30, "the neighbour")[0]["id"]
        wait_until(lambda: c.metrics(neighbour), 60, "its first batches")
        for n in row.numbers():
            row.attempt(n, run_round, row, c, list(PROGRAMS)[n % len(PROGRAMS)], neighbour)
        row.check(c.sql(f"SELECT run_id FROM trials WHERE id={neighbour}") == "1", "the neighbour was started again")
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
