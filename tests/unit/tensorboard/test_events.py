#!/usr/bin/env python3
"""What tb_example writes, read by the schema. usage: test_events.py TB_EXAMPLE"""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import tfevents  # noqa: E402


def png(data):
    """(width, height, colour type, rows of bytes) of an 8-bit PNG."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, idat = 8, b""
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + n]
        assert struct.unpack_from(">I", data, at + 8 + n)[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            w, h, depth, colour, *_ = struct.unpack(">IIBBBBB", body)
            assert depth == 8
        elif kind == b"IDAT":
            idat += body
        at += 12 + n
    step = {0: 1, 2: 3}[colour]
    raw, rows, prev = zlib.decompress(idat), [], bytes(w * step)
    for y in range(h):
        kind, line = raw[y * (w * step + 1)], bytearray(raw[y * (w * step + 1) + 1:(y + 1) * (w * step + 1)])
        for i in range(len(line)):
            a, b, c = (line[i - step] if i >= step else 0), prev[i], (prev[i - step] if i >= step else 0)
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        rows.append(bytes(line))
        prev = bytes(line)
    return w, h, colour, rows


def check_images(values):
    step, v = values["chw"]
    assert (step, v.image.height, v.image.width, v.image.colorspace) == (1, 2, 4, 3)
    want = [bytes(int(struct.unpack("f", struct.pack("f", (8 * c + 4 * y + x) / 24))[0] * 255) for x in range(4) for c in range(3)) for y in range(2)]
    assert png(v.image.encoded_image_string) == (4, 2, 2, want)
    assert png(values["hwc"][1].image.encoded_image_string) == (4, 2, 2, [bytes(10 * i for i in range(12)), bytes(10 * i for i in range(12, 24))])
    assert png(values["grey"][1].image.encoded_image_string) == (4, 2, 0, [bytes([0, 0, 63, 127]), bytes([191, 255, 255, 0])])


def default_edges():
    half, v = [], 1e-12
    while v < 1e20:
        half.append(v)
        v *= 1.1
    return [-x for x in reversed(half)] + [0.0] + half


def check_histograms(values):
    h = values["weights"][1].histo
    data = [struct.unpack("f", struct.pack("f", (i - 300) / 7))[0] for i in range(1000)]
    assert (h.min, h.max, h.num) == (min(data), max(data), 1000)
    assert abs(h.sum - sum(data)) < 1e-6 and abs(h.sum_squares - sum(x * x for x in data)) < 1e-3
    edges = default_edges()
    counts = [0] * (len(edges) - 1)
    for x in data:
        counts[max(i for i in range(len(edges) - 1) if edges[i] <= x)] += 1
    used = [i for i, n in enumerate(counts) if n]
    assert list(h.bucket_limit) == edges[used[0]:used[-1] + 2]
    assert list(h.bucket) == [0] + counts[used[0]:used[-1] + 1]
    z = values["zero"][1].histo
    assert (z.num, z.sum, list(z.bucket)) == (1, 0, [0, 1]) and z.bucket_limit[0] == 0 and z.bucket_limit[1] == 1e-12


def check(top):
    values, loss = {}, []
    for d, e in tfevents.read_dir(top):
        assert e.wall_time > 1.6e9 and len(e.summary.value) == 1
        v = e.summary.value[0]
        if v.tag == "loss":
            loss.append((e.step, v.simple_value))
        else:
            values[v.tag if d == "." else d] = (e.step, v)
    assert [s for s, _ in loss] == list(range(100))
    assert all(abs(x - 1 / (s + 1)) < 1e-7 for s, x in loss)
    assert values["run_lr_a"][1].simple_value == 0.5 and values["run_lr_b_c"][1].simple_value == 2
    assert values["run_lr_a"][1].tag == "run/lr" and values["run_lr_a"][0] == 7
    check_images(values)
    check_histograms(values)
    step, note = values["note/text_summary"]
    assert step == 9 and note.metadata.plugin_data.plugin_name == "text"
    assert note.tensor.dtype == 7 and [d.size for d in note.tensor.tensor_shape.dim] == [1]
    assert note.tensor.string_val[0].decode() == "**hello**é"
    return 100 + len(values)


def main():
    with tempfile.TemporaryDirectory() as top:
        subprocess.run([sys.argv[1], top + "/a/b"], check=True)
        n = check(top + "/a/b")
        subprocess.run([sys.argv[1], top + "/a/b"], check=True)  # a second run repeats nothing
        assert check(top + "/a/b") == n
        print(f"{n} values")


if __name__ == "__main__":
    main()
