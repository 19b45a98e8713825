"""Lightning (a stand-in of it), whose metrics DetLogger reports."""
from determined.experimental import core_v2
from determined.lightning.experimental import DetLogger
from lightning.pytorch import LightningModule, Trainer


class Model(LightningModule):
    def training_step(self, batch, batch_idx):
        self.log("loss", batch)

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", 2 * batch)


logger = DetLogger()
logger.experiment
operations = core_v2.searcher.operations()
operation = next(operations)
print("see", core_v2.url_reverse_webui_exp_view())
Trainer(max_epochs=operation.length, logger=logger).fit(Model(), [3.0, 2.0], [0.5])
operation.report_completed(1.0)
for operation in operations:
    raise AssertionError("nothing more was expected")
