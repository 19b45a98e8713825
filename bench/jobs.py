#!/usr/bin/env python3
"""jobs: trials per second of one random search of 500 trials whose entrypoint is ["true"].

usage: bench/run jobs [--peer] [--slots N]
From the POST of the experiment to its COMPLETED, every trial COMPLETED, on one agent of 8 (trials_per_s) and of 64
artificial slots (trials_per_s_64; --slots asks for one of them). PostgreSQL keeps its fsync. Medians of
DET_BENCH_ROUNDS (5). --peer runs as many jobs of `true` through Slurm in the same run, slots as CPUs: as one array
(`sbatch --array`, one call) and by as many `srun` at a time as there are slots; each from an idle Slurm until it is idle
again, and the better counts; a round in which srun refuses jobs ("nodes are still not ready") has no figure of srun's. It installs Slurm's packages, starts a private Slurm on loopback (bench/lib_slurm.sh) and
ends it.
"""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import TERMINAL, Cluster, wait_until  # noqa: E402
from libslurm import Slurm  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "5"))
TRIALS = int(os.environ.get("DET_BENCH_TRIALS", "500"))
CONFIG = {"name": "jobs", "entrypoint": ["true"], "max_restarts": 0, "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
          "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 1}, "max_trials": TRIALS, "max_concurrent_trials": TRIALS}}


def ours(c):
    t0 = time.monotonic()
    exp = c.create(json.dumps(CONFIG), None)
    while c.experiment(exp)["state"] not in TERMINAL:
        time.sleep(0.05)
    seconds = time.monotonic() - t0
    done = c.sql(f"SELECT count(*) FROM trials WHERE experiment_id = {exp} AND state = 'COMPLETED'")
    assert int(done) == TRIALS, f"{done} of {TRIALS} trials completed"
    wait_until(c.slots_free, 60, "free slots")
    return TRIALS / seconds


def sbatch(s, job):
    t0 = time.monotonic()
    subprocess.run(["sbatch", "-Q", f"--array=1-{TRIALS}", "-o", "/dev/null", job], check=True, env=s.env, stdout=subprocess.DEVNULL)
    wait_until(s.idle, 300, "an idle Slurm")
    return TRIALS / (time.monotonic() - t0)


def srun(s, job, slots):
    t0 = time.monotonic()
    loop = f"seq {TRIALS} | xargs -P {slots} -I@ srun -Q -n1 {job}"
    refused = subprocess.run(["bash", "-c", loop], env=s.env, stdout=subprocess.DEVNULL).returncode
    wait_until(s.idle, 300, "an idle Slurm")
    return [] if refused else [TRIALS / (time.monotonic() - t0)]


def measure(slots, peer):
    """{who: [trials per second]}, all in turn."""
    found = {"ours": [], "sbatch --array": [], "srun": []}
    with Cluster(agents=1, slots=slots) as c:
        ours(c)
        for n in range(ROUNDS):
            found["ours"].append(ours(c))
            if peer:
                with Slurm(slots) as s:
                    job = s.script("job.sh", "#!/bin/sh\nexec true\n")
                    found["sbatch --array"].append(sbatch(s, job))
                    found["srun"] += srun(s, job, slots)
            print(f"{slots} slots, round {n + 1}: " + ", ".join(f"{who} {v[-1]:.1f}" for who, v in found.items() if v) + " trials/s", file=sys.stderr)
    return {who: statistics.median(v) for who, v in found.items() if v}


def show(slots, med):
    peer = max((who for who in med if who != "ours"), key=med.get, default=None)
    print(json.dumps({"bench": "jobs", "figure": "trials_per_s" if slots == 8 else f"trials_per_s_{slots}",
                      "value": round(med["ours"], 1), "unit": "trials/s", "peer": peer and "Slurm " + peer,
                      "peer_value": peer and round(med[peer], 1), "ratio": peer and round(med["ours"] / med[peer], 3)}), flush=True)


def main():
    args = sys.argv[1:]
    asked = [int(args[args.index("--slots") + 1])] if "--slots" in args else [8, 64]
    for slots in asked:
        show(slots, measure(slots, "--peer" in args))


if __name__ == "__main__":
    main()
