"""MNIST from IDX files, plain or .gz, as tensors."""
import gzip
import os

import torch


def read_idx(directory, name):
    for path, opened in ((f"{directory}/{name}", open), (f"{directory}/{name}.gz", gzip.open)):
        if os.path.exists(path):
            with opened(path, "rb") as f:
                data = bytearray(f.read())
            dimensions = data[3]
            shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(dimensions)]
            return torch.frombuffer(data, dtype=torch.uint8, offset=4 + 4 * dimensions).reshape(shape)
    raise FileNotFoundError(f"data.path {directory} has no {name}, plain or .gz")


def read_set(directory, name):
    images = read_idx(directory, name + "-images-idx3-ubyte").float().unsqueeze(1)
    labels = read_idx(directory, name + "-labels-idx1-ubyte").long()
    return torch.utils.data.TensorDataset(images / 127.5 - 1, labels)  # -1 to 1: what tanh gives


def mnist(directory, training):
    """The training or the validation set. Of a lone t10k-* the first four fifths train and the rest validates."""
    if any(name.startswith("train-") for name in os.listdir(directory)):
        return read_set(directory, "train" if training else "t10k")
    whole = read_set(directory, "t10k")
    split = len(whole) * 4 // 5
    return torch.utils.data.Subset(whole, range(split) if training else range(split, len(whole)))
