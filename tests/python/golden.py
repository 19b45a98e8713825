"""A trial that writes down every hook, as tests/unit/trial/test_hooks.c does in C, and the file that both must match.

usage: golden.py RANK     one rank of several, of environment variables as a launcher sets them; prints its trace
"""
import json
import logging
import os
import pickle
import re
import sys

import torch
from determined import core, pytorch
from support import Numbers

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/trial/golden_hooks.txt")
BATCH, RECORDS = 4, 12
CHIEF_ONLY = re.compile(r"(report|(a|b): (state_dict|on_checkpoint_save_start|on_checkpoint_write_end))\b.*")
trace = []


def golden():
    with open(GOLDEN) as f:
        return f.read()


class Hooks(pytorch.PyTorchCallback):
    def __init__(self, name):
        self.name = name

    def note(self, what):
        trace.append(f"{self.name}: {what}")

    def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
        self.note(f"on_trial_startup {first_batch_idx}" + (" uuid" if checkpoint_uuid else ""))

    def on_training_start(self):
        self.note("on_training_start")

    def on_training_epoch_start(self, epoch_idx):
        self.note(f"on_training_epoch_start {epoch_idx}")

    def on_training_epoch_end(self, epoch_idx):
        self.note(f"on_training_epoch_end {epoch_idx}")

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.note(f"on_training_workload_end, {len(batch_metrics)} batches")
        assert avg_metrics["batch"] == sum(m["batch"] for m in batch_metrics) / len(batch_metrics)

    def on_validation_start(self):
        self.note("on_validation_start")

    def on_validation_epoch_start(self):
        self.note("on_validation_epoch_start")

    def on_validation_epoch_end(self, outputs):
        self.note(f"on_validation_epoch_end, {len(outputs)} batches")
        assert [m["val"] for m in outputs] == [10, 11, 12]

    def on_validation_end(self, metrics):
        self.note("on_validation_end")
        assert metrics["val"] == 11

    def on_checkpoint_load_start(self, checkpoint):
        self.note("on_checkpoint_load_start")
        assert checkpoint["mine"] == {"list": [1, 2.5, "x", None], "yes": True}

    def on_checkpoint_write_end(self, checkpoint_dir):
        self.note("on_checkpoint_write_end")

    def on_checkpoint_upload_end(self, uuid):
        self.note("on_checkpoint_upload_end")

    def on_trial_shutdown(self):
        self.note("on_trial_shutdown")

    def state_dict(self):
        self.note("state_dict")
        return {"of": self.name}

    def load_state_dict(self, state_dict):
        self.note(f"load_state_dict {json.dumps(state_dict)}")


class Saving(Hooks):
    def on_checkpoint_save_start(self, checkpoint):
        self.note("on_checkpoint_save_start")
        checkpoint["mine"] = {"list": [1, 2.5, "x", None], "yes": True}


def constant(epoch):
    trace.append(f"  lr_step, epoch {epoch}")
    return 1


class Tiny(pytorch.PyTorchTrial):
    records = RECORDS  # of all ranks

    def __init__(self, context):
        trace.append("create")
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optim, constant)
        context.wrap_lr_scheduler(schedule, pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)

    def loader(self, what):
        trace.append(what)
        return pytorch.DataLoader(Numbers(self.records), batch_size=BATCH)

    def build_training_data_loader(self):
        return self.loader("build_training_data_loader")

    def build_validation_data_loader(self):
        return self.loader("build_validation_data_loader")

    def train_batch(self, batch, epoch_idx, batch_idx):
        trace.append(f"train_batch {batch_idx}")
        self.context.backward((self.model(batch[0]) ** 2).mean())
        self.context.step_optimizer(self.optim)
        return {"batch": float(batch_idx)}

    def evaluate_batch(self, batch, batch_idx):
        trace.append(f"evaluate_batch {batch_idx}")
        return {"val": 10.0 + batch_idx}

    def build_callbacks(self):
        trace.append("build_callbacks")
        return pickle.loads(pickle.dumps({"a": Saving("a"), "b": Hooks("b")}))  # as a trial that crosses processes has them


class Reports(logging.Handler):
    """What a local run would have reported, as lines of the trace."""

    KINDS = (("report_training_metrics", "report"), ("report_validation_metrics", "report validation"), ("saved checkpoint", "report checkpoint"))

    def emit(self, record):
        text = record.getMessage()
        for start, what in self.KINDS:
            if text.startswith(start):
                trace.append(f"{what} {re.search('steps_completed=([0-9]+)', text)[1]}")


def fit(epochs, uuid, distributed):
    found = []

    class Kept(Tiny):
        records = RECORDS * (distributed.size if distributed else 1)

    class Uuid(logging.Handler):
        def emit(self, record):
            found.extend(re.findall("saved checkpoint ([^ ]+)", record.getMessage()))

    log, handlers = logging.getLogger("determined.core"), (Reports(), Uuid())
    log.setLevel(logging.INFO)
    for h in handlers:
        log.addHandler(h)
    try:
        with pytorch.init(distributed=distributed) as context:
            pytorch.Trainer(Kept(context), context).fit(
                max_length=pytorch.Epoch(epochs), checkpoint_period=pytorch.Epoch(1), validation_period=pytorch.Batch(4),
                reporting_period=pytorch.Batch(2), checkpoint_policy="none", step_zero_validation=True, latest_checkpoint=uuid)
            trace.append("destroy")
            return context.distributed.broadcast(found[-1] if found else None)
    finally:
        for h in handlers:
            log.removeHandler(h)


def run(group=lambda: None):
    """Both parts of the golden file; the trace as its text. group() gives the ranks, for each fit anew."""
    trace.clear()
    trace.append("---- two epochs")
    uuid = fit(2, None, group())
    trace.append("---- one more, from the checkpoint")
    fit(3, uuid, group())
    return "".join(line + "\n" for line in trace)


if __name__ == "__main__":
    torch.distributed.init_process_group("gloo")
    print(json.dumps(run(core.DistributedContext.from_torch_distributed)), flush=True)
    os._exit(0)  # not through the interpreter's shutdown, in which gloo's threads may block
