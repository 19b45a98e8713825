#!/usr/bin/env python3
"""Row 18: a thundering herd: 100 agents with 800 running trials (--all: 1,000 and 8,000 of 10,000) come back at once.

The master is killed and started again, and PostgreSQL crashes under them. Every task is known again, none is ended or
restarted, and from its start on the master answers the API meanwhile, within 20 s at the worst (a bound for a loaded
machine: a promise broken by queues without bound, not a figure). How long it took is printed; bench/run failover measures it.
"""
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from herd import Herd  # noqa: E402
from masters import get  # noqa: E402

SLOTS = 8
ANSWER_S = 20


def config(trials):
    return json.dumps({"name": "herd", "entrypoint": ["sleep", "1000"], "max_restarts": 0, "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
                       "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 1}, "max_trials": trials, "max_concurrent_trials": trials}})


class Caller(threading.Thread):
    """Asks the API again and again; what it saw is its worst."""

    def __init__(self, c, exp):
        super().__init__(daemon=True)
        self.c, self.exp, self.worst_s, self.calls, self.stopping = c, exp, 0, 0, threading.Event()
        self.start()

    def run(self):
        while not self.stopping.wait(0.1):
            begun = time.monotonic()
            status = get(self.c.port, f"/api/v1/experiments/{self.exp}", self.c.token, timeout=60)[0]
            if status:
                self.calls += 1
                self.worst_s = max(self.worst_s, time.monotonic() - begun)

    def end(self):
        self.stopping.set()
        self.join(90)


def back(row, c, h, exp, agents, hellos, begun, what):
    n, caller = agents * SLOTS, Caller(c, exp)
    h.wait(180, hellos=hellos + agents, agents=agents)
    known = f"SELECT count(*) FROM allocations WHERE experiment_id={exp} AND state='RUNNING'"
    wait_until(lambda: c.sql(known) == str(n), 180, "every task to be known")
    caller.end()
    print(f"row 18: {what}: all back after {time.monotonic() - begun:.1f} s, {caller.calls} calls meanwhile, the slowest {caller.worst_s:.2f} s", flush=True)
    row.check(caller.calls and caller.worst_s < ANSWER_S, f"{what}: {caller.calls} calls, the slowest took {caller.worst_s:.0f} s")
    row.check(h.state["exits"] == 0, f"{what}: {h.state['exits']} tasks were ended")
    row.check(h.state["tasks"] == n, f"{what}: {h.state['tasks']} of {n} tasks run")
    row.check(c.sql(f"SELECT max(run_id) FROM trials WHERE experiment_id={exp}") == "1", f"{what}: trials were started again")
    row.check(get(c.port, "/api/v1/me", c.token, timeout=30)[0] == 200, f"{what}: the API does not answer")


def run_round(row, c, agents, trials):
    with Herd(c, agents=agents, slots=SLOTS) as h:
        h.wait(120, agents=agents)
        exp = c.create(config(trials), None)
        h.wait(300, tasks=agents * SLOTS)
        hellos, begun = h.state["hellos"], time.monotonic()
        c.stop("master", signal.SIGKILL)
        row.fault("master killed")
        c.start_master()
        back(row, c, h, exp, agents, hellos, begun, "master killed")
        c.stop("pg", signal.SIGQUIT)
        row.fault("PostgreSQL crashed")
        c.start_pg()
        c.api_patiently("POST", f"/experiments/{exp}/pause", {})
        c.api_patiently("POST", f"/experiments/{exp}/kill")
        h.wait(300, exits=agents * SLOTS)
    c.wait(exp, "STATE_CANCELED", 300)


def main():
    row = Row(18, __doc__, rounds=1, rounds_all=3)
    agents, trials = (1000, 10000) if row.all else (100, 800)
    with Cluster(agents=0, master_args=["--agent-reconnect-wait", "120"]) as c:
        for n in row.numbers():
            row.attempt(n, run_round, row, c, agents, trials)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
