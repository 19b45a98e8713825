#!/usr/bin/env python3
"""What a step asks of the device is what the table of docs/gpu.md says, to the call: a launch, a wait or a question more is
seen where it begins. Counted as bench/gpu-steps.py does, on the emulated device.

usage: test_budget.py BUILD_DIR [FIGURE...]
"""
import importlib.util
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEAD = ["figure", "own kernels", "gemms", "convolutions", "copies", "waits", "queries", "allocations"]
COPIES = ("to_device", "to_host", "within_device")


def cells(line):
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def table():
    """Figure -> its cells, as they stand in the document."""
    with open(os.path.join(TOP, "docs", "gpu.md"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    at = next(i for i, line in enumerate(lines) if cells(line) == HEAD)
    rows = {}
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            break
        rows[cells(line)[0]] = cells(line)[1:]
    return rows


def number(n):
    return f"{n:g}"


def megabytes(size):
    return f"{size / 1e6:,.1f}" if size < 1e6 else f"{size / 1e6:,.0f}"


def row(step):
    """A step's cells, as the document has them."""
    out = [number(step["kernels"][0])]
    for name in ("gemms", "convolutions"):
        calls, size = step[name]
        out.append(f"{number(calls)}: {megabytes(size)} MB" if calls else "0")
    out.append(number(sum(step[name][0] for name in COPIES)))
    return out + [number(step[name][0]) for name in ("waits", "queries", "allocations")]


def bench(build):
    os.environ["DET_BUILD"] = build
    spec = importlib.util.spec_from_file_location("gpu_steps", os.path.join(TOP, "bench", "gpu-steps.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    steps, expected, failed = bench(sys.argv[1]), table(), 0
    if sorted(expected) != sorted(steps.FIGURES):
        sys.exit(f"docs/gpu.md has {sorted(expected)}, bench/gpu-steps.py {sorted(steps.FIGURES)}")
    for figure in sys.argv[2:] or steps.FIGURES:
        found = row(steps.step(figure, False)[0])
        if found != expected[figure]:
            failed += 1
            print(f"{figure}: a step is\n  | {' | '.join(found)} |, and docs/gpu.md has\n  | {' | '.join(expected[figure])} |")
    return 1 if failed else 0


sys.exit(main())
