"""DistributedDataParallel by a script of one's own, over the Core API, in bfloat16: NCCL for one rank, gloo for ranks that
share a device. With HOLD it waits in the midst of its first run until it is told to pause.
"""
import logging
import os
import time

import determined as det
import torch
from determined import core

STEPS, HOLD_AT = 30, 13
DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False


class Training:
    def __init__(self, ranks):
        nn = torch.nn
        torch.manual_seed(7)
        self.ranks = ranks
        net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(1024, 4)).to(DEVICE)
        self.model = nn.parallel.DistributedDataParallel(net, device_ids=[0] if DEVICE.type == "cuda" else None)
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step(self, n):
        torch.manual_seed(1000 * n + self.ranks.rank)  # of each device, too
        x, y = torch.rand(32, 1, 8, 8).to(DEVICE), torch.randint(0, 4, (32,)).to(DEVICE)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            out = self.model(x)
        loss = torch.nn.functional.cross_entropy(out.float(), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def state(self):
        return {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, path):
        state = torch.load(path, map_location=DEVICE)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def save(context, training, steps):
    if training.ranks.rank == 0:
        with context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
            torch.save(training.state(), path / "state_dict.pth")


def is_told_to_pause(context, held):
    while True:
        if context.preempt.should_preempt():
            return True
        if not held:
            return False
        time.sleep(0.01)


def main():
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    backend = "nccl" if DEVICE.type == "cuda" and os.environ["WORLD_SIZE"] == "1" else "gloo"
    torch.distributed.init_process_group(backend)
    latest = det.get_cluster_info().latest_checkpoint
    with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
        training, first = Training(context.distributed), 0
        if latest:
            with context.checkpoint.restore_path(latest) as path:
                training.load(path / "state_dict.pth")
            first = context.checkpoint.get_metadata(latest)["steps_completed"]
        print(f"rank {training.ranks.rank} of {training.ranks.size} on {DEVICE} by {backend}, from step {first}\n", end="", flush=True)
        for n in range(first, STEPS):
            loss = training.step(n)
            if training.ranks.rank == 0 and (n + 1) % 5 == 0:
                context.train.report_training_metrics(n + 1, {"loss": loss})
            if is_told_to_pause(context, held=n == HOLD_AT and os.environ.get("HOLD") and not latest):
                return save(context, training, n + 1)
        save(context, training, STEPS)
        if training.ranks.rank == 0:
            context.train.report_validation_metrics(STEPS, {"error": loss})


main()
