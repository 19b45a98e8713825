#!/usr/bin/env python3
"""stacks: how long until a person sees in which of their own lines a trial stands.

usage: bench/run stacks [--rounds N]
The trial is a Python program with torch loaded and a few threads, which waits in train.py for what never comes. `ms`: from
`det trial stacks ID`, a new process, until it has printed the line of train.py; `all_ms`: until it ends, with the stacks of
all threads in Python and in C. `verdict_ms`: a trial that is found to hang, from the verdict in its log to that line.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import BIN, Cluster, wait_until  # noqa: E402
from size import emit  # noqa: E402

LIMIT_MS = 1000
PROGRAM = """\
import os
import threading

import determined
import torch


def alive():
    with open(os.environ["DET_PROGRESS_FILE"], "r+b") as f:
        f.write((0x31474F5250544544).to_bytes(8, "little") + (7).to_bytes(8, "little") + (1).to_bytes(8, "little") + (1).to_bytes(4, "little"))


def wait_for_ever(event):
    event.wait()


event = threading.Event()
for _ in range(3):
    threading.Thread(target=wait_for_ever, args=(event,), daemon=True).start()
torch.ones(64, 64) @ torch.ones(64, 64)
print("begun", flush=True)
alive()
wait_for_ever(event)
"""
LINE = "is at train.py, line "


def create(c, stall_timeout):
    config = {"name": "stacks", "entrypoint": ["/usr/bin/python3", "train.py"], "max_restarts": 0, "stall_timeout": stall_timeout,
              "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}, "hyperparameters": {}}
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "train.py"), "w") as f:
            f.write(PROGRAM)
        exp = c.create(json.dumps(config), d)
    trial = wait_until(lambda: c.trials(exp), 60, "the trial")[0]["id"]
    wait_until(lambda: "|| begun" in c.logs(trial), 120, "its first line")
    return exp, trial


def ask(c, trial):
    """Milliseconds until the user's line, and until all is told."""
    env = {**os.environ, **c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"),
           "XDG_CONFIG_HOME": c.path("config")}
    line_ms, begun = None, time.monotonic()
    with subprocess.Popen([BIN + "/det", "trial", "stacks", str(trial)], stdout=subprocess.PIPE, text=True, env=env) as p:
        for line in p.stdout:
            if LINE in line and line_ms is None:
                line_ms = (time.monotonic() - begun) * 1000
    if p.returncode or line_ms is None:
        raise SystemExit(f"stacks: det ended with {p.returncode}, and the line of train.py was {'not ' if line_ms is None else ''}there")
    return line_ms, (time.monotonic() - begun) * 1000


def verdict(c):
    """Milliseconds in the log of a trial that hangs, from the verdict to the user's line."""
    exp, trial = create(c, 2)
    c.wait(exp, state="STATE_ERROR")
    wait_until(lambda: LINE in c.logs(trial), 60, "the line of train.py")
    at = {}
    for line in c.logs(trial).splitlines():
        for what in ("stalled: no batch", LINE):
            if what in line:
                at.setdefault(what, datetime.datetime.strptime(line[1:27], "%Y-%m-%dT%H:%M:%S.%f"))
    return (at[LINE] - at["stalled: no batch"]).total_seconds() * 1000


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=5)
    a = ap.parse_args()
    with Cluster(agents=1, slots=1) as c:
        exp, trial = create(c, 0)
        asked = [ask(c, trial) for _ in range(a.rounds)]
        c.api("POST", f"/experiments/{exp}/kill")
        c.wait(exp, state="STATE_CANCELED")
        judged = [verdict(c) for _ in range(a.rounds)]
    for figure, took in (("ms", [line for line, _ in asked]), ("all_ms", [all_of for _, all_of in asked]), ("verdict_ms", judged)):
        print(f"{figure}: {[round(t) for t in took]}", file=sys.stderr)
        if figure == "all_ms":
            emit(figure, round(statistics.median(took)), "ms", "stacks")
            continue
        value = round(statistics.median(took), 1)
        print(json.dumps({"bench": "stacks", "figure": figure, "value": value, "unit": "ms", "peer": "limit", "peer_value": LIMIT_MS,
                          "ratio": round(LIMIT_MS / value, 2)}), flush=True)


if __name__ == "__main__":
    main()
