#!/usr/bin/env python3
"""start: python_first_batch: `det e create` of a PyTorchTrial to its first training batch, beyond `import torch` alone.

usage: bench/run first_batch_python
Medians of DET_BENCH_ROUNDS (9), each a submission to an idle cluster and a `python3 -c "import torch"` (until it is imported) in turn, after one
of each that does not count; each round on standard error.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import Cluster, wait_until  # noqa: E402
from start import emit, first_batch_ms  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "9"))
PYTHON = "/usr/bin/python3"
MODEL = """
import os, time
import torch
from determined import pytorch

class Line(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

    def loader(self):
        ones = torch.ones(64, 1)
        return pytorch.DataLoader(torch.utils.data.TensorDataset(ones, ones), batch_size=8)

    build_training_data_loader = build_validation_data_loader = loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 0:
            with open(os.environ["BENCH_FILE"], "w") as f:
                f.write(str(time.time_ns()))
        return {"loss": 1.0}

    def evaluate_batch(self, batch):
        return {"error": 1.0}
"""
CONFIG = {"name": "start", "entrypoint": "model_def:Line", "max_restarts": 0, "hyperparameters": {"global_batch_size": 8},
          "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 2}}}


def torch_ms():
    """From the start of the interpreter to the end of the import."""
    began = time.time_ns()
    done = subprocess.run([PYTHON, "-c", "import torch, time; print(time.time_ns())"], check=True, capture_output=True, text=True)
    return (int(done.stdout) - began) / 1e6


def once(c, context):
    out, conf = c.path("first"), c.path("start.json")
    with open(conf, "w") as f:
        json.dump({**CONFIG, "environment": {"environment_variables": ["BENCH_FILE=" + out]}}, f)
    ms, r = first_batch_ms(lambda: c.det("experiment", "create", conf, context), out)
    c.wait(int(re.search("experiment ([0-9]+)", r.stdout)[1]), seconds=120)
    wait_until(c.slots_free, 30, "free slots")
    return ms


def main():
    more = []
    with Cluster(agents=1, slots=1) as c:
        context = c.path("context")
        os.mkdir(context)
        with open(os.path.join(context, "model_def.py"), "w") as f:
            f.write(MODEL)
        for n in range(ROUNDS + 1):
            alone, whole = torch_ms(), once(c, context)
            print(f"round {n}: {whole:.0f} ms, import torch {alone:.0f} ms", file=sys.stderr)
            more.append(whole - alone)
    emit("python_first_batch", statistics.median(more[1:]), None, None)


if __name__ == "__main__":
    main()
