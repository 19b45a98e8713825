"""What the tests of the package share: a small trial, and a place for its checkpoints."""
import contextlib
import os
import tempfile

import torch
from determined import pytorch


class Numbers(torch.utils.data.Dataset):
    """Records 0 to n - 1, each with its double."""

    def __init__(self, n=12):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([float(i)]), torch.tensor([2.0 * i])


class LineTrial(pytorch.PyTorchTrial):
    """Overridable in every part; `seen` are the records of each batch."""

    batch_size, shuffle, workers, size = 4, False, 0, 12

    def __init__(self, context):
        self.context = context
        self.seen = []
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optim = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9))

    def build_training_data_loader(self):
        return pytorch.DataLoader(Numbers(self.size), batch_size=self.batch_size, shuffle=self.shuffle, num_workers=self.workers)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Numbers(), batch_size=self.batch_size)

    def loss(self, batch):
        x, y = batch
        return ((self.model(x) - y) ** 2).mean()

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.seen.append(batch[0].flatten().tolist())
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optim)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        return {"error": self.loss(batch)}


@contextlib.contextmanager
def store():
    """An empty working directory, and a data directory for checkpoints."""
    old, home = os.getcwd(), os.environ.get("XDG_DATA_HOME")
    with tempfile.TemporaryDirectory() as top:
        os.mkdir(os.path.join(top, "work"))
        os.chdir(os.path.join(top, "work"))
        os.environ["XDG_DATA_HOME"] = top
        try:
            yield os.path.join(top, "determined")
        finally:
            os.chdir(old)
            os.environ.pop("XDG_DATA_HOME")
            if home is not None:
                os.environ["XDG_DATA_HOME"] = home


def fit(trial_class, length, seed=0, hparams=None, aggregation_frequency=1, **options):
    torch.manual_seed(seed)
    with pytorch.init(hparams=hparams, aggregation_frequency=aggregation_frequency) as context:
        trial = trial_class(context)
        pytorch.Trainer(trial, context).fit(max_length=length, **options)
        return trial
