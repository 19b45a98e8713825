#!/usr/bin/env python3
"""Row 15: tasks that do not want to end: each program below, as root's task, as a task of another user, and under an
agent that is not root. A kill (or, where the program itself ends, its end) leaves no process within 10 s and frees its slot.
"""
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, Cluster, wait_until  # noqa: E402
from faults import Row, is_root  # noqa: E402

# The marker is an argument of every process, so that each is found whatever it did to its environment.
PROGRAM = r"""
import os, signal, sys, time
mode, marker = sys.argv[1:3]
def sleep(env=None):
    os.execve("/bin/sleep", [marker, "1000"], dict(os.environ) if env is None else env)
def child(then):
    pid = os.fork()
    if pid == 0:
        then()
        os._exit(0)
    return pid
def orphan(then):
    def middle():
        os.setsid()
        child(then)
    os.waitpid(child(middle), 0)
def closed():
    os.chdir("/")
    os.closerange(0, 256)
    sleep()
def hop():
    for i in range(10**9):  # a new process each time, its parent gone
        if os.fork():
            os._exit(0)
        time.sleep(.001)
if mode == "ignores_sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif mode == "daemon":
    orphan(sleep)
elif mode == "new_session":
    child(lambda: (os.setsid(), sleep()))
elif mode == "new_group":
    child(lambda: (os.setpgid(0, 0), sleep()))
elif mode == "no_environment":
    orphan(lambda: sleep({}))
elif mode == "closes_all":
    orphan(closed)
elif mode == "stops_itself":
    child(sleep)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
elif mode == "hops":
    orphan(hop)
elif mode == "many":
    for i in range(100):
        orphan(sleep)
elif mode in ("leaves_daemon", "leaves_holder"):  # the program itself ends; what it left holds its output, or nothing
    orphan(sleep if mode == "leaves_holder" else closed)
    print("ready", flush=True)
    sys.exit(0)
print("ready", flush=True)
time.sleep(1000)
"""
MODES = ("ignores_sigterm", "daemon", "new_session", "new_group", "no_environment", "closes_all", "stops_itself", "hops", "many",
         "leaves_daemon", "leaves_holder")


def of_marker(marker):
    """Living processes with the marker on their command line."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/cmdline", "rb") as f:
                if marker.encode() in f.read().split(b"\0"):
                    found.append(int(p))
        except OSError:
            pass
    return found


def run_round(row, c, mode, pool):
    marker = f"hider-{os.path.basename(c.dir)}-{row.rounds}"
    config = {"name": mode, "entrypoint": ["/usr/bin/python3", "hide.py", mode, marker], "max_restarts": 0, "resources": {"resource_pool": pool},
              "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "hide.py"), "w") as f:
            f.write(PROGRAM)
        exp = c.create(json.dumps(config), d)
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: "ready" in c.logs(trial), 60, "the program")
    row.fault(f"{mode} ({pool})")
    begun = time.monotonic()
    if not mode.startswith("leaves_"):
        c.api_patiently("POST", f"/experiments/{exp}/kill")
    try:
        wait_until(lambda: not of_marker(marker) and c.slots_free(), 40, "its end")
    finally:
        for pid in of_marker(marker):
            os.kill(pid, signal.SIGKILL)
    took = time.monotonic() - begun
    row.check(took < 10 * SLOWER, f"{mode} ({pool}): it took {took:.1f} s")


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
