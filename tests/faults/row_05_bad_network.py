#!/usr/bin/env python3
"""Row 5: a bad network between agent and master: slow (0.2 s each way), narrow (10 KB/s), stalling, and cut at random.

The suite's own TCP proxy stands between, for the agent and its trial alike; TCP hides lost and reordered packets, so
what 1, 10 and 30 % of loss look like from above are these: delays, stalls of seconds and connections that end. The
agent is never taken for dead, the trial trains on unharmed and its rows are whole, and what piles up meanwhile (the
agent's unsent events and log lines) is bounded and gone soon after.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, Cluster, wait_until  # noqa: E402
from faults import Row, hold  # noqa: E402
from proxy import Proxy  # noqa: E402
from training import Training  # noqa: E402

SPOOL_MAX = 64 << 20  # det-agent --log-mib


def start_agent(c, p):
    c.spawn("agent-0", [BIN + "/det-agent", "--master", f"http://127.0.0.1:{p.port}", "--token-file", c.path("agent.token"), "--id", "agent-0",
                        "--slots", "1", "--work-dir", c.path("agent-0"), "--task-user", ""])
    c.wait_agents(1)


def size_of(path):
    try:
        return os.path.getsize(path)
    except OSError:  # gone meanwhile
        return 0


def spooled(c):
    """Bytes of what waits on the agent's host."""
    return sum(size_of(os.path.join(d, f)) for d, _, files in os.walk(c.path("agent-0")) for f in files)


def slow(row, p, seconds):
    p.delay_s = 0.2
    hold(seconds)


def narrow(row, p, seconds):
    p.bytes_per_s = 10000
    hold(seconds)


def stalls(row, p, seconds):
    for _ in range(max(1, seconds // 4)):
        p.stall(*row.rng.choice([("up",), ("down",), ("up", "down")]))
        hold(row.rng.uniform(1, 3))
        p.flow()
        hold(1)


def cuts(row, p, seconds):
    p.delay_s = 0.05
    for _ in range(seconds):
        if row.rng.random() < 0.5:
            p.cut()
        else:
            p.cut_after(row.rng.choice(["up", "down"]), row.rng.randrange(1, 20000))
        hold(1)


FAULTS = (slow, narrow, stalls, cuts)


def run_round(row, c, p):
    t = Training(c, row)
    for fault in FAULTS:
        fault(row, p, 40 if row.all else 8)
        row.fault(fault.__name__)
        row.check(t.same(), f"{fault.__name__}: the trial's processes changed")
        row.check(spooled(c) < SPOOL_MAX, f"{fault.__name__}: {spooled(c)} bytes wait at the agent")
        p.mend()
        t.goes_on()
    t.end()
    kinds = c.timeline(t.trial()["id"])
    row.check(kinds.count("queued") == 1, f"the agent was taken for dead: {kinds}")
    row.check(c.procs["agent-0"].poll() is None and c.procs["master"].poll() is None, "master or agent ended")
    wait_until(c.slots_free, 20, "free slots")


def main():
    row = Row(5, __doc__, rounds=1, rounds_all=5)
    print("row 05: packets are not lost here but hidden by TCP: delays, stalls, narrowness and cuts stand for them", flush=True)
    with Cluster(agents=0) as c:
        p = Proxy(("127.0.0.1", c.port))
        try:
            c.n_agents = 1
            start_agent(c, p)
            for n in row.numbers():
                row.attempt(n, run_round, row, c, p)
        finally:
            c.end_tasks()
            c.stop("agent-0")
            p.close()
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
