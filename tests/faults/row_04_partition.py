#!/usr/bin/env python3
"""Row 4: the network between agent and master is gone, one way or both, for 5 s (--all: 60 s too), and past the lease.

Where this user may make network namespaces the agent and its tasks live in one, and packets are dropped by routes; else
the suite's own TCP proxy stands between, and stalls. Shorter than the lease: the same processes train on, every metric
row arrives, nothing is restarted. Past it: the trial runs again elsewhere in time, once, and the old run's reports are
refused (no row of the old run is newer than the end of its lease; the rows that count are whole).
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, Cluster, wait_until  # noqa: E402
from faults import Row, hold, is_root  # noqa: E402
from net import Namespace  # noqa: E402
from proxy import Proxy  # noqa: E402
from training import Training  # noqa: E402

WAYS = ("both", "up", "down")


class ByProxy:
    """The same three faults without privileges."""
    how = "proxy"

    def __init__(self, c):
        self.p = Proxy(("127.0.0.1", c.port))

    def argv(self):
        return []

    def url(self, port):
        return f"http://127.0.0.1:{self.p.port}"

    def part(self, way):
        self.p.stall(*(["up", "down"] if way == "both" else [way]))

    def heal(self):
        self.p.flow()

    def close(self):
        self.p.close()


def start_agent(c, net, name="agent-0"):
    c.spawn(name, [*net.argv(), BIN + "/det-agent", "--master", net.url(c.port), "--token-file", c.path("agent.token"), "--id", name,
                   "--slots", "1", "--work-dir", c.path(name), "--task-user", ""])
    c.wait_agents(1)


def through(row, c, net, way, seconds):
    """Shorter than the lease."""
    t = Training(c, row)
    t.ranks = ranks(c, t.exp)
    net.part(way)
    row.fault(f"{net.how}: {way} {seconds} s")
    hold(seconds)
    row.check(ranks(c, t.exp) == t.ranks, f"{way} {seconds} s: the processes changed while cut off")
    net.heal()
    t.same = lambda: ranks(c, t.exp) == t.ranks
    t.end()


def past(row, c, net, seconds):
    """The lease ends: the trial is queued again; when the agent is back its old processes end, and a new run completes."""
    t = Training(c, row)
    run = c.sql(f"SELECT max(run_id) FROM trials WHERE experiment_id={t.exp}")
    net.part("both")
    row.fault(f"{net.how}: past the lease")
    wait_until(lambda: c.sql(f"SELECT max(run_id) FROM trials WHERE experiment_id={t.exp}") != run or
               c.sql(f"SELECT count(*) FROM allocations WHERE experiment_id={t.exp} AND state='TERMINATED'") == "1", 60 + seconds, "the lease to end")
    rows = c.sql(f"SELECT count(*) FROM metrics m JOIN trials t ON t.id=m.trial_id WHERE t.experiment_id={t.exp}")
    old = ranks(c, t.exp)
    net.heal()
    wait_until(lambda: not set(ranks(c, t.exp)) & set(old), 60, "the old run's processes to end")
    wait_until(lambda: c.sql(f"SELECT max(run_id) FROM trials WHERE experiment_id={t.exp}") != run, 60, "the next run")
    stale = f"SELECT count(*) FROM metrics m JOIN trials t ON t.id=m.trial_id WHERE t.experiment_id={t.exp} AND m.run_id={run}"
    row.check(int(c.sql(stale)) <= int(rows), "the old run wrote after its lease")
    t.end(restarts=t.trial()["restarts"], replaced=True)


def ranks(c, exp):
    return sorted(c.processes(exp))


def run_round(row, c, net, n):
    for way in WAYS if row.all else ["both", row.rng.choice(["up", "down"])]:
        through(row, c, net, way, 5)
    if row.all:
        through(row, c, net, WAYS[n % 3], 60)
    c.stop("agent-0")
    restart_with_lease(c, 4)
    start_agent(c, net)
    past(row, c, net, 4)
    restart_with_lease(c, 120)
    c.wait_agents(1)


def restart_with_lease(c, seconds):
    c.stop("master")
    c.master_args = [a for a in c.master_args if a not in ("--agent-reconnect-wait", "4", "120")] + ["--agent-reconnect-wait", str(seconds)]
    c.start_master()


def main():
    row = Row(4, __doc__, rounds=1, rounds_all=8)
    usable = is_root() and Namespace.is_possible()
    if not usable:
        print("row 04: no network namespaces here: by the suite's own TCP proxy", flush=True)
    args = ["--agent-reconnect-wait", "120"] + (["--host", "0.0.0.0", "--insecure"] if usable else [])
    with Cluster(agents=0, master_args=args) as c:
        net = Namespace() if usable else ByProxy(c)
        try:
            c.n_agents = 1
            start_agent(c, net)
            for n in row.numbers():
                row.attempt(n, run_round, row, c, net, n)
        finally:
            c.end_tasks()
            c.stop("agent-0")
            net.close()
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
