#!/usr/bin/env python3
"""The first ten losses of networks on a device against those of the CPU, from the same weights and batches.

usage: losses.py BENCH-TRAIN DEVICE [FIGURE...]
"""
import json
import os
import subprocess
import sys

FIGURES = ("mnist_cnn", "resnet18_32", "lstm", "gpt2_small")
STEPS = "10"
# Of the first losses, as a share; rounding grows with the steps.
FIRST, LATER = 1e-4, 1e-2


def losses(program, figure, device):
    env = dict(os.environ, BENCH_DEVICE=device)
    p = subprocess.run([program, figure, str(os.cpu_count()), STEPS], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)
    if p.returncode != 0:
        sys.exit(f"{figure} on {device}: status {p.returncode}: {p.stderr}")
    return json.loads(p.stdout.splitlines()[0])["losses"]


def main(program, device, *figures):
    for figure in figures or FIGURES:
        here, there = losses(program, figure, device), losses(program, figure, "cpu")
        assert len(here) == len(there) == int(STEPS), (here, there)
        print(figure, device, here, "cpu", there, flush=True)
        for i, (a, b) in enumerate(zip(here, there)):
            if not abs(a - b) <= (FIRST if i < 3 else LATER) * max(1, abs(b)):
                sys.exit(f"{figure}: loss {i} is {a} on {device}, {b} on the CPU")


main(*sys.argv[1:])
