#!/usr/bin/env python3
"""start: `det e create` to the first training batch on an idle cluster, warm and cold compile cache.

usage: bench/run start [--peer | --own-uid]        BENCH_DEVICE=cuda: on a slot that is a GPU
--own-uid compares, in turns, tasks that run as a uid of their user's own, kept apart from all others, with tasks that run
as the agent does; the agent must be root.
--peer compares with Slurm in the same run: srun and sbatch of the same binary with the same trial
(det-harness run model_def:DigitsTrial, a compile cache of its own), from the command to the first training
batch. It installs Slurm's packages (bench/packages.slurm), starts a private Slurm on loopback (bench/lib_slurm.sh)
and ends it. Medians of DET_BENCH_ROUNDS (5), ours and the peer's in turn; each round on standard error.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import BIN, TOP, Cluster, wait_until  # noqa: E402
from libslurm import Slurm  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "5"))
SLOTS = "auto" if os.environ.get("BENCH_DEVICE") == "cuda" else 2
CONFIG = {"name": "start", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0, "records_per_epoch": 1438,
          "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
          "searcher": {"name": "single", "metric": "accuracy", "max_length": {"batches": 10}}}
# The first batch leaves the moment (CLOCK_REALTIME, ns) in a file, or in the log where none is named.
MARK = '''
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
    int n = snprintf(text, sizeof text, "%lld", t.tv_sec * 1000000000LL + t.tv_nsec);
    if (!getenv("BENCH_FILE")) {
        printf("bench_mark=%s\\n", text);
        return;
    }
    int fd = open(getenv("BENCH_FILE"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (write(fd, text, n) < 0)
        abort();
    close(fd);
}
'''


def make_context(where):
    """examples/digits with the mark added, and its configuration; returns the directory."""
    shutil.copytree(os.path.join(TOP, "examples", "digits"), where)
    path = os.path.join(where, "model_def.c")
    with open(path) as f:
        src = f.read()
    at = src.index("static void train_batch(")
    brace = src.index("{", at) + 1
    with open(path, "w") as f:
        f.write(src[:at] + MARK + src[at:brace] + "\n    bench_mark();" + src[brace:])
    with open(os.path.join(where, "local.yaml"), "w") as f:
        json.dump(CONFIG, f)
    return where


def remove(path):
    if os.path.exists(path):
        os.unlink(path)


def empty_cache(path):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    os.chmod(path, 0o777)


def first_batch_ms(start, out):
    """Milliseconds from start() to the mark in out."""
    remove(out)
    t0 = time.time_ns()
    result = start()
    wait_until(lambda: os.path.exists(out) and open(out).read(), 60, "the first batch")
    return (int(open(out).read()) - t0) / 1e6, result


def is_idle(c):
    """Whether all slots are free, and seen to be: a GPU's memory is looked at first."""
    slots = [s for a in c.api("GET", "/agents")["agents"] for s in a["slots"].values()]
    return slots and all(s["container"] is None and s.get("state", "USABLE") == "USABLE" for s in slots)


def ours(c, context, cold):
    out, conf = c.path("first"), c.path("start.yaml")
    if cold:
        empty_cache(c.path("cache"))
    with open(conf, "w") as f:
        json.dump({**CONFIG, "environment": {"environment_variables": ["BENCH_FILE=" + out]}}, f)
    ms, r = first_batch_ms(lambda: c.det("experiment", "create", conf, context), out)
    finish(c, r)
    return ms


def finish(c, created):
    """Wait until the experiment that `det e create` printed has ended and the slots are free; returns its id."""
    exp = int("".join(ch for ch in created.stdout.split("experiment", 1)[1].split()[0] if ch.isdigit()))
    c.wait(exp)
    wait_until(lambda: is_idle(c), 30, "free slots")
    return exp


class SlurmTrials(Slurm):
    """A private Slurm that runs the trial of a context directory by det-harness."""

    def __init__(self, context):
        super().__init__()
        self.context = context
        self.env.update(BENCH_FILE=os.path.join(self.dir, "first"), DET_CACHE_DIR=os.path.join(self.dir, "cache"))
        self.job = self.script("job.sh", f"#!/bin/sh\nexec {BIN}/det-harness run model_def:DigitsTrial --quiet --config local.yaml "
                               f"--checkpoint-dir {self.dir}/checkpoints\n")

    def once(self, how, cold):
        if cold:
            empty_cache(self.env["DET_CACHE_DIR"])
        argv = ["srun", self.job] if how == "srun" else ["sbatch", "-o", os.path.join(self.dir, "job.log"), self.job]
        ms, _ = first_batch_ms(lambda: subprocess.run(argv, check=True, env=self.env, cwd=self.context, text=True, capture_output=True),
                               self.env["BENCH_FILE"])
        wait_until(self.idle, 30, "an idle Slurm")
        return ms


def measure(rounds, ours_once, slurm):
    """{(who, cold): [ms]} of `rounds` rounds, all in turn, after one of each that does not count."""
    peers = ["srun", "sbatch"] if slurm else []
    found = {(who, cold): [] for who in ["ours", *peers] for cold in (False, True)}
    ours_once(True)
    for how in peers:
        slurm.once(how, True)
    for n in range(rounds):
        for cold in (False, True):
            found["ours", cold].append(ours_once(cold))
            for how in peers:
                found[how, cold].append(slurm.once(how, cold))
        print(f"round {n + 1}: " + ", ".join(f"{who}{' cold' if cold else ''} {v[-1]:.0f}" for (who, cold), v in found.items()) + " ms", file=sys.stderr)
    return found


def emit(figure, value, peer, peer_value):
    print(json.dumps({"bench": "start", "figure": figure, "value": round(value, 1), "unit": "ms", "peer": peer,
                      "peer_value": None if peer_value is None else round(peer_value, 1),
                      "ratio": None if peer_value is None else round(peer_value / value, 3)}), flush=True)


def show(found):
    med = {k: statistics.median(v) for k, v in found.items()}
    for cold, figure in ((False, "submit_to_first_batch"), (True, "submit_to_first_batch_cold")):
        peers = [how for how in ("srun", "sbatch") if (how, cold) in med]
        for how in peers or [None]:
            emit(figure, med["ours", cold], how and "Slurm " + how, med.get((how, cold)))


def logged(c, context):
    """Milliseconds until the mark, read from the trial's log: a task that is kept apart can leave no file for others."""
    t0 = time.time_ns()
    exp = finish(c, c.det("experiment", "create", os.path.join(context, "local.yaml"), context))
    line = next(ln for ln in c.det("trial", "logs", str(c.trials(exp)[0]["id"])).stdout.splitlines() if "bench_mark=" in ln)
    return (int(line.split("bench_mark=")[1].split()[0]) - t0) / 1e6


def own_uid():
    found = {True: [], False: []}
    with Cluster(agents=1, slots=SLOTS, apart=True) as a, Cluster(agents=1, slots=SLOTS) as b:
        clusters = {c.apart: (c, make_context(c.path("context"))) for c in (a, b)}
        for n in range(3 * ROUNDS + 1):
            for apart, (c, context) in clusters.items():
                wait_until(lambda: is_idle(c), 30, "an agent")
                ms = logged(c, context)
                found[apart] += [ms] if n else []
    med = {k: statistics.median(v) for k, v in found.items()}
    emit("submit_to_first_batch_own_uid", med[True], "as the agent's uid", med[False])


def main():
    if "--own-uid" in sys.argv[1:]:
        return own_uid()
    with Cluster(agents=1, slots=SLOTS) as c:
        wait_until(lambda: is_idle(c), 30, "an agent")
        context = make_context(c.path("context"))

        def once(cold):
            return ours(c, context, cold)
        if "--peer" in sys.argv[1:]:
            with SlurmTrials(context) as slurm:
                show(measure(ROUNDS, once, slurm))
        else:
            show(measure(ROUNDS, once, None))


if __name__ == "__main__":
    main()
