"""Metrics that no average gives: points of three spirals, of which the third is rare, classified by a small network.

Accuracy hardly notices a class that is never found. F1 does, but it is no mean over batches: it needs the counts of the
whole validation, of all ranks. So there are two reducers: a MetricReducer with a confusion matrix, for validation, and
a function over every batch's loss, for training.
"""
import math
import statistics

import torch
from determined import pytorch
from torch import nn
from torch.nn import functional as F

CLASSES = ("common", "seldom", "rare")


def spirals(each, seed):
    """Points along three arms, ten times as many on the first as on the last."""
    g = torch.Generator().manual_seed(seed)
    points, labels = [], []
    for label, n in enumerate((10 * each, 3 * each, each)):
        radius = 0.1 + 0.9 * torch.rand(n, generator=g)
        angle = 4 * radius + label * 2 * math.pi / 3 + 0.4 * (torch.rand(n, generator=g) - 0.5)
        points.append(torch.stack((radius * angle.cos(), radius * angle.sin()), dim=1))
        labels.append(torch.full((n,), label))
    return torch.utils.data.TensorDataset(torch.cat(points), torch.cat(labels))


class F1(pytorch.MetricReducer):
    """F1 of every class, from a confusion matrix: counts[actual][predicted]."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.counts = torch.zeros(len(CLASSES), len(CLASSES))

    def update(self, actual, predicted):
        self.counts.index_put_((actual.cpu(), predicted.cpu()), torch.ones(len(actual)), accumulate=True)

    def per_slot_reduce(self):
        """This rank's value: anything that can be pickled."""
        return self.counts

    def cross_slot_reduce(self, per_slot_metrics):
        """Every rank's value, in rank order, on every rank. Without a name in wrap_reducer: a dict of metrics."""
        counts = torch.stack(list(per_slot_metrics)).sum(0)
        f1 = 2 * counts.diagonal() / (counts.sum(0) + counts.sum(1)).clamp(min=1)
        return {**{"f1_" + name: f1[i].item() for i, name in enumerate(CLASSES)}, "f1_mean": f1.mean().item()}


class SpiralsTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        width = context.get_hparam("width")
        self.model = context.wrap_model(
            nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
        )
        self.optimizer = context.wrap_optimizer(
            torch.optim.Adam(self.model.parameters(), lr=context.get_hparam("learning_rate"))
        )
        self.f1 = context.wrap_reducer(F1(), for_training=False)
        self.losses = context.wrap_reducer(statistics.median, name="median_loss", for_validation=False)

    def build_training_data_loader(self):
        return pytorch.DataLoader(spirals(60, seed=1), batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(spirals(20, seed=2), batch_size=50)

    def train_batch(self, batch, epoch_idx, batch_idx):
        points, labels = batch
        loss = F.cross_entropy(self.model(points), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.losses.update(loss.item())
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        points, labels = batch
        output = self.model(points)
        self.f1.update(labels, output.argmax(1))
        return {"validation_loss": F.cross_entropy(output, labels)}
