#!/usr/bin/env python3
"""memory: the master's resident memory with 10,000 live trials and 1,000 agents, and what each costs.

usage: bench/run memory
1,000 agents of 4 slots (tests/lib/herd.py, in one process) with their order streams open, one random search of 10,000
trials of one slot: 4,000 run, 6,000 wait. Every running trial holds a preemption long poll of 60 s on a connection of its
own, as a rank does. bytes_per_* are the growth of the master's memory from one stage to the next, over their number:
that of a trial has its share of the long polls.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from herd import Herd  # noqa: E402
from size import emit, rss_mb  # noqa: E402

AGENTS = int(os.environ.get("DET_BENCH_AGENTS", "1000"))
TRIALS = int(os.environ.get("DET_BENCH_TRIALS", "10000"))
SLOTS = 4
CONFIG = {"name": "memory", "entrypoint": ["sleep", "1000"], "max_restarts": 0, "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
          "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 1}, "max_trials": TRIALS, "max_concurrent_trials": TRIALS}}


def live(c):
    return int(c.sql("SELECT count(*) FROM trials WHERE state = 'ACTIVE'"))


def settled(pid):
    """Resident MB, once it has stopped to change."""
    seen = [rss_mb(pid)]
    while len(seen) < 4 or max(seen[-4:]) - min(seen[-4:]) > 0.5:
        time.sleep(0.7)
        seen.append(rss_mb(pid))
    return seen[-1]


def stage(c, what, before, n):
    now = settled(c.pid("master"))
    print(f"{what}: {now:.1f} MB" + (f", {(now - before) * 1048576 / n:.0f} bytes for each of {n}" if n else ""), file=sys.stderr)
    return now


def main():
    running = min(AGENTS * SLOTS, TRIALS)
    with Cluster(agents=0) as c:
        idle = stage(c, "idle", 0, 0)
        with Herd(c, agents=AGENTS, slots=SLOTS, polls=True) as h:
            h.wait(120, agents=AGENTS)
            agents = stage(c, "with agents", idle, AGENTS)
            c.create(json.dumps(CONFIG), None)
            h.wait(400, tasks=running, polls=running)
            wait_until(lambda: live(c) == TRIALS, 60, "the trials")
            whole = stage(c, "with trials and long polls", agents, TRIALS)
    emit("master_rss", round(whole, 1), "MB", "memory")
    emit("bytes_per_agent", round((agents - idle) * 1048576 / AGENTS), "bytes", "memory")
    emit("bytes_per_trial", round((whole - agents) * 1048576 / TRIALS), "bytes", "memory")


if __name__ == "__main__":
    main()
