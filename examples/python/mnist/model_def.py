"""MNIST with the network of PyTorch's own example."""
import torch
from data import mnist
from determined import pytorch
from torch import nn
from torch.nn import functional as F


def network(hp):
    return nn.Sequential(
        nn.Conv2d(1, hp["n_filters1"], 3),
        nn.ReLU(),
        nn.Conv2d(hp["n_filters1"], hp["n_filters2"], 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(hp["dropout1"]),
        nn.Flatten(),
        nn.Linear(hp["n_filters2"] * 12 * 12, 128),
        nn.ReLU(),
        nn.Dropout(hp["dropout2"]),
        nn.Linear(128, 10),
        nn.LogSoftmax(dim=1),
    )


class MNistTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.path = context.get_data_config().get("path")
        self.model = context.wrap_model(network(context.get_hparams()))
        self.optimizer = context.wrap_optimizer(
            torch.optim.Adam(self.model.parameters(), lr=context.get_hparam("learning_rate"))
        )
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=0.7),
            pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH,
        )

    def build_training_data_loader(self):
        return pytorch.DataLoader(
            mnist(self.path, training=True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True
        )

    def build_validation_data_loader(self):
        return pytorch.DataLoader(mnist(self.path, training=False), batch_size=100)

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, labels = batch
        loss = F.nll_loss(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        images, labels = batch
        output = self.model(images)
        return {
            "validation_loss": F.nll_loss(output, labels),
            "accuracy": (output.argmax(1) == labels).float().mean(),
        }
