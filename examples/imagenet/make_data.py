#!/usr/bin/env python3
"""Writes a small image folder: four classes of stripes of every size and colour, as PNG files.

usage: make_data.py DIRECTORY [PICTURES]
"""
import math
import os
import random
import struct
import sys
import zlib


def png(width, height, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))) + chunk(b"IEND", b"")


def picture(kind, r):
    """Level, upright, crossed or no stripes: a flip and a crop leave them what they are."""
    width, height = r.randint(60, 90), r.randint(60, 90)
    step, dark, light = r.uniform(1.2, 2.5), [r.randint(0, 90) for _ in range(3)], [r.randint(160, 255) for _ in range(3)]

    def row(y):
        out = bytearray()
        for x in range(width):
            a, b = math.sin(y / step) if kind in (0, 2) else 0, math.sin(x / step) if kind in (1, 2) else 0
            v = 0.5 + (a + b) / 4 + r.uniform(-0.1, 0.1)
            out += bytes(int(d + (l - d) * v) & 255 for d, l in zip(dark, light))
        return bytes(out)
    return png(width, height, [row(y) for y in range(height)])


def main():
    where, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400
    for part, count, seed in (("train", n, 1), ("val", n // 4, 2)):
        r = random.Random(seed)
        for i in range(count):
            name = ("level", "upright", "crossed", "plain")[i % 4]
            os.makedirs(f"{where}/{part}/{name}", exist_ok=True)
            with open(f"{where}/{part}/{name}/{i:04}.png", "wb") as f:
                f.write(picture(i % 4, r))


if __name__ == "__main__":
    main()
