#!/usr/bin/env python3
"""gpu-steps: what a training step asks of a GPU, counted on the emulated device; no GPU, no time, no peer.

usage: bench/run gpu-steps [FIGURE...] [--bf16]
The networks and batches of `train`. A kernel computes nothing here, so that networks of full size can be counted; what a
step needs is the difference of a run of 8 steps and one of 3. `kernels` are launches of our own, `gemms` and
`convolutions` calls of cuBLAS and cuDNN, `waits` those of the host for the device, `queries` what cuDNN was asked for
algorithms, `allocations` those of device memory. The last three cost the most, and after the first steps the last two are
to be none.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from size import emit  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("DET_BUILD", os.path.join(HERE, "..", "build")))
FIGURES = ("mnist_cnn", "resnet18_32", "resnet18_224", "lstm", "gpt2_small")
FEW, MANY = 3, 8


def counts(figure, steps, bf16):
    """Name -> (calls, bytes) of a run of so many steps."""
    with tempfile.TemporaryDirectory() as d:
        to = os.path.join(d, "counts")
        env = dict(os.environ, BENCH_DEVICE="cuda", DET_BACKEND_DIR=os.path.join(BUILD, "tests", "cuda"), EMULATED_EMPTY="1",
                   EMULATED_SIZES="device", EMULATED_COUNTS=to, **({"BENCH_DTYPE": "bf16"} if bf16 else {}))
        command = [os.path.join(BUILD, "bench", "bench-train"), figure, "2", str(steps)]
        subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=300)
        with open(to) as f:
            return {name: (int(calls), int(size)) for name, calls, size in map(str.split, f)}


def step(figure, bf16):
    """Name -> (calls, bytes) of a step; how many queries all steps took."""
    few, many = counts(figure, FEW, bf16), counts(figure, MANY, bf16)
    return {name: tuple((many[name][i] - few[name][i]) / (MANY - FEW) for i in (0, 1)) for name in few}, many["queries"][0]


def show(figure, bf16):
    of_step, queries = step(figure, bf16)
    label = figure + (" bf16" if bf16 else "")
    for name, (calls, size) in of_step.items():
        emit(f"{label} {name}", round(calls, 2), "a step", bench="gpu-steps")
        if size:
            emit(f"{label} {name}", round(size / 1e6, 3), "MB a step", bench="gpu-steps")
    emit(f"{label} queries in all", queries, "a run", bench="gpu-steps")


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")] or FIGURES
    for figure in names:
        if figure not in FIGURES:
            sys.exit(f"gpu-steps: no figure '{figure}'; there are: {', '.join(FIGURES)}")
        show(figure, "--bf16" in sys.argv)


if __name__ == "__main__":
    main()
