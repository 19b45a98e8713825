"""CIFAR-10 by a small residual network: crops and flips, SGD under one cycle of the learning rate, mixed precision by a switch."""
import glob

import numpy as np
import torch
from determined import pytorch
from torch import nn
from torch.nn import functional as F

MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).reshape(3, 1, 1)
STD = torch.tensor([0.2470, 0.2435, 0.2616]).reshape(3, 1, 1)


class Pictures(torch.utils.data.Dataset):
    """Files of the binary version: records of a label and 3 x 32 x 32 bytes."""

    def __init__(self, pattern, augment):
        paths = sorted(glob.glob(pattern))
        if not paths:
            raise FileNotFoundError(
                f"there is no {pattern}: unpack CIFAR-10's binary version, or let examples/cifar10/make_data.py write a small "
                "stand-in, and name its directory by --config data.path=DIRECTORY"
            )
        records = np.concatenate([np.fromfile(p, np.uint8) for p in paths]).reshape(-1, 3073)
        self.labels = torch.from_numpy(records[:, 0].astype(np.int64))
        self.pictures = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32))
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        picture = (self.pictures[i] / 255 - MEAN) / STD
        if self.augment:
            y, x, flip = torch.randint(0, 9, (3,)).tolist()
            picture = F.pad(picture, (4, 4, 4, 4))[:, y:y + 32, x:x + 32]
            picture = picture.flip(2) if flip % 2 else picture
        return picture, self.labels[i]


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.two = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norm_one(self.one(x)))
        return F.relu(self.norm_two(self.two(y)) + self.shortcut(x))


def network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Block(width, width, 1),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, 10),
    )


class CifarTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.path = context.get_data_config()["path"]
        if context.get_hparam("amp"):
            context.experimental.use_amp()  # before wrap_model; float16 on a GPU, nothing on a CPU
        self.training_set = Pictures(self.path + "/data_batch_*.bin", augment=True)
        self.model = context.wrap_model(network(context.get_hparam("width")))
        rate = context.get_hparam("max_lr")
        self.optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
        )
        # One cycle over the whole training: its length is a hyperparameter, for searchers stop trials at other ones.
        batches = -(-len(self.training_set) // context.get_global_batch_size())
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.OneCycleLR(self.optimizer, rate, epochs=context.get_hparam("epochs"), steps_per_epoch=batches),
            pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH,
        )

    def build_training_data_loader(self):
        return pytorch.DataLoader(
            self.training_set, batch_size=self.context.get_per_slot_batch_size(), shuffle=True
        )

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Pictures(self.path + "/test_batch.bin", augment=False), batch_size=100)

    def train_batch(self, batch, epoch_idx, batch_idx):
        pictures, labels = batch
        output = self.model(pictures)
        loss = F.cross_entropy(output, labels, label_smoothing=0.1)
        self.context.backward(loss)
        self.context.step_optimizer(
            self.optimizer, clip_grads=lambda parameters: nn.utils.clip_grad_norm_(parameters, 5.0)
        )
        rate = self.optimizer.param_groups[0]["lr"]
        return {"loss": loss, "train_accuracy": (output.argmax(1) == labels).float().mean(), "learning_rate": rate}

    def evaluate_batch(self, batch, batch_idx):
        pictures, labels = batch
        output = self.model(pictures)
        return {
            "validation_loss": F.cross_entropy(output, labels),
            "accuracy": (output.argmax(1) == labels).float().mean(),
        }
