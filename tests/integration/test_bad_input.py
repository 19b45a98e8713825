#!/usr/bin/env python3
"""Bad input gets a clear error: what was wrong, where, how to mend it. usage: test_bad_input.py api|trials"""
import base64
import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TERMINAL, ApiError, Cluster, wait_until  # noqa: E402
from gc_exp import settled  # noqa: E402

CONFIG = {"name": "bad", "entrypoint": "model_def:Bad", "max_restarts": 0, "hyperparameters": {"global_batch_size": 4},
          "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 20}}}



def refused(c, call, *words):
    try:
        call()
    except ApiError as e:
        for w in words:
            assert w in e.text, f"{w!r} is not in {e.text!r}"
        return e
    raise AssertionError(f"accepted; expected an error with {words}")


def post(c, config, files=()):
    text = config if isinstance(config, str) else json.dumps(config)
    return c.api("POST", "/experiments", {"config": text, "modelDefinition": list(files), "activate": False})


def entry(path, content=b"x", kind=48):
    return {"path": path, "type": kind, "content": base64.b64encode(content).decode(), "mtime": "0", "mode": 0o100644, "uid": 0, "gid": 0}


def raw(c, data, answer=True):
    """What the master answers to these bytes; with answer=False the client goes away at once."""
    with socket.create_connection(("127.0.0.1", c.port), 60) as s:
        s.sendall(data)
        got = b""
        while answer and (chunk := s.recv(65536)):
            got += chunk
        return got.decode(errors="replace")


def test_api():
    with Cluster(agents=1, slots=2) as c:
        refused(c, lambda: post(c, "name: [unclosed\nentrypoint: x\n"), "line")
        refused(c, lambda: post(c, {**CONFIG, "seracher": {}}), "seracher", "searcher")
        wrong = {**CONFIG, "max_restarts": "many", "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": -3}}}
        refused(c, lambda: post(c, wrong), "max_restarts", "searcher.max_length")  # all mistakes at once
        refused(c, lambda: post(c, {**CONFIG, "searcher": {"name": "adaptive", "metric": "loss", "max_length": {"batches": 3}, "max_trials": 4}}), "adaptive_asha")
        refused(c, lambda: post(c, CONFIG, [entry("../../etc/passwd")]), "..")
        typed = {**CONFIG, "entrypoint": "model_deff:X"}  # no run would find it, and each would be tried again
        refused(c, lambda: post(c, typed, [entry("model_def.py")]), "entrypoint model_deff:X: the directory has no model_deff.py", "did you mean model_def:X?")
        refused(c, lambda: post(c, CONFIG, [entry("/etc/passwd")]), "/etc/passwd")
        refused(c, lambda: c.api("GET", "/experiments/999999"), "not found")
        refused(c, lambda: c.api("GET", "/experiments/abc"))
        before = c.sql("SELECT count(*) FROM experiments")
        big = base64.b64encode(os.urandom(1 << 20)).decode()
        huge = [{**entry(f"blob{i}"), "content": big} for i in range(72)]
        e = refused(c, lambda: post(c, CONFIG, huge))
        assert e.status in (400, 413, 429), e
        # a wrong token; a body cut short; a body that is no JSON
        token, c.token = c.token, "nonsense"
        assert refused(c, lambda: c.request("GET", "/experiments")).status == 401
        c.token = token
        whole = json.dumps({"config": json.dumps(CONFIG), "modelDefinition": []})

        def said(length):
            return (f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
                    f"Content-Length: {length}\r\n\r\n")
        raw(c, (said(len(whole)) + whole[: len(whole) // 2]).encode(), answer=False)
        answer = raw(c, (said(7) + "{nope: ").encode())
        assert " 400 " in answer.splitlines()[0] and "line" in answer, answer
        assert c.sql("SELECT count(*) FROM experiments") == before


def write_trial(d, name="Bad", top="", create="", train=""):
    src = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_trial.c.in")).read()
    for key, value in (("@TOP@", top), ("@CREATE@", create), ("@TRAIN@", train), ("@NAME@", name)):
        src = src.replace(key, value)
    with open(os.path.join(d, "model_def.c"), "w") as f:
        f.write(src)


def run_trial(c, state="STATE_ERROR", config=None, **code):
    with tempfile.TemporaryDirectory() as d:
        write_trial(d, **code)
        exp = c.create(json.dumps({**CONFIG, **(config or {})}), d)
        c.wait(exp, state, 120)
        trial = c.trials(exp)[0]
        wait_until(lambda: not c.processes(exp) and c.slots_free(), 15, "the end of the task")
        return trial, c.logs(trial["id"])


def test_trials():
    with Cluster(agents=1, slots=1, master_args=["--stall-timeout", "5"]) as c:
        ok, log = run_trial(c, "STATE_COMPLETED")
        assert ok["totalBatchesProcessed"] == 20, ok
        _, log = run_trial(c, top="int broken(void) { return not_declared; }")
        assert "not_declared" in log and "model_def.c" in log and "failed; max_restarts is 0." in log, log
        _, log = run_trial(c, train="if (batch_idx == 3) { volatile int *p = NULL; *p = 1; }")
        assert "train_batch" in log and "batch 3" in log, log
        stalled, log = run_trial(c, train="if (batch_idx == 4) for (;;) sleep(1);")
        assert "stall" in log.lower() and "4" in log, log
        said = re.search(r"rank 0 is at (model_def.c, line \d+, in train_batch)\n", log) or ["", shutil.which("gdb") and "a line that is not told"]
        assert not said[1] or f"In the user's code: {said[1]}\n" in c.det("why", f"trial:{stalled['id']}").stdout, log
        _, log = run_trial(c, create='det_trial_invalid_hp(ctx, "no such learning rate");', state="STATE_COMPLETED")
        assert "no such learning rate" in log, log
        _, log = run_trial(c, create='det_hparam_f64(ctx, "optimizer.lr");')
        assert "optimizer.lr" in log, log


def resident(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) // 1024
    except (OSError, StopIteration):
        return 0  # it has just ended


def test_gigabyte():
    """A trial that prints 1 GB fills neither memory nor the database; the begin and the end of its log are kept."""
    with Cluster(agents=1, slots=1) as c:
        code = """if (batch_idx == 1) { static char line[8000]; memset(line, 120, sizeof line - 2); line[7998] = 10;
                  for (int i = 0; i < 131072; i++) fputs(line, stdout); fputs("the end of the gigabyte\\n", stdout); fflush(stdout); }"""
        with tempfile.TemporaryDirectory() as d:
            write_trial(d, train=code)
            exp = c.create(json.dumps(CONFIG), d)
            wait_until(lambda: c.trials(exp) and c.trials(exp)[0]["state"] == "STATE_RUNNING", 60, "running")
            most = {}

            def done():
                tasks = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_task_of(c, p)]
                for name, pid in [("master", c.pid("master")), ("agent", c.pid("agent-0"))] + [("det-task", p) for p in tasks]:
                    most[name] = max(most.get(name, 0), resident(pid))
                return c.experiment(exp)["state"] in ("STATE_COMPLETED", "STATE_ERROR")
            wait_until(done, 60, "the end of a chatty trial")
            assert c.experiment(exp)["state"] == "STATE_COMPLETED"
            limit = 300 if not os.environ.get("DET_SANITIZED") else 2000
            assert "det-task" in most and max(most.values()) < limit, f"MB resident: {most}"
            wait_until(lambda: "the end of the gigabyte" in c.sql("SELECT log FROM task_logs ORDER BY id DESC LIMIT 40"), 60, "the end of the log")
            assert c.sql("SELECT count(*) FROM task_logs WHERE log LIKE 'log truncated:%64 MiB%'") == "1"
            assert int(c.sql("SELECT sum(length(log)) FROM task_logs")) < 80 << 20


def is_task_of(c, pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().startswith(b"det-task\0" + c.path("agent-0").encode())
    except OSError:
        return False


def held_by_full_store(c, says, make_room):
    """A trial in a store without room: held, with the reason and the remedy in its log, by no fault of its own; COMPLETED once there is room."""
    with tempfile.TemporaryDirectory() as d:
        write_trial(d)
        exp = c.create(json.dumps(CONFIG), d)
        trial = wait_until(lambda: (c.trials(exp) or [None])[0], 60, "the trial")
        wait_until(lambda: all(text in c.logs(trial["id"]) for text in says), 60, f"{says} in the trial's log")
        assert c.experiment(exp)["state"] not in TERMINAL and not checkpoints_of(c, trial)
        batches = c.trials(exp)[0]["totalBatchesProcessed"]
        make_room()
        c.wait(exp, seconds=120)
        settled(c, exp)
        wait_until(lambda: not c.processes(exp) and c.slots_free(), 15, "the end of the task, which gives nothing back any more")
        trial = c.trials(exp)[0]
        assert trial["restarts"] == 0 and checkpoints_of(c, trial), trial
        return batches


def checkpoints_of(c, trial):
    return c.api("GET", f"/trials/{trial['id']}/checkpoints")["checkpoints"]


def fill(path):
    """A file of all the room that is left, at most 8 MiB."""
    with open(path, "wb", buffering=0) as f:
        try:
            while f.tell() < 8 << 20:
                f.write(bytes(4 << 10))
        except OSError as e:
            assert e.errno == errno.ENOSPC, e


def test_disk():
    """No space for a checkpoint: the trial is held, names the place and the remedy, and nothing half is registered. A disk that
    is full from the start is found before a batch is trained; one that is mounted read-only is away (test_stores.py)."""
    with Cluster(agents=1, slots=1) as c:
        small = c.path("checkpoints")
        filler = os.path.join(small, "filler")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k,mode=0777", "tmpfs", small], capture_output=True).returncode != 0:
            print("a small file system cannot be mounted here: skipped")
            sys.exit(77)
        try:
            says = ["No space left", small, "make room there", "checkpoint_storage"]
            held_by_full_store(c, says, lambda: subprocess.run(["mount", "-o", "remount,size=4m", small], check=True))
            fill(filler)
            batches = held_by_full_store(c, ["checkpoints cannot be kept", "make room there"], lambda: os.unlink(filler))
            assert batches == 0, batches
        finally:
            subprocess.run(["umount", "-l", small])


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
