"""torchmetrics in a PyTorchTrial: counted over all batches of all ranks, not averaged batch by batch.

searcher: {name: single, metric: f1, smaller_is_better: false, max_length: {batches: 60}}
hyperparameters: {global_batch_size: 32}
entrypoint: torch_metrics:Halves
"""
import torch
import torchmetrics
from determined import pytorch


class Gathered(pytorch.MetricReducer):
    """Any torchmetrics metric: each rank keeps what it saw, and rank 0 computes over all of it."""

    def __init__(self, metric):
        self.metric = metric

    def reset(self):
        self.seen = []

    def update(self, guesses, truth):
        self.seen.append((guesses.detach().cpu(), truth.cpu()))

    def per_slot_reduce(self):
        return self.seen

    def cross_slot_reduce(self, per_slot_metrics):
        self.metric.reset()
        for seen in per_slot_metrics:
            for guesses, truth in seen:
                self.metric.update(guesses, truth)
        return float(self.metric.compute())


class Halves(pytorch.PyTorchTrial):
    """Is the sum of eight numbers positive?"""

    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(8, 2))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=0.05))
        f1 = torchmetrics.F1Score(task="multiclass", num_classes=2, average="macro")
        self.f1 = context.wrap_reducer(Gathered(f1), name="f1", for_training=False)

    def loader(self, seed):
        x = torch.randn(512, 8, generator=torch.Generator().manual_seed(seed))
        return pytorch.DataLoader(torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long()), self.context.get_per_slot_batch_size())

    def build_training_data_loader(self):
        return self.loader(1)

    def build_validation_data_loader(self):
        return self.loader(2)

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        self.f1.update(self.model(batch[0]).argmax(1), batch[1])
        return {}
