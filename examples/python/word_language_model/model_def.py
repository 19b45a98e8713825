"""An LSTM that guesses the next word.

data.path names a directory of train.u16 and valid.u16: one 16-bit number for each word.
"""
import os

import numpy as np
import torch
from determined import pytorch
from torch import nn
from torch.nn import functional as F


class Words(torch.utils.data.Dataset):
    """Records of `length` words; the target of each word is the next one."""

    def __init__(self, path, length):
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"there is no {path}: let examples/word_language_model/make_data.py make it of any text, and name its directory "
                "by --config data.path=DIRECTORY"
            )
        self.words = np.memmap(path, np.uint16, mode="r")
        self.length = length

    def __len__(self):
        return (len(self.words) - 1) // self.length

    def __getitem__(self, i):
        at = i * self.length
        words = torch.from_numpy(self.words[at:at + self.length + 1].astype(np.int64))
        return {"words": words[:-1], "next": words[1:]}


class Model(nn.Module):
    def __init__(self, vocabulary, width, layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, words):
        hidden, _ = self.lstm(self.dropout(self.embedding(words)))
        return self.decoder(self.dropout(hidden))


class WordModelTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        hp = context.get_hparams()
        self.path = context.get_data_config()["path"]
        self.length = hp["sequence"]
        self.model = context.wrap_model(Model(hp["vocabulary"], hp["width"], hp["layers"], hp["dropout"]))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=hp["learning_rate"]))
        # This scheduler asks for a metric, which only the trial has: MANUAL_STEP, and a callback calls it.
        self.scheduler = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.25, patience=0),
            pytorch.LRScheduler.StepMode.MANUAL_STEP,
        )

    def build_callbacks(self):
        class Plateau(pytorch.PyTorchCallback):
            def on_validation_end(_, metrics):
                self.scheduler.step(metrics["validation_loss"])

        return {"plateau": Plateau()}

    def build_training_data_loader(self):
        words = Words(self.path + "/train.u16", self.length)
        return pytorch.DataLoader(words, batch_size=self.context.get_per_slot_batch_size(), shuffle=True, drop_last=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Words(self.path + "/valid.u16", self.length), batch_size=20)

    def loss(self, batch):
        return F.cross_entropy(self.model(batch["words"]).flatten(0, 1), batch["next"].flatten())

    def clip(self, parameters):
        nn.utils.clip_grad_norm_(parameters, self.context.get_hparam("clip"))

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=self.clip)
        return {"loss": loss, "perplexity": loss.detach().exp()}

    def evaluate_batch(self, batch, batch_idx):
        return {"validation_loss": self.loss(batch)}
