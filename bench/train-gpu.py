#!/usr/bin/env python3
"""train-gpu: items per second of whole training steps on a GPU beside PyTorch's, eager and compiled, in one run.

usage: bench/run train-gpu [--bf16] [--apart] [--modes=MODE,...] [FIGURE...]    default: all; eager,compile,reduce-overhead
       bench/run train-gpu --profile [--bf16] [--modes=MODE,...] [FIGURE...]    on standard error: what the kernels of each side take

Ours (programs/train.c) and PyTorch of the python3 that runs this (peer_train.py), from the same weights and batches, which lie on the device.
PyTorch has its fused optimizers, its own attention, cuDNN's choice by trial and no TF32 (nor has ours); images are tried in both memory
layouts in f32, channels last with --bf16 (autocast on both sides). A mode is `eager`, `compile` (network and loss as one) or one of
torch.compile's: `reduce-overhead` (CUDA graphs), `max-autotune`. Losses are read after every step, on both sides; where
BENCH_LOSSES is "last", only a turn's last. A batch is BATCHES times that of programs/train.c, or BENCH_BATCH times.

All sides are loaded and compiled, one after the other, for PyTorch times its algorithms then; that is not counted. Then they take
turns, DET_BENCH_ROUNDS (3) of DET_BENCH_SECONDS (1); with --apart each is loaded when the one before has had its turns, where the GPU's
memory does not hold them all. Rows are printed as each figure ends: one beside the best eager side, one beside the best compiled one of
any mode, and the share of the chip's arithmetic (PEAK) that ours reaches. A peer that fails, or is not ready after DET_BENCH_START
seconds (120), loses itself only; status 1 says so at the end, as it does of losses that differ. BENCH_DEVICE names another device than
"cuda".
"""
import atexit
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from importlib import metadata

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(os.environ.get("DET_BUILD", os.path.join(HERE, "..", "build")), "bench", "bench-train")
PEER = os.path.join(HERE, "peer_train.py")
ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", 3))
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", 1))
START_SECONDS = float(os.environ.get("DET_BENCH_START", 120))
WARM_SECONDS = 0.2
# What losses may differ by, as a share: the first of f32 and of bf16; the others, as rounding grows with the steps. And what the fall
# from the first to the last may, so that a side that does not learn is seen: a share, and what rounding alone makes of the losses.
FIRST, LATER = (2e-3, 1e-2), 1e-2
FALL, ROUNDING = 0.2, 1e-3
THREADS = "4"
BATCHES = {"mnist_cnn": 1, "mnist_dropout": 1, "resnet18_32": 16, "resnet18_224": 32, "resnet50_224": 32, "lstm": 1, "gpt2_small": 1,
           "gpt2_1024": 8}
TEXT = ("lstm", "gpt2_small", "gpt2_1024")
PEAK = {"bf16": 790, "f32": 60}  # TFLOP/s of an H100's or H200's products, as cuBLAS reaches them
# Multiplications and additions of an item's step, of the layers' products: three times the forward pass.
GPT2_WEIGHTS = 12 * 12 * 768 * 768 + 50257 * 768
GIGAFLOPS = {"mnist_cnn": 0.0717, "resnet18_32": 3.34, "resnet18_224": 10.9, "resnet50_224": 24.5,
             "gpt2_small": 6e-9 * (GPT2_WEIGHTS + 12 * 768 * 128), "gpt2_1024": 6e-9 * (GPT2_WEIGHTS + 12 * 768 * 1024)}


class Gone(Exception):
    """A side that will do nothing more."""


class Side:
    def __init__(self, name, mode, command, env):
        self.name, self.mode, self.command, self.env = name, mode, command, env
        self.rates, self.first, self.p = [], None, None

    def start(self):
        self.p = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        atexit.register(self.p.kill)

    def line(self, until):
        ready, _, _ = select.select([self.p.stdout], [], [], max(0, until - time.monotonic()))
        text = self.p.stdout.readline() if ready else None
        if text:
            return text
        self.p.kill()
        raise Gone(f"{self.name}: " + ("no answer in time" if text is None else f"ended with status {self.p.wait()}"))

    def read(self, until, parse):
        text = self.line(until)
        try:
            return parse(text)
        except ValueError:  # such as a loss that is no number any more
            self.p.kill()
            raise Gone(f"{self.name}: said {text.strip()}") from None

    def load(self, until):
        self.first = self.read(until, json.loads)

    def turn(self, seconds):
        try:
            self.p.stdin.write(f"{seconds}\n")
            self.p.stdin.flush()
        except BrokenPipeError:
            raise Gone(f"{self.name}: ended with status {self.p.wait()}") from None
        return self.read(time.monotonic() + seconds + 30, float)

    def end(self):
        try:
            self.p.stdin.close()
            self.p.wait(20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.p.kill()
            self.p.wait()

    def median(self):
        return statistics.median(self.rates)


class Figure:
    """One network; `failed` says whether anything of it went wrong."""

    def __init__(self, name, half, modes):
        self.name, self.half, self.failed = name, half, False
        self.label = name + ("_bf16" if half else "")
        self.env = dict(os.environ, BENCH_BATCH=os.environ.get("BENCH_BATCH", str(BATCHES[name])))
        self.env.setdefault("BENCH_DEVICE", "cuda")
        self.env.update({"BENCH_DTYPE": "bf16"} if half else {})
        self.ours = Side("ours", None, [OURS, name, THREADS], self.env)
        self.peers = [self.peer(layout, mode) for mode in modes for layout in self.layouts()]

    def layouts(self):
        return ["contiguous"] if self.name in TEXT else ["channels_last"] if self.half else ["contiguous", "channels_last"]

    def peer(self, layout, mode):
        return Side(f"PyTorch {torch_version()} ({mode}; {layout})", mode, [sys.executable, PEER, self.name, THREADS, layout, mode], self.env)

    def say(self, text):
        print(f"{self.label}: {text}", file=sys.stderr, flush=True)

    def each(self, sides, do):
        """Those that go on."""
        left = []
        for side in sides:
            try:
                do(side)
                left.append(side)
            except Gone as e:
                self.failed = True
                self.say(str(e))
        return left

    def load(self, side):
        start = time.monotonic()
        side.start()
        side.load(start + START_SECONDS)
        self.say(f"{side.name}: losses {side.first['losses']}, loaded after {time.monotonic() - start:.0f} s")

    def together(self, sides):
        """All of them loaded, in turns."""
        sides = self.each(sides, self.load)
        sides = self.each(sides, lambda side: side.turn(WARM_SECONDS))
        for i in range(ROUNDS):
            sides = self.each(sides, lambda side: side.rates.append(side.turn(SECONDS)))
            self.say(f"round {i + 1}: " + ", ".join(f"{s.name} {s.rates[-1]:.1f}" for s in sides))
        for side in sides:
            side.end()

    def emit(self, value, unit, peer=None, figure=None):
        ratio = peer and statistics.median(a / b for a, b in zip(self.ours.rates, peer.rates))
        print(json.dumps({"bench": "train-gpu", "figure": figure or self.label, "value": round(value, 2), "unit": unit,
                          "peer": peer and peer.name, "peer_value": peer and round(peer.median(), 2), "ratio": ratio and round(ratio, 3)}), flush=True)

    def check(self, peer):
        ours, theirs = self.ours.first["losses"], peer.first["losses"]
        near = [FIRST[self.half]] + [LATER] * len(theirs)
        falls = [losses[0] - losses[-1] for losses in (ours, theirs)]
        is_near = all(abs(a - b) <= n * max(1, abs(b)) for a, b, n in zip(ours, theirs, near))
        if not is_near or not abs(falls[0] - falls[1]) <= FALL * abs(falls[1]) + ROUNDING:
            self.failed = True
            self.say(f"the losses of {peer.name} differ")

    def report(self):
        rate = self.ours.median()
        unit = "tokens/s" if self.name in TEXT else "images/s"
        peers = [p for p in self.peers if p.rates]
        kinds = [[p for p in peers if (p.mode == "eager") == is_eager] for is_eager in (True, False)]
        bests = [max(kind, key=Side.median) for kind in kinds if kind]
        for best in bests or [None]:
            self.emit(rate, unit, best)
        self.emit(self.ours.first["items"] / rate * 1e3, "ms", figure=self.label + "_step")
        if self.name in GIGAFLOPS:
            peak = PEAK["bf16" if self.half else "f32"]
            self.emit(100 * rate * GIGAFLOPS[self.name] / (1e3 * peak), f"% of {peak} TFLOP/s", figure=self.label + "_arithmetic")
        for peer in peers:
            self.check(peer)

    def profile(self):
        """One side after the other, a turn of each."""
        for side in (self.ours, *self.peers):
            side.env = dict(side.env, DET_CUDA_PROFILE="1", PEER_PROFILE="1")
            self.each([side], lambda side: (self.load(side), side.turn(SECONDS)))
            side.end()

    def run(self, one_by_one):
        sides = [self.ours, *self.peers]
        for group in [[s] for s in sides] if one_by_one else [sides]:
            self.together(group)
        if self.ours.rates:
            self.report()


def torch_version():
    try:
        return metadata.version("torch").split("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the sides too
    modes = next((a.partition("=")[2] for a in sys.argv[1:] if a.startswith("--modes=")), "eager,compile,reduce-overhead").split(",")
    modes = [m for m in modes if m and (m == "eager" or not torch_version().startswith("1."))] if torch_version() else []
    names = [a for a in sys.argv[1:] if not a.startswith("--")] or list(BATCHES)
    unknown = [a for a in names if a not in BATCHES]
    if unknown:
        sys.exit(f"train-gpu: no figure {', '.join(unknown)}; there are {', '.join(BATCHES)}")
    figures = []
    for name in names:
        figures.append(Figure(name, "--bf16" in sys.argv, modes))
        if "--profile" in sys.argv:
            figures[-1].profile()
        else:
            figures[-1].run("--apart" in sys.argv)
    return int(any(f.failed for f in figures))


sys.exit(main())
