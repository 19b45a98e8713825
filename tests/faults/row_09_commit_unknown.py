#!/usr/bin/env python3
"""Row 9: the connection to PostgreSQL is cut around a COMMIT: before it was sent, after, at its answer, at any byte.

A trial trains and a client creates experiments while the suite's own proxy cuts the master's connections. Every
acknowledged experiment must be there exactly once (each is asked for until it is acknowledged), the metric rows must be
those of an undisturbed run, and the trial must not have been restarted.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clerk import Clerk  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from proxy import Proxy  # noqa: E402
from training import Training  # noqa: E402

SYNC = b"S\0\0\0\x04"  # ends a transaction of the pipeline
MODES = ("begin", "before", "sent", "answer", "up", "down")
CUTS = 20  # a round


def arm(row, p, mode):
    if mode == "begin":
        p.cut_before(b"begin_batch")
    elif mode == "before":
        p.cut_on("up", SYNC, before=True)
    elif mode == "sent":
        p.cut_on("up", SYNC)
    elif mode == "answer":
        p.cut_on("down", b"begin_batch", before=True)
    else:
        p.cut_after(mode, row.rng.randint(1, 4000))


def wait_written(c, k, n):
    try:
        wait_until(lambda: len(k.acked) > n or c.procs["master"].poll() is not None, 60, "an acknowledgement after the cut")
    except AssertionError as e:
        raise AssertionError(f"{e} ({k})") from e
    assert c.procs["master"].poll() is None, f"the master ended with {c.procs['master'].returncode}"


def run_round(row, c, p, n):
    t = Training(c, row)
    with Clerk(c, f"r{n}") as k:
        for i in range(CUTS):
            mode = MODES[i % len(MODES)]
            p.linger_s = row.rng.choice([0, 0.01, 0.1])
            before, acked = p.cuts, len(k.acked)
            arm(row, p, mode)
            wait_until(lambda: p.cuts > before, 30, f"the cut ({mode})")
            row.fault(mode)
            wait_written(c, k, acked)
    row.check(not k.verdict(True), k.verdict(True))
    t.end()
    row.check(c.procs["master"].poll() is None, "the master ended")


def main():
    row = Row(9, __doc__, rounds=1, rounds_all=40)
    with Cluster(agents=0) as c:
        p = Proxy(c.path("pg-socket", ".s.PGSQL.5432"))
        c.stop("master")
        c.master_args += ["--db", f"host=127.0.0.1 port={p.port} user=det dbname=det sslmode=disable gssencmode=disable"]
        c.start_master()
        c.start_agent()
        c.n_agents = 1
        c.wait_agents(1)
        for n in row.numbers():
            row.attempt(n, run_round, row, c, p, n)
        p.close()
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
