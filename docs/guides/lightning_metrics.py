"""Lightning on a cluster: its own Trainer, whose metrics DetLogger reports.

For searchers that ask a trial for one length (single, random, grid): another Trainer would begin at step 0 again.

searcher: {name: single, metric: val_loss, max_length: {epochs: 3}}
entrypoint: python3 lightning_metrics.py
"""
import lightning.pytorch as pl
import torch
from determined.experimental import core_v2
from determined.lightning.experimental import DetLogger
from torch.utils.data import DataLoader, TensorDataset


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(2, 1)

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self.model(x).squeeze(-1), y)

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        self.last = self.loss(batch)
        self.log("val_loss", self.last)

    def configure_optimizers(self):
        return torch.optim.SGD(self.model.parameters(), lr=0.1)


x = torch.randn(256, 2)
data = DataLoader(TensorDataset(x, x.sum(1)), batch_size=32)
core_v2.init()  # in a trial of the cluster; elsewhere it takes defaults=core_v2.DefaultConfig(...)
operations, model = core_v2.searcher.operations(), Line()
for operation in operations:
    trainer = pl.Trainer(max_epochs=operation.length, logger=DetLogger(), enable_checkpointing=False, log_every_n_steps=1)
    trainer.fit(model, data, data)
    operation.report_completed(float(model.last))
