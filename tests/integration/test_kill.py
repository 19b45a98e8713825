#!/usr/bin/env python3
"""Kill ends everything that a trial started, however it hides, whoever of our own is dead. usage: test_kill.py [NAME ...]"""
import json
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import KILL_MAX_S, Cluster, wait_until  # noqa: E402

# Ignores SIGTERM, new sessions, double forks, no environment, one holds standard output, one has let go of everything.
HIDER = r"""
import os, signal, sys, time
marker = sys.argv[1]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def hide(env, leave):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if leave:
                os.chdir("/")
                os.closerange(0, 64)
            os.execve("/bin/sleep", [marker, "1000"], env)
        os._exit(0)
hide(dict(os.environ), False)
hide({}, False)
hide({}, True)
print("hidden", flush=True)
time.sleep(1000)
"""


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def find(needle, start=False):
    """Living processes (a zombie has no command line) whose command line has, or begins with, needle."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
    return [p for p in pids if (cmdline(p).startswith(needle.encode()) if start else needle.encode() in cmdline(p))]


def sockets(pid):
    found = set()
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except FileNotFoundError:
        return found  # a process between fork and exec was taken for a hider, and has ended
    for fd in descriptors:
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass  # closed meanwhile
    return {name for name in found if name.startswith("socket:")}


class Hidden:
    """A trial of hiders that runs."""

    def __init__(self, c):
        self.c, self.marker = c, "hider-" + os.path.basename(c.dir)
        config = {"name": "hider", "entrypoint": ["python3", "hide.py", self.marker], "max_restarts": 0,
                  "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "hide.py"), "w") as f:
                f.write(HIDER)
            self.exp = c.create(json.dumps(config), d)
        wait_until(lambda: len(find(self.marker)) >= 4, 60, "the hiders")
        self.pids = find(self.marker)

    def task(self):
        return find("det-task\0" + self.c.path("agent-0"), start=True)[0]

    def kill(self):
        self.c.api("POST", f"/experiments/{self.exp}/kill")

    def left(self):
        return [p for p in self.pids if self.marker.encode() in cmdline(p)]

    def gone(self, began):
        wait_until(lambda: not self.left(), 20, "the end of every hider")
        took = time.monotonic() - began
        print(f"  gone after {took:.2f} s", flush=True)
        assert took < KILL_MAX_S, took

    def over(self):
        wait_until(lambda: self.c.experiment(self.exp)["state"] == "STATE_CANCELED", 30, "STATE_CANCELED")
        wait_until(self.c.slots_free, 10, "free slots")
        wait_until(lambda: not find(self.marker), 10, "no hider of a later run")


def test_plain(c):
    h = Hidden(c)
    began = time.monotonic()
    h.kill()
    h.gone(began)
    h.over()


def test_descriptors(c):
    """Nothing that speaks to the master is inherited: it could be used, and would outlive its owner."""
    h = Hidden(c)
    assert sockets(c.pid("agent-0")) and not sockets(h.task()) & sockets(c.pid("agent-0")), "of the agent in det-task"
    for pid in h.pids:
        assert not sockets(pid), f"{cmdline(pid)} has {sockets(pid)}"
    h.kill()
    h.over()


def test_task_killed(c):
    h = Hidden(c)
    began = time.monotonic()
    os.kill(h.task(), signal.SIGKILL)
    h.gone(began)
    h.kill()
    h.over()


def test_agent_killed(c):
    h = Hidden(c)
    c.stop("agent-0", signal.SIGKILL)
    h.kill()
    began = time.monotonic()
    c.start_agent()
    h.gone(began)
    h.over()


def test_both_killed(c):
    h = Hidden(c)
    task = h.task()
    c.stop("agent-0", signal.SIGKILL)
    os.kill(task, signal.SIGKILL)
    began = time.monotonic()
    c.start_agent()
    h.gone(began)
    h.kill()
    h.over()


def test_task_stopped(c):
    """A det-task that does nothing about a kill is ended from outside, with all that it looked after."""
    h = Hidden(c)
    os.kill(h.task(), signal.SIGSTOP)
    began = time.monotonic()
    h.kill()
    h.gone(began)
    h.over()


def main():
    names = sys.argv[1:] or [n[5:] for n in globals() if n.startswith("test_")]
    for name in names:
        with Cluster(agents=1, slots=1) as c:
            print(name, flush=True)
            globals()["test_" + name](c)
            print(f"ok   {name}", flush=True)


if __name__ == "__main__":
    main()
