#!/usr/bin/env python3
"""accept: experiments accepted durably per second, one POST each, 10 KB of context, 32 clients.

usage: bench/run accept [--peer]
32 kept-alive connections (bench/programs/accept.c), each posting one experiment after the other for DET_BENCH_SECONDS (5): a single
search of one trial, a context of two files of 10 KB together that do not compress. The answer comes after the commit;
PostgreSQL keeps its fsync. Median of DET_BENCH_ROUNDS (5). One agent of one slot is there, so the trials queue. --peer
compares with Slurm in the same run: sbatch of a script of 10 KB from 8 shells, held jobs, as ours wait too.
"""
import base64
import json
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import Cluster  # noqa: E402
from herd import Herd  # noqa: E402
from libslurm import Slurm  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "5"))
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", "5"))
CLIENTS, SHELLS, JOBS = 32, 8, 500
CONFIG = {"name": "accept", "entrypoint": ["true"], "max_restarts": 0, "hyperparameters": {"x": 1},
          "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}


def body(path):
    noise = random.Random(7)
    files = [{"path": name, "type": 48, "mode": 0o100644, "mtime": "1700000000", "content": base64.b64encode(noise.randbytes(5120)).decode()}
             for name in ("model_def.py", "data.py")]
    with open(path, "w") as f:
        json.dump({"config": json.dumps(CONFIG), "modelDefinition": files, "activate": True, "validateOnly": False}, f)
    return path


def ours(c, path):
    if not c.token:
        c.login()
    before = int(c.sql("SELECT count(*) FROM trials"))
    r = subprocess.run([os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-accept"), "127.0.0.1", str(c.port), c.token, path,
                        str(CLIENTS), str(SECONDS)], text=True, stdout=subprocess.PIPE, check=True)
    n, took, p50, p95 = map(float, r.stdout.split())
    kept = int(c.sql("SELECT count(*) FROM trials")) - before
    assert kept == n, f"{n:.0f} accepted, {kept} kept"
    print(f"{n:.0f} in {took:.1f} s, p50 {p50} ms, p95 {p95} ms", file=sys.stderr)
    return n / took


def sbatch(s):
    noise = random.Random(7).randbytes(7500).hex()[:10000]
    job = s.script("job.sh", f"#!/bin/sh\n# {noise}\nexec true\n")
    t0 = time.monotonic()
    subprocess.run(["bash", "-c", f"seq {JOBS} | xargs -P {SHELLS} -I@ sbatch -Q -H -o /dev/null {job}"], check=True, env=s.env, stdout=subprocess.DEVNULL)
    return JOBS / (time.monotonic() - t0)


def main():
    found = {"ours": [], "sbatch": []}
    for _ in range(ROUNDS):
        with Cluster(agents=0) as c, Herd(c, agents=1, slots=1) as h:
            h.wait(agents=1)
            found["ours"].append(ours(c, body(c.path("body.json"))))
        if "--peer" in sys.argv[1:]:
            with Slurm() as s:
                found["sbatch"].append(sbatch(s))
    med = {who: statistics.median(v) for who, v in found.items() if v}
    peer = med.get("sbatch")
    print(json.dumps({"bench": "accept", "figure": "trials_per_s", "value": round(med["ours"], 1), "unit": "trials/s", "peer": peer and "Slurm sbatch",
                      "peer_value": peer and round(peer, 1), "ratio": peer and round(med["ours"] / peer, 2)}), flush=True)


if __name__ == "__main__":
    main()
