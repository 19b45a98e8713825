#!/usr/bin/env python3
"""Row 7: PostgreSQL is stopped at once (as by a crash), restarted, and away for 5 s (--all: 60 s), while a trial trains.

What was acknowledged is there, exactly once; the metric rows are whole; the trial was not restarted, its processes are
the same, and it trained on while the database was away; neither master nor agent ended.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clerk import Clerk  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row, hold  # noqa: E402
from training import Training  # noqa: E402

KINDS = ("crash", "restart", "outage")


def strike(row, c, kind):
    """PostgreSQL's SIGQUIT is its immediate stop, SIGINT the fast one."""
    c.stop("pg", signal.SIGQUIT if kind == "crash" else signal.SIGINT)
    if kind == "outage":
        hold(60 if row.all else 5)
    c.start_pg()
    row.fault(kind)


def run_round(row, c, n):
    t = Training(c, row)
    with Clerk(c, f"r{n}") as k:
        for i in range(9 if row.all else 4):
            acked = len(k.acked)
            strike(row, c, KINDS[(i + row.rng.randint(0, 1)) % 2] if i else "outage")
            wait_until(lambda: len(k.acked) > acked, 60, "an acknowledgement after the fault")
    row.check(not k.verdict(True), k.verdict(True))
    t.end()
    row.check(c.procs["master"].poll() is None and c.procs["agent-0"].poll() is None, "master or agent ended")


def main():
    row = Row(7, __doc__, rounds=1, rounds_all=10)
    with Cluster(agents=1, slots=2) as c:
        for n in row.numbers():
            row.attempt(n, run_round, row, c, n)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
