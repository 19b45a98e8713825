#!/usr/bin/env python3
"""Lines and branches that a run reached, by folder. usage: coverage.py BUILD_DIR [--missed FOLDER]

BUILD_DIR is a build with -Db_coverage=true whose programs have run. A line or a branch is reached where any of the objects that hold it
reached it: headers and templates are in many, and tests build some sources again, those for GPUs over an emulated CUDA and a fake NCCL.
What only an exception of C++ takes is no branch of ours. Fails where a layer is below its floor (FLOORS): each is what a whole run has
reached, and is raised when one reaches more. Behind the table stand the lines that nothing reached, by reason (unreached.py); --missed
prints those of a folder, each with its reason, in place of the table ("." is all of them). A process that ends by SIGKILL counts
nothing, so what only a killed one does stands here as not reached.
"""
import collections
import json
import os
import subprocess
import sys

from unreached import reasons

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
NOT_THE_PRODUCT = ("tests/", "bench/", "examples/")
FLOORS = {  # folder and all within: lines and branches in percent
    "all": (90.5, 73.5), "base": (96, 87), "proto": (97, 88), "client": (94, 81), "storage": (98, 91), "db": (95, 87),
    "master/core": (95, 85), "master/shell": (93, 79), "master/api": (92, 76), "agent/core": (98, 88), "agent/life": (98, 87),
    "agent/shell": (91, 72), "cli": (88, 74), "harness/loop": (93, 79), "harness/trial": (74, 56), "harness/comm": (72, 54),
}
AT_ONCE = 64  # objects in one call of gcov


def notes(build):
    for folder, _, names in os.walk(build):
        yield from (os.path.join(folder, n) for n in names if n.endswith(".gcno"))


def documents(build, paths):
    """What gcov says of each object: one JSON text a line."""
    for at in range(0, len(paths), AT_ONCE):
        r = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *paths[at:at + AT_ONCE]],
                           cwd=build, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        yield from (json.loads(line) for line in r.stdout.splitlines() if line.startswith("{"))


def ours(build, name):
    """A source's path below the top; None where it is not the product's."""
    path = os.path.relpath(os.path.normpath(os.path.join(build, name)), TOP)
    return None if path.startswith(("..", *NOT_THE_PRODUCT)) or os.path.join(TOP, path).startswith(build + os.sep) else path


def gather(build):
    """{path: {line: times}}, {path: {(line, nth branch): times}}, of all objects together."""
    lines, branches = (collections.defaultdict(collections.Counter) for _ in range(2))
    for doc in documents(build, sorted(notes(build))):
        for source in doc["files"]:
            path = ours(build, source["file"])
            for line in source["lines"] if path else ():
                lines[path][line["line_number"]] += line["count"]
                for i, b in enumerate(line["branches"]):
                    if not b["throw"]:
                        branches[path][line["line_number"], i] += b["count"]
    return lines, branches


def share(counts):
    reached, n = sum(1 for c in counts if c), len(counts)
    return f"{reached:7d} of {n:7d} {100 * reached / n if n else 100:6.1f} %"


def is_within(path, folder):
    return folder == "all" or path.startswith(folder + "/")


def table(lines, branches):
    folders = collections.defaultdict(lambda: ([], []))
    for found, at in ((lines, 0), (branches, 1)):
        for path, counts in found.items():
            folders[os.path.dirname(path) or "."][at].extend(counts.values())
            folders["all"][at].extend(counts.values())
    print(f"{'folder':32s} {'lines':>27s} {'branches':>28s}")
    for name in sorted(folders, key=lambda n: (n == "all", n)):
        print(f"{name:32s} {share(folders[name][0])}  {share(folders[name][1])}")


def below(lines, branches, floors):
    """What of the floors does not hold, a sentence each."""
    for folder, least in floors.items():
        for what, found, floor in zip(("lines", "branches"), (lines, branches), least):
            counts = [c for path in found if is_within(path, folder) for c in found[path].values()]
            got = 100 * sum(1 for c in counts if c) / max(len(counts), 1)
            if got < floor:
                yield f"{folder}: {got:.1f} % of {what}, and at least {floor} % are asked for"


def missed(lines, folder):
    """(path, line, reason)"""
    for path in sorted(p for p in lines if folder == "." or is_within(p, folder)):
        with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as f:
            for n, reason in sorted(reasons(lines[path], f.read()).items()):
                yield path, n, reason


def by_reason(lines):
    counts = collections.Counter(reason for _, _, reason in missed(lines, "."))
    print(f"\nlines that nothing reached: {sum(counts.values())}")
    for reason, n in counts.most_common():
        print(f"{n:7d}  {reason}")


def main():
    build = os.path.realpath(sys.argv[1])
    lines, branches = gather(build)
    if not lines:
        sys.exit(f"{build}: no object there counts (meson setup -Db_coverage=true)")
    if len(sys.argv) > 3 and sys.argv[2] == "--missed":
        for path, n, reason in missed(lines, sys.argv[3].rstrip("/")):
            print(f"{path}:{n}: {reason}")
    else:
        table(lines, branches)
        by_reason(lines)
        wrong = list(below(lines, branches, FLOORS))
        if wrong:
            sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
