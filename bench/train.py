#!/usr/bin/env python3
"""train: items per second of whole training steps beside PyTorch's, from the same weights and batches.

usage: bench/run train [--bf16] [--compile] [FIGURE...]    default: all

--bf16: both sides with autocast, which a CPU with avx512_bf16 is half as fast again with. --compile: torch.compile is tried too
(PyTorch 2). Debian 13 has PyTorch 2: `tests/newer/run FOLDER` makes one, `tests/newer/run FOLDER bench/run train ...` runs there.

Ours (programs/train.c) and PyTorch (peer_train.py) stay loaded and take turns, 2 threads each; who has no turn is stopped
(SIGSTOP), so that threads which spin while they wait take nothing from the others. PyTorch is at its best: OpenBLAS is
told the CPU (it falls back on slow kernels where it does not know it) and is the build that shares PyTorch's threads;
a few short rounds try both memory layouts with each of OpenMP's ways of waiting (WAITS), and the two fastest go into
the real rounds, of which the better median counts. Ours waits as det-task has it. The ratio is the median of the
rounds' ratios. GPT-2's processes lose speed by being stopped: each of its turns is a process of its own, which ends. In f32
ours takes Winograd's way for 3x3 convolutions of stride 1 and 32 channels or more. The first losses must agree. peak_memory is the growth of resident memory, from before the network
is made to the peak of its first steps, against PyTorch's thriftiest. DET_BENCH_ROUNDS and DET_BENCH_SECONDS (of a turn)
change the defaults, 5 and 2; where OMP_WAIT_POLICY is set, both sides wait so. On a GPU: train-gpu.
"""
import atexit
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(os.environ.get("DET_BUILD", os.path.join(HERE, "..", "build")), "bench", "bench-train")
ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", 5))
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", 2))
THREADS = "2"
FIGURES = {"mnist_cnn": "images/s", "mnist_dropout": "images/s", "resnet18_32": "images/s", "resnet18_224": "images/s", "lstm": "tokens/s",
           "gpt2_small": "tokens/s"}
TEXT = ("lstm", "gpt2_small")  # one memory layout
ALONE = ("gpt2_small",)
MEMORY = {"resnet18_32": "peak_memory_32", "resnet18_224": "peak_memory_224"}
LAYOUTS = ("contiguous", "channels_last")
MODES = ("eager", "compile")
TASK = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "10000"}  # as det-task sets them
WAITS = {"OpenMP's default": {}, "active": {"OMP_WAIT_POLICY": "active"}, "passive": {"OMP_WAIT_POLICY": "passive"},
         "passive, 10,000 turns": TASK}
PYTHON = "/usr/bin/python3"
TRIAL_ROUNDS, TRIAL_SECONDS = 3, 0.5


def environment():
    with open("/proc/cpuinfo") as f:
        avx512 = re.search(r"\bavx512f\b", f.read())
    env = dict(os.environ, OMP_NUM_THREADS=THREADS, OPENBLAS_NUM_THREADS=THREADS)
    env["OPENBLAS_CORETYPE"] = "SkylakeX" if avx512 else "Haswell"
    env["CPATH"] = "/usr/include:/usr/include/torch/csrc/api/include"  # where torch.compile's C++ finds libtorch-dev's headers
    blas = glob.glob("/usr/lib/*/openblas-openmp")
    if blas:
        env["LD_LIBRARY_PATH"] = ":".join([blas[0], *filter(None, [env.get("LD_LIBRARY_PATH")])])
    return env


class Side:
    """One process that trains when it is told to, and is stopped else; with `alone` it ends, and each turn has its own."""

    def __init__(self, name, command, wait, alone):
        self.name, self.rates, self.command, self.alone = name, [], command, alone
        self.env = environment() if "OMP_WAIT_POLICY" in os.environ else dict(environment(), **wait)
        self.first = self.start()
        self.rest()

    def start(self):
        self.p = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        atexit.register(self.p.kill)
        return json.loads(self.line())

    def rest(self):
        if self.alone:
            self.end()
        else:
            self.p.send_signal(signal.SIGSTOP)

    def line(self):
        text = self.p.stdout.readline()
        if not text:
            sys.exit(f"train: {self.name} ended with status {self.p.wait()}")
        return text

    def turn(self, seconds):
        if self.alone:
            self.start()
        self.p.send_signal(signal.SIGCONT)
        self.p.stdin.write(f"{seconds}\n")
        self.p.stdin.flush()
        self.rates.append(float(self.line()))
        self.rest()

    def median(self):
        return statistics.median(self.rates)

    def end(self):
        self.p.stdin.close()
        self.p.wait()
        atexit.unregister(self.p.kill)

    def close(self):
        if not self.alone:
            self.p.send_signal(signal.SIGCONT)
            self.end()


def is_half():
    return os.environ.get("BENCH_DTYPE") == "bf16"


def agree(ours, theirs):
    near = 3e-2 if is_half() else 2e-3
    return all(abs(a - b) <= near * max(1, abs(b)) for a, b in zip(ours, theirs))


def emit(figure, value, unit, peer=None, peer_value=None, ratio=None):
    figure += "_bf16" if is_half() else ""
    print(json.dumps({"bench": "train", "figure": figure, "value": round(value, 2), "unit": unit, "peer": peer,
                      "peer_value": peer_value and round(peer_value, 2), "ratio": ratio and round(ratio, 3)}), flush=True)


def report(figure, ours, peers):
    best = max(peers, key=Side.median, default=None)
    ratio = best and statistics.median(a / b for a, b in zip(ours.rates, best.rates))
    emit(figure, ours.median(), FIGURES[figure], best and best.name, best and best.median(), ratio)


def report_memory(figure, ours, peers):
    thrifty = min(peers, key=lambda p: p.first["peak_mb"], default=None)
    mb = thrifty and thrifty.first["peak_mb"]
    emit(MEMORY[figure], ours.first["peak_mb"], "MB", thrifty and thrifty.name, mb, mb and mb / ours.first["peak_mb"])


def load_peers(figure, version, modes):
    """All ways of PyTorch's; a compiled network waits in the way that is its default, as it takes up to 40 s to be made."""
    script = os.path.join(HERE, "peer_train.py")
    waits = {"as ours": {}} if "OMP_WAIT_POLICY" in os.environ else WAITS
    ways = [(layout, wait, mode) for mode in modes for layout in LAYOUTS[:1 if figure in TEXT else 2]
            for wait in (waits if mode == "eager" else list(waits)[:1])]
    return [Side(f"PyTorch {version} ({mode}; {layout}; {wait})", [PYTHON, script, figure, THREADS, layout, mode], waits[wait], figure in ALONE)
            for layout, wait, mode in ways]


def told(figure, what, sides):
    print(f"{figure}, {what}: " + ", ".join(f"{s.name} {s.rates[-1]:.1f}" for s in sides), file=sys.stderr)


def fastest(figure, ours, peers):
    """The two peers that win some short rounds; the others end. Ours takes part, to be as warm as they are."""
    for i in range(TRIAL_ROUNDS):
        for side in (ours, *peers):
            side.turn(TRIAL_SECONDS)
        told(figure, f"trial {i + 1}", (ours, *peers))
    peers = sorted(peers, key=Side.median, reverse=True)
    for p in peers[2:]:
        p.close()
    for side in (ours, *peers[:2]):
        side.rates.clear()
    return peers[:2]


def run(figure, version, modes):
    ours = Side("ours", [OURS, figure, THREADS], TASK, figure in ALONE)
    peers = load_peers(figure, version, modes) if version else []
    for p in peers:
        if not agree(ours.first["losses"], p.first["losses"]):
            sys.exit(f"train: {figure}: the losses differ: ours {ours.first['losses']}, {p.name} {p.first['losses']}")
    if figure in MEMORY:
        report_memory(figure, ours, peers)
    peers = fastest(figure, ours, peers)
    for i in range(ROUNDS):
        for side in (ours, *peers):
            side.turn(SECONDS)
        told(figure, f"round {i + 1}", (ours, *peers))
    report(figure, ours, peers)
    for side in (ours, *peers):
        side.close()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the stopped processes too
    options = {"--bf16", "--compile"} & set(sys.argv[1:])
    wanted = [a for a in sys.argv[1:] if a not in options] or list(FIGURES)
    unknown = [a for a in wanted if a not in FIGURES]
    if unknown:
        sys.exit(f"train: no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    if "--bf16" in options:
        os.environ["BENCH_DTYPE"] = "bf16"
    look = "import torch, torchvision; print(torch.__version__.split('a')[0].rsplit('.', 1)[0])"
    version = subprocess.run([PYTHON, "-c", look], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
    for figure in wanted:
        run(figure, version, MODES if "--compile" in options else MODES[:1])


main()
