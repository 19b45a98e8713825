#!/usr/bin/env python3
"""The order of shuffled data against PyTorch's.

usage: test_torch_data.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import sys
import unittest

try:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler
except ImportError as e:
    print("skipped: no PyTorch for %s (%s)" % (sys.executable, e))
    sys.exit(77)

LIB = C.CDLL(sys.argv.pop(1))
I64 = C.c_int64


def fn(name, result, *args):
    f = getattr(LIB, name)
    f.restype, f.argtypes = result, args
    return f


epoch_seed = fn("sampler_epoch_seed", I64, C.c_uint32, I64)
shuffle = fn("sampler_shuffle", None, C.c_uint32, I64, C.POINTER(I64), C.c_size_t)


class Repeat:
    """A batch sampler begun again for ever, as the training loop's."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        while True:
            yield from self.inner


class Order(unittest.TestCase):
    def perm(self, seed, epoch, n):
        out = (I64 * n)()
        shuffle(seed, epoch, out, n)
        return list(out)

    def test_loader(self):
        """Three epochs of a shuffling DataLoader after manual_seed, in batches."""
        for seed in (0, 1, 777, 2**31 - 1):
            for n in (1, 2, 3, 10, 64, 1000):
                torch.manual_seed(seed)
                data = range(n)
                batches = iter(DataLoader(data, batch_sampler=Repeat(BatchSampler(RandomSampler(data), n, False))))
                for epoch in range(3):
                    self.assertEqual(next(batches).tolist(), self.perm(seed, epoch, n), (seed, n, epoch))

    def test_randperm(self):
        for n in (1, 2, 7, 100, 4096, 99999, 100000):
            for seed in (0, 5):
                g = torch.Generator().manual_seed(epoch_seed(seed, 2))
                self.assertEqual(torch.randperm(n, generator=g).tolist(), self.perm(seed, 2, n), (seed, n))


if __name__ == "__main__":
    unittest.main()
