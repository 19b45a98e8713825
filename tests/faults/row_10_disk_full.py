#!/usr/bin/env python3
"""Row 10: the disk of the agent's work directory (a 16 MB file system) fills while the master is away.

The trial must run on; when there is room again the log must say how many lines are lost, every line that arrives be whole
and in order, and the trial end well. Then the disk is full before a task starts: that is the system's failure, said with
its reason, and tried again until there is room. So it is with the checkpoint store. Needs root and a mount namespace.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TOP, Cluster, wait_until  # noqa: E402
from faults import Row, is_root  # noqa: E402
from gc_exp import settled  # noqa: E402

LINES = 200000
PROGRAM = r"""
import os, sys, time
go, fed = sys.argv[1:3]
print("waits", flush=True)
while not os.path.exists(go):
    time.sleep(.05)
for i in range(%d):
    print(f"line {i:06} " + "x" * 100)
sys.stdout.flush()
open(go + ".all", "w").close()
while not os.path.exists(fed):
    time.sleep(.05)
print("after the outage", flush=True)
""" % LINES


def in_own_namespace(row):
    """Runs this row again where its mounts are nobody else's, and vanish with it."""
    if os.environ.get("DET_ROW_MOUNTS"):
        return
    if not is_root() or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode != 0:
        row.skip("no privilege to mount a small file system (root and CAP_SYS_ADMIN are needed)")
    os.environ["DET_ROW_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, os.path.abspath(__file__), *sys.argv[1:]])


def config(name, *argv):
    return json.dumps({"name": name, "entrypoint": list(argv), "max_restarts": 0,
                       "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}})


def start(c, name, program, *args):
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "run.py"), "w") as f:
            f.write(program)
        exp = c.create(config(name, "python3", "run.py", *args), d)
    return exp, wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]


def full(c):
    s = os.statvfs(c.path("agent-0"))
    return s.f_bavail * s.f_frsize < 65536


def spool_round(row, c):
    go, fed = c.path(f"go-{row.rounds}"), c.path(f"fed-{row.rounds}")
    exp, trial = start(c, "spool", PROGRAM, go, fed)
    wait_until(lambda: "waits\n" in c.logs(trial), 60, "the program")
    c.stop("master", signal.SIGKILL)
    open(go, "w").close()
    wait_until(lambda: full(c), 120, "the disk to be full")
    wait_until(lambda: os.path.exists(go + ".all"), 120, "all lines to be printed")  # or the master is back before one is lost
    row.fault("spool disk full")
    pid = [p for p in c.processes(exp)]
    row.check(pid, "the trial ended")
    c.start_master()
    wait_until(lambda: not full(c), 120, "the spool to be sent")
    open(fed, "w").close()
    c.wait(exp, seconds=200)
    log = c.logs(trial)
    got = [int(n) for n in re.findall(r"line (\d{6}) x{100}\n", log)]
    row.check(len(re.findall("line ", log)) == len(got), "a torn line arrived")
    row.check(got == sorted(set(got)), "lines arrived twice or out of order")
    lost = sum(int(n) for n in re.findall(r"(\d+) lines before this one are lost", log))
    row.check(lost > 0 and lost + len(got) == LINES, f"{len(got)} lines arrived and {lost} are said to be lost, of {LINES}")
    row.check("after the outage" in log, "what was printed after the outage is missing")


def fill(folder):
    """Nothing more can be written there until this file is gone."""
    filler = os.path.join(folder, "filler")
    with open(filler, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    return filler


def start_round(row, c):
    """A task that cannot even be prepared. Room that an ended one gives back after the filling would let it start."""
    wait_until(lambda: not os.listdir(c.path("agent-0", "tasks")), 60, "the ended tasks' files to be gone")
    filler = fill(c.path("agent-0"))
    row.fault("disk full before a start")
    exp, trial = start(c, "start", "print('it ran')\n")
    wait_until(lambda: re.search("could not be started.*[Nn]o space left", c.logs(trial)), 60, "the reason in the log")
    os.unlink(filler)
    c.wait(exp, seconds=120)
    row.check("it ran" in c.logs(trial) and c.trials(exp)[0]["restarts"] == 0, "the trial was blamed for it")


def store_round(row, c):
    """A checkpoint store without room uses up no restart."""
    store = c.path("store")
    with open(os.path.join(TOP, "examples", "digits", "const.yaml")) as f:
        text = f.read() + f"\nmax_restarts: 0\ncheckpoint_storage: {{type: shared_fs, host_path: {store}}}\n"
    exp = c.create(text, "examples/digits")  # the store's first use makes its marker
    c.wait(exp)
    settled(c, exp)  # what its end and its collection still write there or give back comes before the filling
    wait_until(c.slots_free, 60, "the ended trial to leave its slot")
    filler = fill(store)
    row.fault("checkpoint store full")
    exp = c.create(text, "examples/digits")
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: re.search("Run 2 ended.*No space left.*not the trial's fault", c.logs(trial)), 60, "the reason in the log, twice")
    os.unlink(filler)
    c.wait(exp, seconds=120)
    row.check(c.trials(exp)[0]["restarts"] == 0, "the trial was blamed for it")


def main():
    row = Row(10, __doc__, rounds=3, rounds_all=12)
    in_own_namespace(row)
    c = Cluster(agents=0, slots=1, agent_args=["--log-mib", "0"])
    mounted = []
    with c:
        os.mkdir(c.path("agent-0"))
        os.mkdir(c.path("store"))
        for place in (c.path("agent-0"), c.path("store")):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=1777", "tmpfs", place], check=True)
            mounted.append(place)
        c.n_agents = 1
        c.start_agent(0)
        c.wait_agents(1)
        for n in row.numbers():
            row.attempt(n, (spool_round, start_round, store_round)[n % 3], row, c)
        c.stop("agent-0", signal.SIGKILL)
        c.end_tasks()
        subprocess.run(["umount", "-l", *mounted], check=True)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
