"""MNIST from IDX files, plain or .gz, as tensors; where there are none, smaller digits."""
import gzip
import logging
import os

import numpy as np
import torch
from torch.nn import functional as F

logger = logging.getLogger("mnist")


def normalized(pixels):
    """Pixels of 0 to 1 as the network takes them."""
    return 2 * pixels - 1  # -1 to 1: what tanh gives


def read_idx(directory, name):
    for path, opened in ((f"{directory}/{name}", open), (f"{directory}/{name}.gz", gzip.open)):
        if os.path.exists(path):
            with opened(path, "rb") as f:
                data = bytearray(f.read())
            dimensions = data[3]
            shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(dimensions)]
            return torch.frombuffer(data, dtype=torch.uint8, offset=4 + 4 * dimensions).reshape(shape)
    raise FileNotFoundError(
        f"data.path {directory} has no {name}, plain or .gz: put MNIST's four IDX files there, name the directory that has "
        "them by --config data.path=DIRECTORY, or leave data.path out to train on the digits beside the model"
    )


def read_set(directory, name):
    images = read_idx(directory, name + "-images-idx3-ubyte").float().unsqueeze(1)
    labels = read_idx(directory, name + "-labels-idx1-ubyte").long()
    return torch.utils.data.TensorDataset(normalized(images / 255), labels)


def small_digits():
    """digits.csv.gz: 1,797 images of 8x8 pixels, enlarged to MNIST's size."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.csv.gz")
    rows = torch.from_numpy(np.loadtxt(path, delimiter=",", dtype=np.float32))
    images = F.interpolate(rows[:, :64].reshape(-1, 1, 8, 8) / 16, size=28, mode="bilinear")
    return torch.utils.data.TensorDataset(normalized(images), rows[:, 64].long())


def mnist(directory, training):
    """The training or the validation set. Without train-* files the first four fifths train and the rest validates."""
    if directory and any(os.path.exists(f"{directory}/train-images-idx3-ubyte{end}") for end in ("", ".gz")):
        return read_set(directory, "train" if training else "t10k")
    if training and not directory:
        logger.warning("data.path is not set: the 8x8 digits beside the model stand in for MNIST")
    whole = read_set(directory, "t10k") if directory else small_digits()
    split = len(whole) * 4 // 5
    return torch.utils.data.Subset(whole, range(split) if training else range(split, len(whole)))
