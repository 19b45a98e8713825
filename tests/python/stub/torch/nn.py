"""Modules without weights."""


class Parameter:
    pass


class Module:
    def __init__(self, *args):
        self.training = True

    def __call__(self, *args):
        import torch

        return torch.Tensor()

    def parameters(self):
        return iter(())

    def to(self, device):
        return self

    def train(self, mode=True):
        self.training = mode

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        assert state == {}


Linear = Module


class DataParallel(Module):
    pass


class parallel:
    class DistributedDataParallel(Module):
        pass
