"""A line through noisy points, with dropout: everything that draws or remembers is in it."""

import os
import pwd
import time

import determined as det
import torch
from determined import pytorch


class Points(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.tensor([i / 48.0, 1.0]), torch.tensor([2.0 * i / 48.0])


class LineTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        hp = context.get_hparam
        if hp("lr") < 0:
            raise det.InvalidHP("lr must not be negative")
        if context.get_hparams().get("look_around"):
            assert context.get_data_config() == {}, context.get_data_config()
            print("looked around as", pwd.getpwuid(os.getuid()).pw_name, "in", os.getcwd(), flush=True)
        self.model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1)))
        self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=hp("lr"), momentum=0.9))
        context.wrap_lr_scheduler(torch.optim.lr_scheduler.StepLR(self.optim, 2, gamma=0.9), pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)
        if context.get_hparams().get("profiled"):  # from this batch on, to an end that does not come
            schedule = torch.profiler.schedule(wait=context.get_hparam("profiled"), warmup=1, active=1000)
            context.set_profiler(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule)
        # In one piece: ranks may share a pipe.
        print(f"hello from the trial {context.distributed.get_rank()} {context.distributed.get_size()}\n", end="", flush=True)

    def build_training_data_loader(self):
        if self.context.get_hparams().get("own_loader"):
            return self.own_loader()
        workers = self.context.get_hparams().get("workers", 0)
        return pytorch.DataLoader(Points(), batch_size=self.context.get_per_slot_batch_size(), shuffle=True, num_workers=workers)

    def own_loader(self):
        self.context.experimental.disable_dataset_reproducibility_checks()
        batches = torch.utils.data.BatchSampler(range(48), self.context.get_per_slot_batch_size(), drop_last=False)
        ranks, start = self.context.distributed, self.context.get_initial_batch()
        return torch.utils.data.DataLoader(
            Points(), batch_sampler=pytorch.adapt_batch_sampler(batches, repeat=True, skip=start, num_replicas=ranks.size, rank=ranks.rank)
        )

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Points(), batch_size=12)

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        if batch_idx == self.context.get_hparams().get("crash_at"):
            marker = os.path.join(self.context.get_data_config()["dir"], "crashed")
            if not os.path.exists(marker):
                open(marker, "w").close()
                raise RuntimeError("the crash that the test asked for")
        while batch_idx == 10 and os.path.exists(self.context.get_data_config().get("hold", "")):
            time.sleep(0.02)
        loss = ((self.model(x) - y) ** 2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optim)
        return {"loss": loss, "first": x[0, 0]}

    def evaluate_batch(self, batch):
        x, y = batch
        if self.context.get_data_config().get("text"):
            return {"error": "high"}
        return {"error": ((self.model(x) - y) ** 2).mean()}
