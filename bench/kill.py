#!/usr/bin/env python3
"""kill: how long from the request until nothing of a trial is left and its slot is free (I3 promises 10 s).

usage: bench/run kill [--rounds N]
Each round kills a trial that does nothing about it, and one whose processes ignore SIGTERM, have sessions of their own, are
forked twice, keep no environment and hold no descriptor; one at a time, then one on each of eight slots at once. `worst` is the worst
of all. No peer: how long others take is a setting of theirs (Slurm's KillWait is 30 s).
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from size import emit  # noqa: E402

PLAIN = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
HIDES = r"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for env in (dict(os.environ), {}):
    for leave in (False, True):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                if leave:
                    os.chdir("/")
                    os.closerange(0, 64)
                os.execve("/bin/sleep", [MARKER, "1000"], env)
            os._exit(0)
print("begun", flush=True)
time.sleep(1000)
"""
SLOTS, HIDDEN, LIMIT_S = 8, 4, 3


def marked(marker):
    """Ids of the processes that have the marker in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if marker.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            pass  # it has ended
    return found


def create(c, program, marker, trials):
    search = {"name": "random", "metric": "loss", "max_length": {"batches": 1}, "max_trials": trials, "max_concurrent_trials": trials}
    config = {"name": marker, "entrypoint": ["python3", "run.py", marker], "max_restarts": 0, "searcher": search,
              "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}}}
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "run.py"), "w") as f:
            f.write(program.replace("MARKER", repr(marker)))
        return c.create(json.dumps(config), d)


def kill_one(c, program, each, trials, n):
    """Seconds from the request to the end of all processes and free slots."""
    marker = f"killed-{os.path.basename(c.dir)}-{n}"
    exp = create(c, program, marker, trials)
    wait_until(lambda: len(marked(marker)) >= each * trials, 60, "the processes")
    begun = time.monotonic()
    c.api("POST", f"/experiments/{exp}/kill")
    wait_until(lambda: not marked(marker) and c.slots_free(), 60, "their end")
    return time.monotonic() - begun


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=5)
    a = ap.parse_args()
    worst = 0
    with Cluster(agents=1, slots=SLOTS) as c:
        for figure, program, each, trials in (("plain", PLAIN, 1, 1), ("hiding", HIDES, 1 + HIDDEN, 1), ("hiding_8", HIDES, 1 + HIDDEN, SLOTS)):
            took = [kill_one(c, program, each, trials, f"{figure}-{n}") for n in range(a.rounds)]
            print(f"{figure}: {[round(t, 2) for t in took]}", file=sys.stderr)
            emit(figure, round(statistics.median(took), 3), "s", "kill")
            worst = max(worst, *took)
    print(json.dumps({"bench": "kill", "figure": "worst", "value": round(worst, 3), "unit": "s", "peer": "limit", "peer_value": LIMIT_S,
                      "ratio": round(LIMIT_S / worst, 2)}), flush=True)


if __name__ == "__main__":
    main()
