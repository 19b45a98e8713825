"""One rank of test_ranks.py. usage: rank.py WHAT    prints one line of JSON"""
import glob
import json
import logging
import os
import random
import resource
import sys
import tempfile
import types

import fake_horovod
import numpy as np
import torch
import torch.distributed as dist
from determined import InvalidHP, core, pytorch
from determined.pytorch import _open_grads
from support import LineTrial, Numbers


def collectives():
    d = core.DistributedContext.from_torch_distributed()
    out = {
        "gather": d.gather(d.rank),
        "allgather": d.allgather((d.rank, d.get_rank())),
        "broadcast": d.broadcast(f"of {d.rank}"),
        "gather_local": d.gather_local(d.rank),
        "allgather_local": d.allgather_local(d.rank),
        "broadcast_local": d.broadcast_local(f"local of {d.rank}"),
        "agents": d.get_num_agents(),
    }
    d.close()
    return out


class RankTrial(LineTrial):
    batch_size, shuffle = 2, True

    def __init__(self, context):
        super().__init__(context)
        self.count = context.wrap_reducer(sum, name="count")
        self.metrics, self.validation, self.records = [], [], 0

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.count.update(len(batch[0]))
        return super().train_batch(batch, epoch_idx, batch_idx)

    def build_callbacks(trial):
        class Take(pytorch.PyTorchCallback):
            def on_training_workload_end(self, avg_metrics, batch_metrics):
                trial.records += avg_metrics["count"]
                trial.metrics.append((avg_metrics, batch_metrics))

            def on_validation_end(self, metrics):
                trial.validation.append(metrics)

        return {"take": Take()}


def training():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    group = core.DistributedContext.from_torch_distributed()
    with pytorch.init(hparams={"global_batch_size": 4}, distributed=group, aggregation_frequency=2) as context:
        t = RankTrial(context)
        pytorch.Trainer(t, context).fit(max_length=pytorch.Epoch(2), reporting_period=pytorch.Batch(2), validation_period=pytorch.Batch(3))
    return {"weights": [p.tolist() for p in t.model.parameters()], "metrics": t.metrics, "validation": t.validation, "seen": t.seen, "count": t.records}


class Noisy(Numbers):
    """Augmented by the worker that reads it."""

    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return x + random.random() + np.random.rand() + torch.rand(()), y


class OwnSeeds(RankTrial):
    """Every rank has random numbers of its own: in its workers, and in what it does with a batch."""

    def __init__(self, context):
        torch.manual_seed(10 + context.distributed.rank)
        np.random.seed(20 + context.distributed.rank)
        random.seed(30 + context.distributed.rank)
        super().__init__(context)

    def build_training_data_loader(self):
        return pytorch.DataLoader(Noisy(), batch_size=2, shuffle=True, num_workers=1)

    def train_batch(self, batch, epoch_idx, batch_idx):
        noise = torch.rand(()) + np.random.rand() + random.random()
        return super().train_batch((batch[0] + noise.float(), batch[1]), epoch_idx, batch_idx)


def resumed(base=RankTrial):
    """The weights after six batches, three to an update, and what the rank saw in the last two: of a whole run, and of one
    that goes on from its checkpoint between updates."""
    dist.init_process_group("gloo")
    _open_grads.PIECES_BYTES = 100  # gradients go in many pieces

    def run(uuid):
        uuids = []

        class Trial(base):
            def build_callbacks(self):
                class Take(pytorch.PyTorchCallback):
                    def on_checkpoint_upload_end(self, uuid):
                        uuids.append(uuid)

                return {"take": Take()}

        torch.manual_seed(1)
        group = core.DistributedContext.from_torch_distributed()
        with pytorch.init(distributed=group, aggregation_frequency=3) as context:
            t = Trial(context)
            pytorch.Trainer(t, context).fit(max_length=pytorch.Batch(6), checkpoint_period=pytorch.Batch([4]), checkpoint_policy="none",
                                                 latest_checkpoint=uuid)
        return uuids[0], [p.tolist() for p in t.model.parameters()], t.seen[-2:]

    uuid, *whole = run(None)
    return {"whole": whole, "resumed": run(uuid)[1:]}


def own_seeds():
    return resumed(OwnSeeds)


class Wide(RankTrial):
    """Layers enough that where a gradient lies among the others decides in which order ranks add it up."""

    def __init__(self, context):
        super().__init__(context)
        layers = [torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)]
        self.model = context.wrap_model(torch.nn.Sequential(*layers))
        self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=1e-3))


def wide():
    return resumed(Wide)


class Mixture(torch.nn.Module):
    """Sparse gradients, a layer used twice, another kind of number, and one that learns nothing."""

    def __init__(self):
        super().__init__()
        self.table, self.twice = torch.nn.Embedding(10, 4, sparse=True), torch.nn.Linear(4, 4)
        self.fine, self.still = torch.nn.Linear(4, 1).double(), torch.nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, x):
        return self.fine(self.twice(self.twice(self.table(x))).double()) * self.still


def mixture():
    """The gradients that a hook of the user's hears of, and what is left in the parameters before the first batch."""
    dist.init_process_group("gloo")
    out = {}
    with pytorch.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        for watched in (False, True):
            inner, heard = Mixture(), []
            if watched:
                inner.twice.bias.register_hook(lambda gradient: heard.append(gradient.abs().sum().item() > 0))
            model = context.wrap_model(inner)
            before = [p.grad for p in model.parameters()]
            model(torch.tensor([context.distributed.rank, 5])).sum().backward()
            out["watched" if watched else "free"] = [before, heard, inner.table.weight.grad.is_sparse]
    return out


class Draws(RankTrial):
    """Ranks that draw, one more than the other, and an odd number of batches."""

    size = 13

    def train_batch(self, batch, epoch_idx, batch_idx):
        torch.rand(1 + self.context.distributed.rank)
        return super().train_batch(batch, epoch_idx, batch_idx)


def draws():
    """What the rank trained on in 14 batches, and from the fifth on after a resume."""
    dist.init_process_group("gloo")
    seen, uuid = [], None
    for _ in range(2):
        uuids = []

        class Trial(Draws):
            def build_callbacks(self):
                class Take(pytorch.PyTorchCallback):
                    def on_checkpoint_upload_end(self, uuid):
                        uuids.append(uuid)

                return {"take": Take()}

        with pytorch.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
            t = Trial(context)
            trainer = pytorch.Trainer(t, context)
            trainer.fit(pytorch.Batch([4]), max_length=pytorch.Batch(14), checkpoint_policy="none", latest_checkpoint=uuid)
        uuid = uuids[0]
        seen.append(t.seen)
    return seen


def no_room():
    """Temporary files that cannot be made, or have no room, on either rank: how many files came, and what was said."""
    d, out = core.DistributedContext.from_torch_distributed(), []
    model = torch.nn.Linear(1000, 100)
    model(torch.zeros(1000)).sum().backward()
    unlimited, usual = resource.getrlimit(resource.RLIMIT_FSIZE), tempfile.gettempdir()
    said = []
    logging.getLogger("determined.pytorch").addHandler(types.SimpleNamespace(level=0, handle=lambda r: said.append(r.getMessage())))
    for rank, way in ((0, "none"), (1, "none"), (0, "full"), (1, "full"), (2, "nobody")):
        del said[:]
        if d.rank == rank and way == "none":
            tempfile.tempdir = "/proc/self/none"
        if d.rank == rank and way == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, unlimited[1]))
        files = _open_grads.gather([model], 1, d)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        tempfile.tempdir = usual
        out.append([len(files), list(said)])
    return out


def buffers():
    """Validations of fewer batches than ranks and of the whole data set, by a model with running statistics of each rank."""
    dist.init_process_group("gloo")

    class Normed(RankTrial):
        def __init__(self, context):
            super().__init__(context)
            normed = torch.nn.BatchNorm1d(1)
            normed.register_buffer("own", torch.tensor([float(context.distributed.rank)]))
            normed._ddp_params_and_buffers_to_ignore = ["own"]
            self.normed = context.wrap_model(normed)
            self.statistics, self.own = [], []

        def loss(self, batch):
            return super().loss((self.normed(batch[0]), batch[1]))

        def build_validation_data_loader(self):
            return pytorch.DataLoader(Numbers(2), batch_size=2)

        def build_callbacks(trial):
            class Look(pytorch.PyTorchCallback):
                def on_validation_start(self):
                    trial.statistics.append(trial.normed.running_mean.item())
                    trial.own.append(trial.normed.own.item())

            return {"look": Look()}

    class Whole(Normed):
        evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

        def evaluate_full_dataset(self, data_loader):
            return {"error": sum(self.loss(batch).item() for batch in data_loader)}

    out = []
    for trial_class in (Normed, Whole):
        torch.manual_seed(1)
        with pytorch.init(distributed=core.DistributedContext.from_torch_distributed(), aggregation_frequency=2) as context:
            t = trial_class(context)
            pytorch.Trainer(t, context).fit(max_length=pytorch.Batch(5), validation_period=pytorch.Batch(1), checkpoint_policy="none")
        assert set(t.own) == {float(t.context.distributed.rank)}, t.own
        out.append(t.statistics)
    return out


class Apart(RankTrial):
    """Ranks that begin with different weights."""

    def __init__(self, context):
        super().__init__(context)
        with torch.no_grad():
            self.model.weight += context.distributed.rank


def horovod():
    """The same training twice: by DistributedDataParallel, then by Horovod, which must begin with rank 0's weights."""
    wanted = training()
    os.environ["USE_HOROVOD"] = "1"
    sys.modules.update({"horovod": fake_horovod, "horovod.torch": fake_horovod})
    torch.manual_seed(1)
    group = core.DistributedContext.from_horovod(fake_horovod)
    with pytorch.init(hparams={"global_batch_size": 4}, distributed=group, aggregation_frequency=2) as context:
        t = Apart(context)
        pytorch.Trainer(t, context).fit(max_length=pytorch.Epoch(2), reporting_period=pytorch.Batch(2), validation_period=pytorch.Batch(3))
    return {"wanted": wanted["weights"], "weights": [p.tolist() for p in t.model.parameters()], "made": fake_horovod.made}


class Refuses(LineTrial):
    """Rank 1 finds in its fourth batch that the hyperparameters cannot work; rank 0 waits for its gradients."""

    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 3 and self.context.distributed.get_rank() == 1:
            raise InvalidHP("too large")
        return super().train_batch(batch, epoch_idx, batch_idx)


def refuses():
    dist.init_process_group("gloo")
    group = core.DistributedContext.from_torch_distributed()
    try:
        with pytorch.init(hparams={"global_batch_size": 4}, distributed=group) as context:
            pytorch.Trainer(Refuses(context), context).fit(max_length=pytorch.Epoch(20))
    except SystemExit as e:
        saved = glob.glob(os.path.join(os.environ["XDG_DATA_HOME"], "determined", "*", "metadata.json"))
        steps = [json.load(open(path))["steps_completed"] for path in saved]
        return {"code": e.code, "steps": steps if group.rank == 0 else None}


class Freezes(LineTrial):
    """Opens its first layer after wrap_model(), and later freezes its second, beside a model with nothing to train; within a batch it may do as it likes."""

    def __init__(self, context):
        self.context, self.seen = context, []
        self.teacher = context.wrap_model(torch.nn.BatchNorm1d(1).requires_grad_(False))
        first, second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        first.requires_grad_(False)
        self.first, self.second = first, second
        self.model = context.wrap_model(torch.nn.Sequential(first, second))
        self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=1e-3))

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.second.requires_grad_(False).requires_grad_(True)
        self.teacher(batch[0])
        out = super().train_batch(batch, epoch_idx, batch_idx)
        self.first.requires_grad_(batch_idx >= 3)
        self.teacher.requires_grad_(batch_idx >= 5)
        self.second.requires_grad_(batch_idx < 5)
        return out


def freezes():
    dist.init_process_group("gloo")
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("determined.pytorch").addHandler(handler)
    with pytorch.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        pytorch.Trainer(Freezes(context), context).fit(max_length=pytorch.Batch(8), reporting_period=pytorch.Batch(2), checkpoint_policy="none")
    return [line for line in said if "context.wrap_model()" in line]


def sharded():
    d = core.DistributedContext.from_torch_distributed()
    with core.init(distributed=d, checkpoint_storage=os.environ["XDG_DATA_HOME"]) as context:
        mine = f"dir_{d.rank}"
        os.mkdir(mine)
        for name, text in ((f"rank_{d.rank}", str(d.rank)), ("both", "same")):
            with open(os.path.join(mine, name), "w") as f:
                f.write(text)
        uuid = context.checkpoint.upload(mine, {"steps_completed": 1, "of": {str(d.rank): d.rank}}, shard=True)
        with context.checkpoint.restore_path(uuid) as path:
            files = sorted(os.listdir(path))
        out = {"files": files, "metadata": context.checkpoint.get_metadata(uuid)}
        with open(os.path.join(mine, "both"), "w") as f:
            f.write(str(d.rank))
        try:
            context.checkpoint.upload(mine, {"steps_completed": 1}, shard=True)
        except RuntimeError as e:
            out["conflict"] = str(e).split(":")[0]
        return out


KINDS = {"collectives": collectives, "training": training, "horovod": horovod, "refuses": refuses, "resumed": resumed, "own_seeds": own_seeds, "wide": wide, "mixture": mixture, "draws": draws, "buffers": buffers,
         "no_room": no_room, "sharded": sharded, "freezes": freezes}
print(json.dumps(KINDS[sys.argv[1]]()), flush=True)
os._exit(0)  # not through the interpreter's shutdown, in which gloo's threads may block
