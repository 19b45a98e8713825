#!/usr/bin/env python3
"""memory: the master's resident memory with 10,000 live trials and 1,000 agents, and what each costs.

usage: bench/run memory [--running N]
1,000 agents of 8 slots (tests/lib/herd.py, in one process) with their order streams open, one random search of 10,000
trials of one slot: 8,000 run, 2,000 wait. Every running trial holds a preemption long poll of 60 s on a connection of its
own, as a rank does. bytes_per_* are the growth of the master's memory from one stage to the next, over their number.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from herd import Herd  # noqa: E402
from size import emit, rss_mb  # noqa: E402

AGENTS = int(os.environ.get("DET_BENCH_AGENTS", "1000"))
TRIALS = int(os.environ.get("DET_BENCH_TRIALS", "10000"))
SLOTS = 8
CONFIG = {"name": "memory", "entrypoint": ["sleep", "1000"], "max_restarts": 0, "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
          "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 1}, "max_trials": TRIALS, "max_concurrent_trials": TRIALS}}


def live(c):
    return int(c.sql("SELECT count(*) FROM trials WHERE state = 'ACTIVE'"))


def stage(c, what, before, n):
    now = rss_mb(c.pid("master"))
    print(f"{what}: {now:.1f} MB, {(now - before) * 1048576 / n:.0f} bytes each of {n}", file=sys.stderr)
    return now


def main():
    running = min(AGENTS * SLOTS, TRIALS)
    with Cluster(agents=0) as c:
        idle = rss_mb(c.pid("master"))
        print(f"idle: {idle:.1f} MB", file=sys.stderr)
        with Herd(c, agents=AGENTS, slots=SLOTS, polls=False) as h:
            h.wait(120, agents=AGENTS)
            agents = stage(c, "agents", idle, AGENTS)
            exp = c.create(json.dumps(CONFIG), None)
            h.wait(300, tasks=running)
            wait_until(lambda: live(c) == TRIALS, 60, "the trials")
            trials = stage(c, "trials", agents, TRIALS)
            c.api("POST", f"/experiments/{exp}/kill")
            h.wait(300, exits=running)
        c.wait(exp, "STATE_CANCELED", 300)
        with Herd(c, agents=AGENTS, slots=SLOTS, polls=True) as h:
            h.wait(120, agents=AGENTS)
            c.create(json.dumps(CONFIG), None)
            h.wait(300, tasks=running, polls=running)
            whole = stage(c, "polls", trials, running)
    emit2 = lambda f, v, u: emit(f, v, u, "memory")  # noqa: E731
    emit2("master_rss", round(whole, 1), "MB")
    emit2("bytes_per_agent", round((agents - idle) * 1048576 / AGENTS), "bytes")
    emit2("bytes_per_trial", round((trials - agents) * 1048576 / TRIALS), "bytes")
    emit2("bytes_per_long_poll", round((whole - trials) * 1048576 / running), "bytes")


if __name__ == "__main__":
    main()
