"""Optimizers that move nothing."""
from torch.optim import lr_scheduler  # noqa: F401


class Optimizer:
    def __init__(self, parameters, **options):
        self.param_groups = [{"params": list(parameters)}]

    def step(self):
        pass

    zero_grad = step

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        assert state == {}


SGD = Optimizer
