#!/usr/bin/env python3
"""Row 27: two masters on two copies of one database: its files were copied, which nothing inside the database can tell.

An agent serves one of them: the other one refuses it and both say why. After `det-master new-life` the chosen master takes
the agent, ends what it ran for the other one, and the other one refuses it from then on. The numbers of one copy that
agents know of are not given out by the other one again.
"""
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import PG_BIN, Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from masters import new_life  # noqa: E402


class Copy(Cluster):
    """A second cluster of processes on a copy of another one's database."""

    def __init__(self, of):
        super().__init__(agents=0, slots=1)
        shutil.copytree(of.path("pg-data"), self.path("pg-data"))
        if os.getuid() == 0:
            own = os.stat(of.path("pg-data"))
            for root, dirs, files in os.walk(self.path("pg-data")):
                for name in [".", *dirs, *files]:
                    os.chown(os.path.join(root, name), own.st_uid, own.st_gid)
        shutil.copy(of.path("admin.password"), self.path("admin.password"))


def start(c):
    exp = paced.create(c, "examples/digits/const.yaml", 20, **{"epochs: 12": "epochs: 4000"})
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: c.metrics(trial), 90, "a row of metrics")
    return exp, trial


def said(path, text):
    with open(path, errors="replace") as f:
        return text in f.read()


def moved(c, to):
    """agent-0 of c, at the other master from now on."""
    c.stop("agent-0", signal.SIGTERM)
    mine, c.port = c.port, to.port
    open(c.path("agent-0.log"), "w").close()
    try:
        c.start_agent(0)
    finally:
        c.port = mine


def takes(c):
    """Whether the master of c has talked with an agent since its log was cut."""
    return said(c.path("master.log"), " connected")


def cut_log(c):
    open(c.path("master.log"), "w").close()


def is_refused(c, by):
    return said(c.path("agent-0.log"), "det-master new-life") and said(by.path("master.log"), "det-master new-life")


def run_round(row, a):
    start(a)
    a.stop("master", signal.SIGTERM)
    a.stop("pg", signal.SIGINT)
    with Copy(a) as b:
        row.fault("the database's files copied")
        a.start_pg()
        a.start_master()
        a.wait_agents(1)
        exp, trial = start_second(a)
        moved(a, b)
        wait_until(lambda: is_refused(a, b), 60, "the second master to refuse the agent")
        row.check(not takes(b), "the second master took an agent that served the first one since")
        b.stop("master", signal.SIGTERM)
        new_life(b)
        b.start_master()
        wait_until(lambda: takes(b), 60, "the chosen master to take the agent")
        row.fault("the copy was chosen")
        wait_until(lambda: not a.processes(exp), 60, "what ran for the first master to end")
        own = b.create("examples/digits/const.yaml", "examples/digits", activate=False)
        row.check(own > exp, f"experiment {own} was given out again: the agent knows of {exp}")
        cut_log(a)
        moved(a, a)
        wait_until(lambda: is_refused(a, a), 60, "the first master to refuse the agent that served the second")
        row.check(not takes(a), "the first master took the agent back")
        cut_log(b)
        moved(a, b)
        wait_until(lambda: takes(b), 60, "the agent to be back")


def start_second(c):
    """An experiment of which the copy does not know."""
    c.api("POST", "/experiments/1/kill")
    c.wait(1, "STATE_CANCELED")
    return start(c)


def main():
    row = Row(27, __doc__, rounds=1, rounds_all=5)
    if not PG_BIN:
        row.skip("no PostgreSQL")
    for n in row.numbers():
        with Cluster(agents=1, slots=1) as c:
            row.attempt(n, run_round, row, c)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
