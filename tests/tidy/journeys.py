#!/usr/bin/env python3
"""Counts the journeys of journeys.txt: functions, files, changes of file and of layer, the longest stays among them.

usage: journeys.py [SOURCE_DIR]    names each function that does not stand in its file any more; exit 1 if there are any
"""
import os
import re
import sys

LAYER = re.compile(r"(?:master|agent|harness)/\w+|\w+")


def read_journeys(path):
    """[(title, [(file, [function])])]"""
    found = []
    for line in open(path):
        line = line.rstrip()
        if line.startswith("#") or not line:
            continue
        m = re.match(r"(\S+): (.*)", line)
        if m:
            found[-1][1].append((m[1], m[2].split()))
        else:
            found.append((line, []))
    return found


def stands_in(text, path, function):
    if path.endswith(".sql"):
        return re.search(rf"FUNCTION {function}\(", text)
    return re.search(rf"^(?!\s)[^;#=]*\b{function}\((?:[^;{{]*\n)*[^;{{]*\n?{{", text, re.M)


def missing(top, stays):
    for path, functions in stays:
        whole = os.path.join(top, path)
        text = open(whole).read() if os.path.exists(whole) else ""
        yield from (f"{path}: {f}" for f in functions if not stands_in(text, path, f))


def changes(places):
    return sum(a != b for a, b in zip(places, places[1:]))


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "."
    lost = []
    for title, stays in read_journeys(os.path.join(os.path.dirname(os.path.abspath(__file__)), "journeys.txt")):
        files = [path for path, _ in stays]
        functions = {(path, f) for path, names in stays for f in names}
        layers = [LAYER.match(f)[0] for f in files]
        print(f"{title}: {len(functions)} functions, {len(set(files))} files, {changes(files)} changes of file, {changes(layers)} of layer")
        lost += missing(top, stays)
    print("".join(f"not there: {line}\n" for line in lost), end="")
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
