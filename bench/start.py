#!/usr/bin/env python3
"""start: `det e create` to the first training batch on an idle cluster, warm and cold compile cache.

The peer, where Slurm is installed: srun and sbatch of the same binary (det-harness --version), submit to running
(tools: a slurm_up.sh named by SLURM_UP). Medians of five, ours and the peer's in turn.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import BIN, TOP, Cluster, wait_until  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "5"))
UP = os.environ.get("SLURM_UP")


def emit(figure, value, peer=None, peer_value=None):
    ratio = None if peer_value is None else round(peer_value / value, 3)
    print(json.dumps({"bench": "start", "figure": figure, "value": round(value, 1), "unit": "ms", "peer": peer, "peer_value": peer_value, "ratio": ratio}), flush=True)


# Digits with one line added: the first batch leaves the moment (CLOCK_REALTIME, ns) in a file.
def context(c):
    d = c.path("context")
    shutil.copytree(os.path.join(TOP, "examples/digits"), d)
    src = open(d + "/model_def.c").read()
    mark = '''
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void bench_mark(void)
{
    static int done;
    struct timespec t;
    char text[32];
    if (done++)
        return;
    clock_gettime(CLOCK_REALTIME, &t);
    int fd = open(getenv("BENCH_FILE"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (write(fd, text, snprintf(text, sizeof text, "%lld", t.tv_sec * 1000000000LL + t.tv_nsec)) < 0)
        abort();
    close(fd);
}
'''
    at = src.index("static int train_batch") if "static int train_batch" in src else src.index("train_batch(")
    at = src.rindex("\n", 0, at) + 1
    brace = src.index("{", at) + 1
    open(d + "/model_def.c", "w").write(src[:at] + mark + src[at:brace] + "\n    bench_mark();" + src[brace:])
    return d


def once(c, ctx, cold):
    out = c.path("first")
    if os.path.exists(out):
        os.unlink(out)
    if cold:
        shutil.rmtree(c.path("cache"), ignore_errors=True)
        os.makedirs(c.path("cache"), mode=0o777)
        os.chmod(c.path("cache"), 0o777)
    conf = c.path("start.yaml")
    with open(conf, "w") as f:
        json.dump({"name": "start", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
                   "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
                   "environment": {"environment_variables": ["BENCH_FILE=" + out]},
                   "searcher": {"name": "single", "metric": "accuracy", "max_length": {"batches": 10}}}, f)
    t0 = time.time_ns()
    r = c.det("experiment", "create", conf, ctx)
    wait_until(lambda: os.path.exists(out) and open(out).read(), 60, "the first batch")
    ms = (int(open(out).read()) - t0) / 1e6
    exp = int("".join(ch for ch in r.stdout.split("experiment", 1)[1].split()[0] if ch.isdigit()))
    c.wait(exp)
    wait_until(c.slots_free, 30, "free slots")
    return ms


def slurm_once(how):
    out = f"/tmp/bench-slurm-{os.getpid()}"
    script = f"#!/bin/sh\ndate +%s%N >{out}; {BIN}/det-harness --version >/dev/null\n"
    path = out + ".sh"
    with open(path, "w") as f:
        f.write(script)
    os.chmod(path, 0o755)
    if os.path.exists(out):
        os.unlink(out)
    t0 = time.time_ns()
    subprocess.run([how, path] if how == "srun" else [how, "-o", "/dev/null", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(out) and open(out).read().strip(), 60, how)
    ms = (int(open(out).read()) - t0) / 1e6
    os.unlink(out)
    os.unlink(path)
    return ms


def main():
    slurm = UP and shutil.which("slurmctld")
    if slurm:
        subprocess.run(["bash", UP, "up", "1", "2"], check=True, stdout=sys.stderr)
        os.environ["SLURM_CONF"] = os.path.join(os.environ.get("D", "/tmp/det-peers/slurm"), "slurm.conf")
    warm, cold, srun, sbatch = [], [], [], []
    try:
        with Cluster(agents=1, slots=2) as c:
            ctx = context(c)
            once(c, ctx, True)
            for _ in range(ROUNDS):
                warm.append(once(c, ctx, False))
                cold.append(once(c, ctx, True))
                if slurm:
                    srun.append(slurm_once("srun"))
                    sbatch.append(slurm_once("sbatch"))
    finally:
        if slurm:
            subprocess.run(["bash", UP, "down"], stdout=sys.stderr)
    med = statistics.median
    emit("submit_to_first_batch", med(warm), *(("slurm srun", round(med(srun), 1)) if srun else ()))
    emit("submit_to_first_batch_cold", med(cold), *(("slurm sbatch", round(med(sbatch), 1)) if sbatch else ()))


main()
