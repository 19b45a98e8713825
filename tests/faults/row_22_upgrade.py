#!/usr/bin/env python3
"""Row 22: an upgrade under a running trial: master and agent are replaced, in turn, by a program of another path.

The master ends in an orderly way and another one starts (a standby takes over at once: --all), then the agent. The trial
trains on in the same processes, every row arrives; how long nobody served is printed. That the schema moves forward from
every version with rows in it is tests/integration/test_master_migrate.py, that the protocol before this one is taken row 19.
"""
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cluster  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from masters import start_standby, wait_serving  # noqa: E402
from ports import free_port  # noqa: E402
from training import Training  # noqa: E402


def other_path(c, n):
    """The installed programs at a path of their own, as a new version is."""
    to = c.path(f"bin-{n}")
    os.makedirs(to)
    os.chmod(to, 0o755)
    for name in ("det-master", "det-agent", "det-task", "det-harness", "det"):
        shutil.copy(os.path.join(cluster.BIN, name), to)
    for name in ("include", "lib"):
        old = os.path.join(cluster.BIN, "..", name)
        if os.path.isdir(old) and not os.path.exists(c.path(name)):
            os.symlink(os.path.realpath(old), c.path(name))
    return to


def run_round(row, c, n):
    t, before = Training(c, row), cluster.BIN
    cluster.BIN = other_path(c, n)
    begun = time.monotonic()
    c.stop("master", signal.SIGTERM)
    c.start_master()
    wait_serving(c, c.port)
    row.fault(f"master replaced in {time.monotonic() - begun:.2f} s")
    t.goes_on()
    c.stop("agent-0", signal.SIGTERM)
    c.start_agent(0)
    c.wait_agents(1)
    row.fault("agent replaced")
    t.goes_on()
    second = start_standby(c, port=c.more_port)
    begun, first = time.monotonic(), c.port
    c.stop("master", signal.SIGTERM)
    c.port = second
    wait_serving(c, second)
    row.fault(f"standby took over in {time.monotonic() - begun:.2f} s")
    t.goes_on()
    start_standby(c, "master", first)
    c.stop("standby", signal.SIGTERM)
    c.port = first
    wait_serving(c, first)
    wait_until(lambda: c.procs["agent-0"].poll() is None, 1, "the agent to live")
    t.end()
    cluster.BIN = before


def main():
    row = Row(22, __doc__, rounds=1, rounds_all=10)
    with Cluster(agents=0, slots=2) as c:
        c.more_port = free_port()
        c.more_masters = [f"http://127.0.0.1:{c.more_port}"]
        c.start_agent(0)
        c.n_agents = 1
        c.wait_agents(1)
        for n in row.numbers():
            row.attempt(n, run_round, row, c, n)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
