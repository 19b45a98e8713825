#!/usr/bin/env python3
"""The first ten losses of networks on a device against those of the CPU, from the same weights and batches.

usage: losses.py BENCH-TRAIN DEVICE FIGURE...        the CPU's are those of losses.json beside this file, where it has them
       losses.py BENCH-TRAIN --write FIGURE...       makes that file
"""
import json
import os
import subprocess
import sys

KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "losses.json")
STEPS = "10"
# Of the first two losses, as a share; rounding grows with the steps, in resnet18_32 to 2e-4 at the third.
FIRST, LATER = 1e-4, 1e-2


def losses(program, figure, device):
    env = dict(os.environ, BENCH_DEVICE=device)
    p = subprocess.run([program, figure, str(os.cpu_count()), STEPS], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)
    if p.returncode != 0:
        sys.exit(f"{figure} on {device}: status {p.returncode}: {p.stderr}")
    first = (p.stdout.splitlines() or [""])[0]
    try:
        return json.loads(first)["losses"]
    except ValueError:  # a loss that is no number any more
        sys.exit(f"{figure} on {device}: no losses in {first!r}")


def write(program, figures):
    with open(KNOWN, "w") as f:
        json.dump({figure: losses(program, figure, "cpu") for figure in figures}, f)


def known_losses():
    try:
        with open(KNOWN) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def compare(program, device, figures):
    known, wrong = known_losses(), []
    for figure in figures:
        here, there = losses(program, figure, device), known.get(figure) or losses(program, figure, "cpu")
        print(figure, device, here, "cpu", there, flush=True)
        assert len(here) == len(there) == int(STEPS)
        for i, (a, b) in enumerate(zip(here, there)):
            if not abs(a - b) <= (FIRST if i < 2 else LATER) * max(1, abs(b)):
                wrong.append(f"{figure}: loss {i} is {a} on {device}, {b} on the CPU")
    if wrong:
        sys.exit("\n".join(wrong))


program, device, *figures = sys.argv[1:]
write(program, figures) if device == "--write" else compare(program, device, figures)
