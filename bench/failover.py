#!/usr/bin/env python3
"""failover: how long until a standby serves, and until a new leader has all its agents back.

usage: bench/run failover [--rounds N]
Two masters on one database. serving_s: from kill -9 (then: SIGSTOP) of the leader until a login succeeds at the standby,
the median of N rounds (and the worst). readopted_s: from the kill -9 of the only master, started again at once, until
1,000 agents with 8,000 running tasks (tests/lib/herd.py) are connected and every task is known again.
Peer: none does this on one machine; Slurm's backup controller is configured with SlurmctldTimeout, 120 s by default.
"""
import argparse
import json
import os
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from herd import Herd  # noqa: E402
from masters import start_standby, wait_serving  # noqa: E402
from size import emit  # noqa: E402

CONFIG = {"name": "failover", "entrypoint": ["sleep", "1000"], "max_restarts": 0, "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
          "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 1}}}


def change(c, name, port, sig):
    """Strikes the leader `name`; seconds until the master at port serves."""
    p = c.procs[name]
    p.send_signal(sig)
    took = wait_serving(c, port)
    if sig == signal.SIGSTOP:
        p.send_signal(signal.SIGCONT)
    p.wait(30)
    c.procs.pop(name)
    return took


def serving(rounds, sig):
    took = []
    with Cluster(agents=0) as c:
        c.login()
        leader, standby = ("master", c.port), ("standby", start_standby(c))
        for _ in range(rounds):
            took.append(change(c, leader[0], standby[1], sig))
            start_standby(c, leader[0], leader[1])
            leader, standby = standby, leader
    return took


def readopted(agents, slots):
    with Cluster(agents=0, master_args=["--agent-reconnect-wait", "120"]) as c:
        with Herd(c, agents=agents, slots=slots) as h:
            h.wait(120, agents=agents)
            n = agents * slots
            search = dict(CONFIG["searcher"], max_trials=n, max_concurrent_trials=n)
            exp = c.create(json.dumps(dict(CONFIG, searcher=search)), None)
            h.wait(300, tasks=n)
            hellos = h.state["hellos"]
            c.stop("master", signal.SIGKILL)
            begun = time.monotonic()
            c.start_master()
            up = time.monotonic() - begun
            h.wait(120, hellos=hellos + agents, agents=agents)
            known = f"SELECT count(*) FROM allocations WHERE experiment_id={exp} AND state='RUNNING'"
            wait_until(lambda: c.sql(known) == str(n), 120, "every task to be known")
            took = time.monotonic() - begun
            assert h.state["exits"] == 0, h.state
    print(f"{agents} agents, {n} tasks: master up after {up:.2f} s, all back after {took:.2f} s", file=sys.stderr)
    return took


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=5)
    a = ap.parse_args()
    for name, sig in (("serving_s_kill", signal.SIGKILL), ("serving_s_stop", signal.SIGSTOP)):
        took = serving(a.rounds, sig)
        print(f"{name}: {[round(t, 2) for t in took]}", file=sys.stderr)
        emit(name, round(statistics.median(took), 2), "s", "failover")
        emit(name + "_worst", round(max(took), 2), "s", "failover")
    emit("readopted_s", round(readopted(int(os.environ.get("DET_BENCH_AGENTS", "1000")), 8), 2), "s", "failover")


if __name__ == "__main__":
    main()
