"""torch.utils.data.DataLoader, batch 64, shuffled; turns as bench/programs/data.c has them.

usage: peer_data.py mnist|mnist_tensors|mnist_batches|jpeg WORKERS THREADS DIRECTORY
mnist goes through the usual transforms, image by image; mnist_tensors has them behind it (TensorDataset), and
mnist_batches picks all of a batch at once there.
"""
import gzip
import sys
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, Dataset, Sampler, TensorDataset
from torchvision import datasets, transforms


def idx(path, head):
    with gzip.open(path) as f:
        return torch.from_numpy(np.frombuffer(f.read(), np.uint8, offset=head).copy())


class Mnist(Dataset):
    """As torchvision.datasets.MNIST gives its records."""

    def __init__(self, where):
        self.images, self.labels = idx(where + "/t10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28), idx(where + "/t10k-labels-idx1-ubyte.gz", 8)
        self.transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(Image.fromarray(self.images[i].numpy(), mode="L")), int(self.labels[i])


def dataset(kind, where):
    if kind == "mnist":
        return Mnist(where)
    if kind != "jpeg":
        m = Mnist(where)
        return TensorDataset((m.images.float()[:, None] / 255 - 0.1307) / 0.3081, m.labels.long())
    return datasets.ImageFolder(where, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))


def batches(kind, workers, where):
    # an epoch that does not end: its workers would stand still between two
    data = dataset(kind, where)
    options = dict(num_workers=workers, persistent_workers=workers > 0)
    if kind == "mnist_batches":
        loader = DataLoader(data, batch_size=None, sampler=BatchSampler(Shuffled(len(data), 100), 64, False), **options)
    else:
        loader = DataLoader(ConcatDataset([data] * 100), batch_size=64, shuffle=True, **options)
    while True:
        yield from loader


class Shuffled(Sampler):
    """Epoch after epoch, each in an order of its own."""

    def __init__(self, n, epochs):
        self.n, self.epochs = n, epochs

    def __len__(self):
        return self.n * self.epochs

    def __iter__(self):
        for _ in range(self.epochs):
            yield from torch.randperm(self.n).tolist()


def main():
    kind, workers, threads, where = sys.argv[1:5]
    torch.set_num_threads(int(threads))
    each = batches(kind, int(workers), where)
    next(each)
    for line in sys.stdin:
        seconds, samples, start = float(line), 0, time.monotonic()
        while time.monotonic() - start < seconds:
            samples += len(next(each)[1])
        print("%.1f" % (samples / (time.monotonic() - start)), flush=True)


if __name__ == "__main__":
    main()
