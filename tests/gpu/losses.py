#!/usr/bin/env python3
"""The first ten losses of networks on a device against those of the CPU, from the same weights and batches.

usage: losses.py BENCH-TRAIN DEVICE FIGURE...        the CPU's are those of losses.json beside this file, where it has them
       losses.py BENCH-TRAIN --write FIGURE...       makes that file
       losses.py BENCH-TRAIN --tf32 DEVICE FIGURE... with DET_ALLOW_TF32: the same twice, and like the CPU's, but not those without it
"""
import json
import os
import subprocess
import sys

KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "losses.json")
STEPS = "10"
# Of the first two losses, as a share; rounding grows with the steps, in resnet18_32 to 2e-4 at the third.
FIRST, LATER = 1e-4, 1e-2
# The same where inputs are rounded to TF32's 10 bits: 2^-11 each, and more as steps go on.
FIRST_TF32 = 5e-3


def losses(program, figure, device, tf32="0"):
    env = dict(os.environ, BENCH_DEVICE=device, DET_ALLOW_TF32=tf32)
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


def problem_of_tf32(exact, rounded, again, cpu):
    """The first thing that is wrong with ten losses without TF32, with it, with it once more, and the CPU's; None: nothing."""
    if rounded != again:
        return f"two runs with TF32 differ: {rounded} and {again}"
    if rounded == exact:
        return f"DET_ALLOW_TF32 changes nothing: {exact}"
    far = [i for i in range(2) if not abs(rounded[i] - cpu[i]) <= FIRST_TF32 * max(1, abs(cpu[i]))]
    return f"losses {far} with TF32 are {rounded[:2]}, the CPU's {cpu[:2]}" if far else None


def compare_tf32(program, device, figures):
    known, wrong = known_losses(), []
    for figure in figures:
        exact, rounded, again = (losses(program, figure, device, tf32) for tf32 in "011")
        print(figure, device, exact, "with TF32", rounded, flush=True)
        if said := problem_of_tf32(exact, rounded, again, known.get(figure) or losses(program, figure, "cpu")):
            wrong.append(f"{figure}: {said}")
    if wrong:
        sys.exit("\n".join(wrong))


def main():
    program, device, *figures = sys.argv[1:]
    if device == "--write":
        write(program, figures)
    elif device == "--tf32":
        compare_tf32(program, *figures[:1], figures[1:])
    else:
        compare(program, device, figures)


if __name__ == "__main__":
    main()
