"""The Trainer: one script, which trains by itself and, submitted unchanged, on a cluster.

usage: python3 train.py [--epochs N] [--test-mode]
"""
import argparse
import gzip
import logging

import determined as det
import numpy as np
import torch
from determined import pytorch
from torch import nn
from torch.nn import functional as F

HPARAMS = {"global_batch_size": 32, "learning_rate": 0.05, "dropout": 0.1}  # where no cluster gives others


def digits(training):
    """8x8 images of handwritten digits; every fifth is kept for validation."""
    with gzip.open("digits.csv.gz", "rt") as f:
        rows = torch.from_numpy(np.loadtxt(f, delimiter=",", dtype=np.float32))
    rows = rows[(torch.arange(len(rows)) % 5 != 4) == training]
    return torch.utils.data.TensorDataset(rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long())


class DigitsTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(
            nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(16, 32, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Dropout(context.get_hparam("dropout")),
                nn.Linear(32 * 4 * 4, 10),
            )
        )
        self.optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("learning_rate"), momentum=0.9)
        )

    def build_training_data_loader(self):
        return pytorch.DataLoader(digits(True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(digits(False), batch_size=100)

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, labels = batch
        loss = F.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        images, labels = batch
        return {"accuracy": (self.model(images).argmax(1) == labels).float().mean()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--test-mode", action="store_true", help="one batch of everything")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)

    info = det.get_cluster_info()  # None where there is no cluster
    if info is None:
        torch.manual_seed(777)  # a cluster seeds by itself
        hparams, where = HPARAMS, {"max_length": pytorch.Epoch(args.epochs), "test_mode": args.test_mode}
    else:
        hparams, where = info.trial.hparams, {"latest_checkpoint": info.latest_checkpoint}
    with pytorch.init(hparams=hparams) as context:
        trainer = pytorch.Trainer(DigitsTrial(context), context)
        trainer.fit(
            validation_period=pytorch.Epoch(1), reporting_period=pytorch.Batch(15), checkpoint_policy="best", **where
        )


if __name__ == "__main__":
    main()
