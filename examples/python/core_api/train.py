"""The Core API: a training loop of your own, which reports, saves, resumes, and stops when the cluster asks.

usage: python3 train.py [--batches N]        without a cluster: a shorter run, whose reports go to the log
"""
import argparse
import logging

import determined as det
import torch
from determined import core
from torch import nn

REPORT_EVERY, SAVE_EVERY = 50, 200


class Sine:
    """A noisy sine, and a small network that learns it."""

    def __init__(self, learning_rate, width):
        torch.manual_seed(777)
        self.x = torch.rand(1024, 1) * 6 - 3
        self.y = torch.sin(self.x) + 0.1 * torch.randn_like(self.x)
        self.model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=learning_rate)

    def train(self):
        chosen = torch.randint(0, len(self.x), (32,))
        loss = nn.functional.mse_loss(self.model(self.x[chosen]), self.y[chosen])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def validate(self):
        x = torch.linspace(-3, 3, 200).unsqueeze(1)
        with torch.no_grad():
            return nn.functional.mse_loss(self.model(x), torch.sin(x)).item()

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "random": torch.get_rng_state()}

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])


def save(context, sine, steps):
    with context.checkpoint.store_path({"steps_completed": steps}) as (path, uuid):
        torch.save(sine.state(), path / "state.pth")
    return uuid


def load(context, sine, uuid):
    """The batches that the checkpoint has behind it."""
    with context.checkpoint.restore_path(uuid) as path:
        sine.load(torch.load(path / "state.pth"))
    return context.checkpoint.get_metadata(uuid)["steps_completed"]


def train_until(context, sine, steps, op, length):
    """Trains from `steps` on. The batches trained: fewer than `length` if the cluster wants the slot back."""
    losses = []
    while steps < length:
        losses.append(sine.train())
        steps += 1
        if steps % REPORT_EVERY == 0 or steps == length:
            context.train.report_training_metrics(steps, {"loss": sum(losses) / len(losses)})
            if length == op.length:  # without a cluster nobody asked for --batches
                op.report_progress(steps)
            losses = []
            if context.preempt.should_preempt():
                save(context, sine, steps)
                return steps
        if steps % SAVE_EVERY == 0 and steps < length:
            context.train.report_validation_metrics(steps, {"validation_loss": sine.validate()})
            save(context, sine, steps)
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=2000)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info else {"learning_rate": 0.005, "width": 32}

    with core.init() as context:
        sine, steps = Sine(**hparams), 0
        if info and info.latest_checkpoint:
            steps = load(context, sine, info.latest_checkpoint)
        for op in context.searcher.operations():  # how long to train; a halving searcher asks for more, bit by bit
            length = op.length if info else args.batches
            steps = train_until(context, sine, steps, op, length)
            if steps < length:
                return  # preempted: the next run goes on from the checkpoint
            validation_loss = sine.validate()
            context.train.report_validation_metrics(steps, {"validation_loss": validation_loss})
            save(context, sine, steps)
            op.report_completed(validation_loss)


if __name__ == "__main__":
    main()
