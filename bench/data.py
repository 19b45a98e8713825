#!/usr/bin/env python3
"""data: samples per second of a shuffling loader beside torch.utils.data.DataLoader at its best, on two cores.

usage: bench/run data [mnist|jpeg]    default: both

mnist: 10,000 images of 28x28, normalised (DET_BENCH_MNIST names the directory of the t10k files). jpeg: 256 images of
500x375, random resized crop to 224, flip, normalise. Batches of 64. Ours has 2 workers. PyTorch is tried in each way that
its users have: images one by one through transforms, or as tensors that were normalised before (mnist); picked one by
one, or a batch at once by a BatchSampler with batch_size=None (tensors); in the training's process, with one thread or, of
a batch at once, two, or by 2 workers. Short turns pick the two fastest, of which the better median of the real rounds
counts. All keep what they loaded and take turns; the ratio is the median of the rounds'. DET_BENCH_ROUNDS and
DET_BENCH_SECONDS (of a turn) change the defaults, 5 and 3.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(os.environ.get("DET_BUILD", os.path.join(HERE, "..", "build")), "bench", "bench-data")
MNIST = os.environ.get("DET_BENCH_MNIST", os.path.join(HERE, "..", "..", "shared", "data", "mnist"))
ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", 5))
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", 3))
PYTHON = "/usr/bin/python3"  # Debian's, which has python3-torch
TRIAL_SECONDS = 1
PEERS = {"mnist": ["mnist 0", "mnist 2", "mnist_tensors 0", "mnist_tensors 2", "mnist_batches 0", "mnist_batches 0 threads",
                   "mnist_batches 2"], "jpeg": ["jpeg 0", "jpeg 2"]}
WAYS = {"mnist": "transforms", "mnist_tensors": "TensorDataset", "mnist_batches": "TensorDataset, BatchSampler, batch_size=None", "jpeg": "ImageFolder"}
# Photographs have most of their detail in soft shapes: noise at several scales, as JPEG of quality 90 about 90 kB each.
MAKE_JPEGS = """
import os, sys
import numpy as np
from PIL import Image
r = np.random.RandomState(1)
for i in range(256):
    x = sum(np.asarray(Image.fromarray(r.randint(0, 256, (375 // s + 2, 500 // s + 2, 3)).astype(np.uint8)).resize((500, 375), Image.BICUBIC), float) * w
            for s, w in ((60, .5), (15, .25), (4, .15), (1, .1)))
    os.makedirs(f"{sys.argv[1]}/class{i % 4}", exist_ok=True)
    Image.fromarray(x.clip(0, 255).astype(np.uint8)).save(f"{sys.argv[1]}/class{i % 4}/{i}.jpg", quality=90)
"""


class Side:
    """One process that loads when it is told to."""

    def __init__(self, name, command):
        self.name, self.rates = name, []
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self, seconds=SECONDS):
        self.p.stdin.write(f"{seconds}\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            sys.exit(f"data: {self.name} ended with status {self.p.wait()}")
        self.rates.append(float(line))

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def peer(way, where):
    kind, workers, *threads = way.split()
    name = f"DataLoader, {WAYS[kind]}, {workers if workers != '0' else 'no'} workers" + (", 2 threads" if threads else "")
    return Side(name, [PYTHON, HERE + "/peer_data.py", kind, workers, "2" if threads else "1", where])


def told(figure, what, sides):
    print(f"{figure}, {what}: " + "; ".join(f"{s.name} {s.rates[-1]:.0f}" for s in sides), file=sys.stderr)


def fastest(figure, peers):
    """The two that win a short turn, after one that warms; the others end."""
    for what in ("warm", "trial"):
        for p in peers:
            p.turn(TRIAL_SECONDS)
        told(figure, what, peers)
    peers = sorted(peers, key=lambda p: -p.rates[-1])
    for p in peers[2:]:
        p.close()
    for p in peers[:2]:
        p.rates.clear()
    return peers[:2]


def measure(figure, where):
    ours = Side("ours", [OURS, figure, where])
    peers = fastest(figure, [peer(way, where) for way in PEERS[figure]])
    ours.turn(TRIAL_SECONDS)
    ours.rates.clear()
    for i in range(ROUNDS):
        for side in (ours, *peers):
            side.turn()
        told(figure, f"round {i + 1}", (ours, *peers))
    best = max(peers, key=lambda p: statistics.median(p.rates))
    print(json.dumps({"bench": "data", "figure": figure, "value": statistics.median(ours.rates), "unit": "samples/s", "peer": best.name,
                      "peer_value": statistics.median(best.rates),
                      "ratio": round(statistics.median(a / b for a, b in zip(ours.rates, best.rates)), 2)}), flush=True)
    for side in (ours, *peers):
        side.close()


def main():
    if not os.path.exists(OURS):
        sys.exit(f"data: {OURS} is missing: build bench/bench-data")
    for figure in sys.argv[1:] or list(PEERS):
        if figure == "mnist":
            measure(figure, MNIST)
            continue
        with tempfile.TemporaryDirectory() as where:
            subprocess.run([PYTHON, "-c", MAKE_JPEGS, where], check=True)
            measure(figure, where)


if __name__ == "__main__":
    main()
