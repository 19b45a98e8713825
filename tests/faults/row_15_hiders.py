#!/usr/bin/env python3
"""Row 15: tasks that do not want to end: each program below, as root's task, as a task of another user, and under an
agent that is not root. A kill (or, where the program itself ends, its end) leaves no process within 10 s and frees its slot.
"""
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, KILL_MAX_S, Cluster, wait_until  # noqa: E402
from faults import Row, is_root  # noqa: E402

# It says in its log which process groups it makes: whether one has a member left is one call, which nobody who forks
# meanwhile escapes (reading /proc misses who is replaced while it is read).
PROGRAM = r"""
import os, signal, sys, time
mode = sys.argv[1]
def say_group():
    os.write(1, b"group %d\n" % os.getpgrp())
def sleep(env=None):
    os.execve("/bin/sleep", ["sleep", "1000"], dict(os.environ) if env is None else env)
def child(then):
    pid = os.fork()
    if pid == 0:
        then()
        os._exit(0)
    return pid
def orphan(then):
    def middle():
        os.setsid()
        say_group()
        child(then)
    os.waitpid(child(middle), 0)
def apart(leave):
    r, w = os.pipe()
    child(lambda: (leave(), say_group(), os.close(w), sleep()))
    os.close(w)
    os.read(r, 1)  # ends once the child is apart
def closed():
    os.chdir("/")
    os.closerange(0, 256)
    sleep()
def hop():
    end = time.monotonic() + 120  # no chain outlives a failed test for long
    while time.monotonic() < end:  # a new process each time, its parent gone
        if os.fork():
            os._exit(0)
        time.sleep(.001)
say_group()
if mode == "ignores_sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif mode == "daemon":
    orphan(sleep)
elif mode == "new_session":
    apart(os.setsid)
elif mode == "new_group":
    apart(lambda: os.setpgid(0, 0))
elif mode == "no_environment":
    orphan(lambda: sleep({}))
elif mode == "closes_all":
    orphan(closed)
elif mode == "stops_itself":
    child(sleep)
    print("all hide", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
elif mode == "hops":
    orphan(hop)
elif mode == "many":
    for i in range(100):
        orphan(sleep)
elif mode in ("leaves_daemon", "leaves_holder"):  # the program itself ends; what it left holds its output, or nothing
    orphan(sleep if mode == "leaves_holder" else closed)
    print("all hide", flush=True)
    sys.exit(0)
print("all hide", flush=True)
time.sleep(1000)
"""
GROUPS = {"daemon": 2, "new_session": 2, "new_group": 2, "no_environment": 2, "closes_all": 2, "hops": 2, "many": 101,
          "leaves_daemon": 2, "leaves_holder": 2}
MODES = ("ignores_sigterm", "daemon", "new_session", "new_group", "no_environment", "closes_all", "stops_itself", "hops", "many",
         "leaves_daemon", "leaves_holder")


def left(groups):
    """Those of the process groups that still have a member."""
    def is_there(group):
        try:
            os.killpg(group, 0)
            return True
        except ProcessLookupError:
            return False
    return [g for g in groups if is_there(g)]


def end(groups):
    """Each at one stroke."""
    for g in left(groups):
        try:
            os.killpg(g, signal.SIGKILL)
        except ProcessLookupError:
            pass


def start(c, mode, pool):
    """The experiment whose task runs the program, and the program's process groups."""
    config = {"name": mode, "entrypoint": ["/usr/bin/python3", "hide.py", mode], "max_restarts": 0, "resources": {"resource_pool": pool},
              "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "hide.py"), "w") as f:
            f.write(PROGRAM)
        exp = c.create(json.dumps(config), d)
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    log = wait_until(lambda: (text := c.logs(trial)) and "all hide" in text and text, 60, "the program")
    return exp, [int(g) for g in re.findall(r"group (\d+)", log)]


def run_round(row, c, mode, pool):
    exp, groups = start(c, mode, pool)
    row.check(len(groups) == GROUPS.get(mode, 1), f"{mode} ({pool}): it said {len(groups)} groups")
    row.fault(f"{mode} ({pool})")
    begun = time.monotonic()
    try:
        if not mode.startswith("leaves_"):
            c.api_patiently("POST", f"/experiments/{exp}/kill")
        wait_until(lambda: not left(groups) and c.slots_free(), 40, "its end")
    finally:
        end(groups)
    took = time.monotonic() - begun
    row.check(took < KILL_MAX_S, f"{mode} ({pool}): it took {took:.1f} s")


def start_others(c):
    """A pool each for tasks of another user, and for an agent that is not root. Names of the pools."""
    if not is_root():
        return []
    nobody = pwd.getpwnam("nobody")
    plain = c.path("agent-plain")
    os.mkdir(plain, 0o700)
    os.chown(plain, nobody.pw_uid, nobody.pw_gid)
    token = c.path("plain.token")
    shutil.copy(c.path("agent.token"), token)
    os.chown(token, nobody.pw_uid, nobody.pw_gid)
    argv = [BIN + "/det-agent", "--master", f"http://127.0.0.1:{c.port}", "--slots", "1"]
    c.spawn("agent-user", [*argv, "--token-file", c.path("agent.token"), "--id", "user", "--pool", "user",
                           "--work-dir", c.path("agent-1"), "--task-user", "nobody"])
    c.spawn("agent-plain", [*argv, "--token-file", token, "--id", "plain", "--pool", "plain", "--work-dir", plain],
            user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    c.n_agents = 2
    c.wait_agents(3)
    return ["user", "plain"]


def end_plain(c):
    """Cluster ends the tasks of agents that it has started itself."""
    c.stop("agent-plain", signal.SIGKILL)
    subprocess.run([BIN + "/det-agent", "--work-dir", c.path("agent-plain"), "--end-tasks"], capture_output=True, timeout=60)


def main():
    row = Row(15, __doc__, rounds=len(MODES), rounds_all=15 * len(MODES))
    with Cluster(agents=1, slots=1) as c:
        pools = ["default", *start_others(c)]
        try:
            for n in row.numbers():
                pool = pools[(n + n // len(MODES)) % len(pools)]  # the long form gives every program every pool
                row.attempt(n, run_round, row, c, MODES[n % len(MODES)], pool)
        finally:
            if len(pools) > 1:
                end_plain(c)
            else:
                print("row 15: not root: only this user's own tasks were tested", flush=True)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
