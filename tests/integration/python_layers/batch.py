"""A data set through two ranks, each batch once."""
import json
import logging

import determined as det
from determined.pytorch.experimental import TorchBatchProcessor, torch_batch_process


class Squares(TorchBatchProcessor):
    def __init__(self, context):
        self.context = context
        self.sum = context.wrap_reducer(sum, name="sum")

    def process_batch(self, batch, batch_idx):
        self.sum.update(int((batch**2).sum()))
        with self.context.upload_path() as path:
            (path / f"{batch_idx}.json").write_text(json.dumps(batch.tolist()))

    def on_finish(self):
        print("finished on rank", self.context.get_distributed_rank())


logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
torch_batch_process(Squares, list(range(10)), batch_size=2, checkpoint_interval=2)
