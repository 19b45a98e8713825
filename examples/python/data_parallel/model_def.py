"""Data parallelism: two processes, each with half of every batch, one model."""
import gzip
import logging
import os
import shutil
import tempfile

import numpy as np
import torch
from determined import pytorch
from torch import nn
from torch.nn import functional as F

logger = logging.getLogger("digits")


def download(source, directory):
    """Stands for a download: ranks of one host must not write the same file, so each has a directory of its own."""
    return shutil.copy(source, directory)


def digits(path, training):
    """8x8 images of handwritten digits; every fifth is kept for validation."""
    with gzip.open(path, "rt") as f:
        rows = torch.from_numpy(np.loadtxt(f, delimiter=",", dtype=np.float32))
    rows = rows[(torch.arange(len(rows)) % 5 != 4) == training]
    return torch.utils.data.TensorDataset(rows[:, :64] / 16, rows[:, 64].long())


class ParallelTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        ranks = context.distributed
        self.directory = tempfile.mkdtemp(prefix=f"digits-rank{ranks.get_rank()}-")
        self.path = download(context.get_data_config().get("path", "digits.csv.gz"), self.directory)
        logger.warning(  # ranks other than 0 log from warnings on
            f"rank {ranks.get_rank()} of {ranks.get_size()}: {context.get_per_slot_batch_size()} records of each batch"
        )
        width = context.get_hparam("width")
        # Several ranks: a DistributedDataParallel, which averages gradients over the ranks in backward().
        self.model = context.wrap_model(
            nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
        )
        self.optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("learning_rate"), momentum=0.9)
        )
        self.seen = context.wrap_reducer(sum, name="records", for_validation=False)  # of all ranks together

    def build_callbacks(self):
        class CleanUp(pytorch.PyTorchCallback):
            def on_trial_shutdown(_):
                shutil.rmtree(self.directory)

            def on_checkpoint_write_end(_, checkpoint_dir):  # rank 0 only
                with open(os.path.join(checkpoint_dir, "ranks.txt"), "w") as f:
                    f.write(f"{self.context.distributed.get_size()}\n")

        return {"clean_up": CleanUp()}

    def build_training_data_loader(self):
        """The whole data set, at the batch size of one slot: the loop deals the batches out to the ranks."""
        return pytorch.DataLoader(
            digits(self.path, True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True
        )

    def build_validation_data_loader(self):
        return pytorch.DataLoader(digits(self.path, False), batch_size=60)

    def evaluation_reducer(self):
        """How the values of the batches, of all ranks, become one."""
        return {"accuracy": pytorch.Reducer.AVG, "worst_batch": pytorch.Reducer.MIN, "validated": pytorch.Reducer.SUM}

    def train_batch(self, batch, epoch_idx, batch_idx):
        images, labels = batch
        loss = F.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.seen.update(len(labels))
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        images, labels = batch
        accuracy = (self.model(images).argmax(1) == labels).float().mean()
        return {"accuracy": accuracy, "worst_batch": accuracy, "validated": len(labels)}
