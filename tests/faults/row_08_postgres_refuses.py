#!/usr/bin/env python3
"""Row 8: PostgreSQL ends sessions at random, holds locks for 4 s (--all: 60 s), has no connection left, is read-only, hangs.

Meanwhile the master answers (200 or 503) in bounded time, also what was asked just before, keeps its leadership, and goes on afterwards; what was
acknowledged is there exactly once, and the trial notices nothing.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clerk import Clerk  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row, hold  # noqa: E402
from masters import Frozen, Session, epoch, get  # noqa: E402
from training import Training  # noqa: E402

ANSWER_S = 20  # on a machine that does other things too; the master's own limits are 2 s for a lock, 3 s for a hang


def answers(row, c, what):
    status = get(c.port, "/api/v1/experiments?limit=1", c.token, timeout=ANSWER_S)[0]
    row.check(status in (200, 503), f"{what}: the API answered {status or 'nothing'} within {ANSWER_S} s")


def lasting(row, c, what):
    for _ in range(4 if row.all else 2):
        hold(15 if row.all else 2)
        answers(row, c, what)


def end_sessions(row, c):
    for _ in range(10):
        c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='det' AND pid<>pg_backend_pid() ORDER BY random() LIMIT 1")
        answers(row, c, "ended sessions")


def locks(row, c):
    for table in ("metrics", "experiments", "task_logs"):
        s = Session(c, f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        lasting(row, c, f"{table} locked")
        s.close()


def full(row, c):
    """The master's sessions are ended while nobody can connect."""
    held = []
    while not held or held[-1].held:
        held.append(Session(c, "SELECT 1"))
        if len(held) > 120:
            break
    lasting(row, c, "no connection left")
    for s in held:
        s.close()


def read_only(row, c):
    c.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    c.sql("SELECT pg_reload_conf()")
    lasting(row, c, "read-only")
    c.sql("ALTER SYSTEM RESET default_transaction_read_only")
    c.sql("SELECT pg_reload_conf()")


def hang(row, c):
    with Frozen(c):
        answers(row, c, "a PostgreSQL that hangs now")  # asked before the hang can be noticed
        lasting(row, c, "a PostgreSQL that hangs")
        hold(10)  # the clerk's request, too, must have been answered by now


FAULTS = (end_sessions, locks, full, read_only, hang)


def run_round(row, c, n):
    t, before = Training(c, row), epoch(c)
    with Clerk(c, f"r{n}") as k:
        for fault in FAULTS:
            acked, k.slowest_s = len(k.acked), 0
            fault(row, c)
            row.fault(fault.__name__)
            wait_until(lambda: len(k.acked) > acked, 90, f"an acknowledgement after {fault.__name__}")
            row.check(k.slowest_s < ANSWER_S, f"{fault.__name__}: a creation was answered after {k.slowest_s:.0f} s")
    row.check(not k.verdict(True), k.verdict(True))
    row.check(epoch(c) == before, "the leadership changed")
    t.end()
    row.check(c.procs["master"].poll() is None and c.procs["agent-0"].poll() is None, "master or agent ended")


def main():
    row = Row(8, __doc__, rounds=1, rounds_all=5)
    with Cluster(agents=1, slots=2) as c:
        for n in row.numbers():
            row.attempt(n, run_round, row, c, n)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
