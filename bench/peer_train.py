#!/usr/bin/env python3
"""The same as programs/train.c in PyTorch.

usage: peer_train.py FIGURE [THREADS [contiguous|channels_last [eager|compile|MODE]]]

BENCH_DEVICE=cuda trains on the GPU, in f32 as ours (no TF32), with cuDNN's choice by trial; BENCH_DTYPE=bf16 with autocast. MODE is one
of torch.compile's ("reduce-overhead", "max-autotune"). With PEER_PROFILE=1 torch's profile of some steps goes to standard error. From PyTorch 2 on with its fused optimizers and its own attention. Speaks programs/train.c's
protocol, heeds what it heeds of the environment: one JSON object, then a rate for each number of seconds on standard input.
"""
import json
import os
import sys
import time

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

FIRST_STEPS = 5
FOREACH = False
DEVICE = os.environ.get("BENCH_DEVICE", "cpu")
READS_ALL = os.environ.get("BENCH_LOSSES") != "last"
IS_HALF = os.environ.get("BENCH_DTYPE") == "bf16"
BATCH = int(os.environ.get("BENCH_BATCH", "1"))  # times what a batch has
IS_NEWER = int(torch.__version__.split(".")[0]) >= 2
FUSED = {"fused": True} if IS_NEWER else {}


def noise(n, salt):
    """Numbers in -1..1 by the hash of programs/train.c."""
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
    return net, images(64 * BATCH, 1, 28), labels(64 * BATCH, 10)


def mnist_dropout():
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(inplace=True), nn.Conv2d(32, 64, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                        nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(inplace=True), nn.Linear(128, 10))
    return net, images(64 * BATCH, 1, 28), labels(64 * BATCH, 10)


def resnet18_32():
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    return net, images(64 * BATCH, 3, 32), labels(64 * BATCH, 10)


def resnet18_224():
    return torchvision.models.resnet18(), images(8 * BATCH, 3, 224), labels(8 * BATCH, 1000)


def resnet50_224():
    return torchvision.models.resnet50(), images(8 * BATCH, 3, 224), labels(8 * BATCH, 1000)


def tokens(rows, columns, classes):
    return (torch.arange(rows * columns) * 7919 % classes).reshape(rows, columns)


class WordModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.rnn, self.decoder = nn.Embedding(10000, 200), nn.LSTM(200, 200, 2), nn.Linear(200, 10000)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0].flatten(0, 1))


def lstm():
    return WordModel(), tokens(35, 20 * BATCH, 10000), labels(700 * BATCH, 10000)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.proj = nn.LayerNorm(768), nn.Linear(768, 2304), nn.Linear(768, 768)
        self.ln_2, self.fc, self.out = nn.LayerNorm(768), nn.Linear(768, 3072), nn.Linear(3072, 768)

    def forward(self, x, mask):
        q, k, v = (t.transpose(1, 2) for t in self.attn(self.ln_1(x)).unflatten(2, (3, 12, 64)).unbind(2))
        if IS_NEWER:
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            heads = (q @ k.transpose(2, 3) / 8 + mask).softmax(-1) @ v
        x = x + self.proj(heads.transpose(1, 2).flatten(2))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, time):
        super().__init__()
        self.time = time
        self.wte, self.wpe = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.h, self.ln_f = nn.ModuleList([Block() for _ in range(12)]), nn.LayerNorm(768)
        self.lm_head = nn.Linear(768, 50257, bias=False)
        self.lm_head.weight = self.wte.weight
        self.register_buffer("mask", None if IS_NEWER else torch.full((time, time), -float("inf")).triu(1), persistent=False)

    def forward(self, x):
        y = self.wte(x) + self.wpe(torch.arange(self.time, device=x.device))
        for block in self.h:
            y = block(y, self.mask)
        return self.lm_head(self.ln_f(y).flatten(0, 1))


def gpt2_small():
    return Gpt2(128), tokens(2 * BATCH, 128, 50257), labels(256 * BATCH, 50257)


def gpt2_1024():
    return Gpt2(1024), tokens(BATCH, 1024, 50257), labels(1024 * BATCH, 50257)


FIGURES = {f.__name__: f for f in (mnist_cnn, mnist_dropout, resnet18_32, resnet18_224, resnet50_224, lstm, gpt2_small, gpt2_1024)}
CLIP = {"lstm": 0.25}
DRAWS = ("mnist_dropout",)  # dropout: the steps whose losses are compared are without


def optimizer(name, net):
    if name == "lstm":
        return torch.optim.SGD(net.parameters(), lr=1, **FUSED)
    if name in ("gpt2_small", "gpt2_1024"):
        return torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.01, **(FUSED or {"foreach": FOREACH}))
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, **FUSED)


def set_weights(net):
    with torch.no_grad():
        for k, (name, p) in enumerate(net.named_parameters()):
            if "bias" in name:
                p.zero_()
            elif p.dim() > 1:
                bound = 1 / (p.numel() / p.shape[0]) ** 0.5
                p.copy_((bound * noise(p.numel(), k)).float().reshape(p.shape))


def show_profile(step):
    with torch.profiler.profile() as profile:
        for _ in range(10):
            step()
    table = profile.key_averages()
    newest = "self_device_time_total" if hasattr(table[0], "self_device_time_total") else "self_cuda_time_total"
    key = "self_cpu_time_total" if DEVICE == "cpu" else newest
    print(table.table(sort_by=key, row_limit=40, max_name_column_width=60), file=sys.stderr, flush=True)


def status_mb(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key)) / 1024


def loss_function(net, mode):
    """The network and its loss, compiled as one."""
    def loss(x, y):
        return F.cross_entropy(net(x), y)

    if mode == "eager":
        return loss
    return torch.compile(loss) if mode == "compile" else torch.compile(loss, mode=mode)


def main():
    name, threads = sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 2
    layout = torch.channels_last if sys.argv[3:4] == ["channels_last"] else torch.contiguous_format
    torch.set_num_threads(threads)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.randn(1000, 1000) @ torch.randn(1000, 1000)  # whatever is loaded at the first use
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the peak counts from here
    before = status_mb("VmRSS:")
    net, x, y = FIGURES[name]()
    net, x = net.to(memory_format=layout), x.to(memory_format=layout) if x.dim() == 4 else x
    set_weights(net)
    net, x, y = net.to(DEVICE), x.to(DEVICE), y.to(DEVICE)
    optim = optimizer(name, net)
    loss_of = loss_function(net, sys.argv[4] if sys.argv[4:] else "eager")

    def step(is_read=True):
        optim.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=IS_HALF):
            loss = loss_of(x, y)
        loss.backward()
        if name in CLIP:
            nn.utils.clip_grad_norm_(net.parameters(), CLIP[name])
        optim.step()
        return loss.item() if is_read else None

    net.train(name not in DRAWS)
    losses = [step() for _ in range(FIRST_STEPS)]
    net.train()
    step()
    print(json.dumps({"losses": losses, "peak_mb": status_mb("VmHWM:") - before, "items": len(y)}), flush=True)
    if os.environ.get("PEER_PROFILE") == "1":
        show_profile(step)
    for line in sys.stdin:
        seconds, steps, start = float(line), 1, time.monotonic()
        while time.monotonic() - start < seconds:
            step(READS_ALL)
            steps += 1
        step()
        print("%.2f" % (steps * len(y) / (time.monotonic() - start)), flush=True)


main()
