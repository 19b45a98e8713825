#!/usr/bin/env python3
"""loop-python: what the loop adds to a PyTorch trial's own work, per batch; and what importing the package adds.

usage: bench/run loop-python

overhead_per_batch, overhead_ten_metrics: Trainer.fit() of a 1x1 linear model, batch 1, 1,000 batches, a report every 100, beyond
the same model, loader and arithmetic in a bare PyTorch loop (each metric to numpy, means every 100), in CPU time of the thread;
medians of DET_BENCH_ROUNDS (40) paired rounds. Where the quartiles are on both sides of nothing, the figure says "at most" and is
the upper one, and there is no ratio: it would be one of noise. The peer is Determined's own loop, whose overhead is 1.0 and 3.7 times the bare
loop (measured on torch 1.13 in the same way), scaled by the bare loop of this run.
import: `from determined import pytorch` after `import torch`, in a process of its own each; CPU time again.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "40"))
BATCHES, REPORT = 1000, 100
PEER = {1: 1.0, 10: 3.7}  # times the bare loop, by metrics per batch
IMPORT = ("import torch, time; t = time.process_time(); from determined import pytorch; from determined import _loop; "
          "print((time.process_time() - t) * 1e3)")


def emit(figure, values, unit, peer_value):
    """The median, or where that is within the noise about nothing, what it is at most."""
    low, median, high = statistics.quantiles(values, n=4)
    told = low > 0
    ratio = round(peer_value / median, 2) if told and peer_value else None
    print(json.dumps({"bench": "loop-python", "figure": figure if told else f"{figure} (at most)", "value": round(median if told else max(high, 0), 2),
                      "unit": unit, "peer": "Determined 0.27.0" if peer_value else None, "peer_value": peer_value and round(peer_value, 1), "ratio": ratio}),
          flush=True)


def names(metrics):
    return ["loss"] + [f"m{i}" for i in range(1, metrics)]


def measure():
    """{metrics: [(bare, ours)]} in us per batch."""
    import numpy as np
    import torch
    from determined import pytorch

    torch.set_num_threads(1)

    class Ones(torch.utils.data.Dataset):
        def __len__(self):
            return BATCHES

        def __getitem__(self, i):
            return torch.ones(1), torch.ones(1)

    def loss_of(model, batch):
        x, y = batch
        return ((model(x) - y) ** 2).mean()

    def bare(metrics):
        model = torch.nn.Linear(1, 1)
        optim = torch.optim.SGD(model.parameters(), lr=0.01)
        keys, kept = names(metrics), []
        began = time.thread_time()
        for batch in torch.utils.data.DataLoader(Ones(), batch_size=1):
            loss = loss_of(model, batch)
            loss.backward()
            optim.step()
            optim.zero_grad()
            kept.append({k: loss.detach().numpy() for k in keys})
            if len(kept) == REPORT:
                {k: np.mean([m[k] for m in kept]) for k in keys}
                kept = []
        return (time.thread_time() - began) / BATCHES * 1e6

    class Trial(pytorch.PyTorchTrial):
        def __init__(self, context, metrics):
            self.context, self.keys = context, names(metrics)
            self.model = context.wrap_model(torch.nn.Linear(1, 1))
            self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

        def build_training_data_loader(self):
            return pytorch.DataLoader(Ones(), batch_size=1)

        def build_validation_data_loader(self):
            return pytorch.DataLoader(torch.utils.data.Subset(Ones(), [0]), batch_size=1)

        def train_batch(self, batch, epoch_idx, batch_idx):
            loss = loss_of(self.model, batch)
            self.context.backward(loss)
            self.context.step_optimizer(self.optim)
            return {k: loss for k in self.keys}

        def evaluate_batch(self, batch):
            return {"v": 1.0}

        def build_callbacks(trial):
            class Clock(pytorch.PyTorchCallback):
                def on_training_start(self):
                    trial.began = time.thread_time()

                def on_training_epoch_end(self, epoch_idx):
                    trial.ended = time.thread_time()

            return {"clock": Clock()}

    def ours(metrics):
        with pytorch.init(enable_tensorboard_logging=False) as context:
            trial = Trial(context, metrics)
            pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(BATCHES), reporting_period=pytorch.Batch(REPORT), checkpoint_policy="none")
        return (trial.ended - trial.began) / BATCHES * 1e6

    def pair(metrics, turn):
        if turn % 2:
            return tuple(reversed((ours(metrics), bare(metrics))))
        return bare(metrics), ours(metrics)

    return {n: [pair(n, turn) for turn in range(ROUNDS + 2)][2:] for n in PEER}


def environment(where):
    package = os.path.join(os.environ.get("DET_BUILD", os.path.join(HERE, "..", "build")), "prefix", "lib", "det", "python")
    return dict(os.environ, PYTHONPATH=os.path.abspath(package), XDG_DATA_HOME=where, OPENBLAS_CORETYPE="SkylakeX", OMP_NUM_THREADS="1")


def ahead():
    """Before the machine's other work, where that is allowed."""
    chrt = ["chrt", "-f", "10"]
    return chrt if subprocess.run(chrt + ["true"], capture_output=True).returncode == 0 else []


def main():
    with tempfile.TemporaryDirectory(prefix="det-bench-") as where:
        env = environment(where)
        out = subprocess.run([*ahead(), PYTHON, __file__, "--measure"], env=env, cwd=where, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        rounds = {int(n): v for n, v in json.loads(out.stdout.splitlines()[-1]).items()}
        imports = [float(subprocess.run([*ahead(), PYTHON, "-c", IMPORT], env=env, cwd=where, check=True, stdout=subprocess.PIPE, text=True).stdout)
                   for _ in range(5)]
    for metrics, figure in ((1, "overhead_per_batch"), (10, "overhead_ten_metrics")):
        bare = statistics.median(b for b, _ in rounds[metrics])
        more = [o - b for b, o in rounds[metrics]]
        low, _, high = statistics.quantiles(more, n=4)
        print(f"{figure}: bare {bare:.1f} us, beyond it {statistics.median(more):.1f} (quartiles {low:.1f} to {high:.1f})", file=sys.stderr)
        emit(figure, more, "us", PEER[metrics] * bare)
    print("import: " + ", ".join(f"{v:.1f}" for v in imports) + " ms", file=sys.stderr)
    emit("import", imports, "ms", None)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(measure()))
    else:
        main()
