"""Reads TensorBoard event files as anybody else would: the framing by hand, the messages by protoc from the schema.

    for name, event in tfevents.read_dir(path): ...
"""
import os
import struct
import subprocess
import sys
import tempfile

import crc32c

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "unit", "tensorboard")


def schema():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["protoc", "-I", SCHEMA, "--python_out", d, "events.proto"], check=True)
        sys.path.insert(0, d)
        try:
            import events_pb2
        finally:
            sys.path.remove(d)
    return events_pb2


PB = schema()


def masked(data):
    c = crc32c.crc32c(data)
    return (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The data of every record; anything that is not whole and right is an assertion."""
    at = 0
    while at < len(data):
        n, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(data[at:at + 8]), f"checksum of the length at {at}"
        body = data[at + 12:at + 12 + n]
        assert len(body) == n, f"record at {at} is cut short"
        assert struct.unpack_from("<I", data, at + 12 + n)[0] == masked(body), f"checksum at {at}"
        yield body
        at += 16 + n


def read(path):
    with open(path, "rb") as f:
        events = [PB.Event.FromString(r) for r in records(f.read())]
    assert events and events[0].file_version == "brain.Event:2", path
    return events[1:]


def read_dir(top):
    """(directory beneath top, event) of every event, files in the order of their names."""
    for d, _, files in sorted(os.walk(top)):
        for name in sorted(files):
            if "tfevents" in name:
                for e in read(os.path.join(d, name)):
                    yield os.path.relpath(d, top), e


def scalars(top):
    """{tag: [(step, value), ...]} of the directory itself."""
    out = {}
    for d, e in read_dir(top):
        for v in e.summary.value if d == "." else ():
            if v.WhichOneof("value") == "simple_value":
                out.setdefault(v.tag, []).append((e.step, v.simple_value))
    return out
