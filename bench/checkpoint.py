"""checkpoint: write (MB/s of a checkpoint until it is stored, beside dd conv=fsync of the same size, in turns) and
stall (what a save of 100 MB adds to a training step, beside one memcpy of that size). bench/checkpoint.c says how.

usage: bench/run checkpoint [DIR]     DIR: on the disk to be measured (default: the build directory)
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

build = os.environ["DET_BUILD"]
program = os.path.join(build, "bench", "bench-checkpoint")
if not os.path.exists(program):
    sys.exit(f"bench/checkpoint: {program} is not built (ninja -C {build} bench/bench-checkpoint)")


def rounds(mib, n):
    top = tempfile.mkdtemp(prefix="bench-checkpoint-", dir=sys.argv[1] if len(sys.argv) > 1 else build)
    store, code = os.path.join(top, "store"), os.path.join(top, "code")  # a checkpoint has a copy of the directory it runs in
    os.mkdir(store), os.mkdir(code)
    try:
        out = subprocess.run([program, store, str(mib), str(n)], cwd=code, stdout=subprocess.PIPE, text=True, check=True).stdout
    finally:
        shutil.rmtree(top)
    rows = [tuple(map(float, line.split())) for line in out.splitlines() if line[:1].isdigit()]
    for stall, write, copy, dd in rows:
        print(f"{mib} MiB: stall {stall * 1e3:.1f} ms, memcpy {copy * 1e3:.1f} ms, stored after {write:.3f} s, dd {dd:.3f} s",
              file=sys.stderr)
    return [statistics.median(column) for column in zip(*rows)]


def tell(figure, value, unit, peer, peer_value, ratio):
    print(json.dumps({"bench": "checkpoint", "figure": figure, "value": value, "unit": unit, "peer": peer,
                      "peer_value": peer_value, "ratio": ratio}))


stall, write, copy, dd = rounds(100, 9)
tell("stall", stall * 1e3, "ms", "memcpy", copy * 1e3, copy / stall)
tell("write", 104.9 / write, "MB/s", "dd conv=fsync", 104.9 / dd, dd / write)
