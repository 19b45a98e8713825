"""In torch's place where PyTorch cannot be loaded (under sanitizers): enough of its shape for determined.pytorch, no mathematics.

Tensors hold nothing, loaders give lists of records, states are empty.
"""
import pickle
import random

from torch import cuda, distributed, nn, profiler  # noqa: F401

__version__ = "0.stub"
import torch.optim  # noqa: E402
import torch.utils.data  # noqa: E402

dtype = object
float16 = bfloat16 = int64 = None
_grad = True


class Generator:
    """Nothing makes one."""


class Tensor:
    dtype = device = None

    def item(self):
        return 0.5

    def __len__(self):
        return 4

    def dim(self):
        return 0

    def backward(self, **options):
        pass

    def _same(self, *args):
        return self

    detach = mean = to = cpu = __pow__ = __sub__ = _same


class device:
    index = None

    def __init__(self, kind, index=None):
        self.type, self.index = kind, index


class random:  # noqa: F811
    get_rng_state = staticmethod(random.getstate)
    set_rng_state = staticmethod(random.setstate)
    manual_seed = staticmethod(random.seed)


get_rng_state, set_rng_state, manual_seed = random.get_rng_state, random.set_rng_state, random.manual_seed


def tensor(values, **options):
    return Tensor()


def is_grad_enabled():
    return _grad


def set_grad_enabled(on):
    global _grad
    _grad = on


def save(value, file, pickle_module=pickle):
    file.write(pickle_module.dumps(value))


def load(path, map_location=None, weights_only=False):
    with open(path, "rb") as f:
        return pickle.load(f)
