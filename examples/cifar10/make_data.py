#!/usr/bin/env python3
"""Writes a small set in the format of CIFAR-10's binary version: ten kinds of stripes under noise.

usage: make_data.py DIRECTORY [RECORDS]
"""
import math
import os
import random
import sys


def picture(kind, r):
    """Level or upright stripes of one of five widths, of any colour and place: a flip leaves the kind what it is."""
    turn, width, phase = math.pi / 2 * (kind % 2), (1, 1.5, 2.3, 3.5, 5.2)[kind // 2] * r.uniform(0.95, 1.05), r.uniform(0, 6.3)
    light = [[math.sin((x * math.cos(turn) + y * math.sin(turn)) * 2 / width + phase) for x in range(32)] for y in range(32)]
    planes = [(r.uniform(90, 160), r.uniform(20, 60)) for _ in range(3)]
    return bytes(min(255, max(0, int(m + c * v + r.gauss(0, 12)))) for m, c in planes for row in light for v in row)


def write(path, n, r):
    with open(path, "wb") as f:
        for i in range(n):
            f.write(bytes([i % 10]) + picture(i % 10, r))


def main():
    where, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    os.makedirs(where, exist_ok=True)
    write(where + "/data_batch_1.bin", n, random.Random(1))
    write(where + "/test_batch.bin", max(100, n // 5), random.Random(2))


if __name__ == "__main__":
    main()
