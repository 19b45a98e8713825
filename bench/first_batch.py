#!/usr/bin/env python3
"""start: run_to_first_batch: `det-harness run` of examples/digits, compiled before, from the command to its first training batch.

usage: bench/run first_batch
Median of DET_BENCH_ROUNDS (21) after two that do not count, at real-time priority where that is allowed (chrt); each
round on standard error. The compile cache is warm; the checkpoint and the validation come after the mark.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import BIN  # noqa: E402
from start import emit, make_context, remove  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "21"))


def priority():
    """The command that runs another one ahead of the machine's other work, or nothing."""
    chrt = ["chrt", "-f", "10"]
    return chrt if subprocess.run(chrt + ["true"], capture_output=True).returncode == 0 else []


def once(argv, context, env):
    remove(env["BENCH_FILE"])
    began = time.time_ns()
    subprocess.run(argv, cwd=context, env=env, check=True, stdout=subprocess.DEVNULL)
    with open(env["BENCH_FILE"]) as f:
        return (int(f.read()) - began) / 1e6


def main():
    with tempfile.TemporaryDirectory(prefix="det-bench-") as d:
        context = make_context(os.path.join(d, "context"))
        env = dict(os.environ, BENCH_FILE=os.path.join(d, "first"), DET_CACHE_DIR=os.path.join(d, "cache"), DET_THREADS_PER_SLOT="2")
        argv = priority() + [os.path.join(BIN, "det-harness"), "run", "model_def.c", "--quiet", "--config", "local.yaml", "--test-mode",
                             "--checkpoint-dir", os.path.join(d, "checkpoints")]
        for _ in range(2):
            once(argv, context, env)
        ms = [once(argv, context, env) for _ in range(ROUNDS)]
        print("rounds: " + ", ".join(f"{v:.1f}" for v in ms) + " ms", file=sys.stderr)
        emit("run_to_first_batch", statistics.median(ms), None, None)


if __name__ == "__main__":
    main()
