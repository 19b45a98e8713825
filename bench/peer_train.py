#!/usr/bin/env python3
"""The same as train.c in PyTorch.

usage: peer_train.py FIGURE [THREADS [contiguous|channels_last]]

Speaks train.c's protocol: one JSON object, then a rate for each number of seconds on standard input.
"""
import json
import sys
import time

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

FIRST_STEPS = 5


def noise(n, salt):
    """Numbers in -1..1 by the hash of train.c."""
    v = ((torch.arange(n) + salt * 1000003 & 0xFFFFFFFF) * 747796405 + 2891336453) & 0xFFFFFFFF
    v = ((v >> ((v >> 28) + 4)) ^ v) * 277803737 & 0xFFFFFFFF
    return ((v >> 22) ^ v).double() / 2147483648.0 - 1


def images(n, channels, size):
    return (1.7 * noise(n * channels * size * size, 999)).float().reshape(n, channels, size, size)


def labels(n, classes):
    return torch.arange(n) * 7 % classes


def mnist_cnn():
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
                        nn.Conv2d(32, 64, 3), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(inplace=True), nn.Linear(128, 10))
    return net, images(64, 1, 28), labels(64, 10)


def resnet18_32():
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    return net, images(64, 3, 32), labels(64, 10)


def resnet18_224():
    return torchvision.models.resnet18(), images(8, 3, 224), labels(8, 1000)


FIGURES = {f.__name__: f for f in (mnist_cnn, resnet18_32, resnet18_224)}


def set_weights(net):
    with torch.no_grad():
        for k, (name, p) in enumerate(net.named_parameters()):
            if "bias" in name:
                p.zero_()
            elif p.dim() > 1:
                bound = 1 / (p.numel() / p.shape[0]) ** 0.5
                p.copy_((bound * noise(p.numel(), k)).float().reshape(p.shape))


def status_mb(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key)) / 1024


def main():
    name, threads = sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 2
    layout = torch.channels_last if sys.argv[3:] == ["channels_last"] else torch.contiguous_format
    torch.set_num_threads(threads)
    torch.randn(1000, 1000) @ torch.randn(1000, 1000)  # whatever is loaded at the first use
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the peak counts from here
    before = status_mb("VmRSS:")
    net, x, y = FIGURES[name]()
    net, x = net.to(memory_format=layout), x.to(memory_format=layout) if x.dim() == 4 else x
    set_weights(net)
    optim = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step():
        optim.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optim.step()
        return loss.item()

    losses = [step() for _ in range(FIRST_STEPS)]
    print(json.dumps({"losses": losses, "peak_mb": status_mb("VmHWM:") - before, "items": len(x)}), flush=True)
    for line in sys.stdin:
        seconds, steps, start = float(line), 0, time.monotonic()
        while time.monotonic() - start < seconds:
            step()
            steps += 1
        print("%.2f" % (steps * len(x) / (time.monotonic() - start)), flush=True)


main()
