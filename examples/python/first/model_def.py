"""A network of two layers learns the sine."""
import torch
from determined import pytorch
from torch.nn import functional as F


class SineTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.net = context.wrap_model(
            torch.nn.Sequential(
                torch.nn.Linear(1, 32),
                torch.nn.Tanh(),
                torch.nn.Linear(32, 1),
            )
        )
        lr = context.get_hparam("lr")
        self.adam = context.wrap_optimizer(
            torch.optim.Adam(self.net.parameters(), lr=lr)
        )

    def data(self):
        x = torch.arange(-256, 256).reshape(512, 1) / 80
        return pytorch.DataLoader(
            torch.utils.data.TensorDataset(x, x.sin()),
            batch_size=self.context.get_per_slot_batch_size(),
            shuffle=True,
        )

    build_training_data_loader = data
    build_validation_data_loader = data

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.adam)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        x, y = batch
        return {"validation_loss": F.mse_loss(self.net(x), y)}
