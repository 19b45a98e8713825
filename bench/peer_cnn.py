#!/usr/bin/env python3
"""The same as cnn.c in PyTorch: images per second of whole training steps, the batch in memory.

usage: peer_cnn.py [THREADS [BATCH [SECONDS [contiguous|channels_last]]]]    prints one number

cnn.sh sets OPENBLAS_CORETYPE for it: OpenBLAS falls back on slow kernels where it does not know the CPU.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.drop1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(9216, 128)
        self.drop2 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.drop1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(self.drop2(x))


def main():
    args = sys.argv[1:]
    threads, batch = int(args[0]) if args else 2, int(args[1]) if len(args) > 1 else 64
    seconds = float(args[2]) if len(args) > 2 else 3
    layout = torch.channels_last if args[3:] == ["channels_last"] else torch.contiguous_format
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    net = Net().to(memory_format=layout)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.sin(torch.arange(batch * 784, dtype=torch.float64) * 0.37).float()
    x = x.reshape(batch, 1, 28, 28).to(memory_format=layout)
    y = torch.arange(batch) * 7 % 10

    def step():
        sgd.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        return loss.item()

    for _ in range(5):
        step()
    steps, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        step()
        steps += 1
    print("%.1f" % (steps * batch / (time.monotonic() - start)))


main()
