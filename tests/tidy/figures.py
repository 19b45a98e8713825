#!/usr/bin/env python3
"""The house in figures, without tests, benchmarks and examples: docs/working.md keeps them.

usage: figures.py [SOURCE_DIR]
"""
import collections
import json
import os
import statistics
import subprocess
import sys

from rings import RINGS
from rooms import LARGER, MOST, NO_CODE
from statics import ALONE, is_one_word, is_within, statics


def run(top, *command):
    return subprocess.run(command, cwd=top, text=True, capture_output=True, check=True).stdout


def function_lengths(top, files):
    out = run(top, "ctags", "--output-format=json", "--fields=+ne", "--kinds-C=f", "--kinds-C++=f", "--langmap=C++:+.cu.cuh", "-f", "-", *files)
    tags = [t for t in map(json.loads, out.splitlines()) if "end" in t and not t["name"].isupper()]
    return sorted((t["end"] - t["line"] + 1, f"{t['path']}:{t['name']}") for t in tags)


def tell(what, sizes, places=(0.5, 0.9, 0.99)):
    """sizes: [(size, name)], sorted."""
    parts = [f"{int(100 * p)} % {sizes[int(p * (len(sizes) - 1))][0]}" for p in places]
    print(f"{what}: {len(sizes)}, lines: {', '.join(parts)}, most {sizes[-1][0]} ({sizes[-1][1]})")


def tell_folders(what, files):
    folders = collections.Counter(os.path.dirname(f) for f in files)
    name, most = folders.most_common(1)[0]
    large = sum(n > MOST for n in folders.values())
    print(f"{what}: {len(folders)}, files: median {statistics.median(folders.values()):g}, most {most} ({name}), more than {MOST} in {large}")


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "."
    files = [f for f in run(top, "git", "ls-files").splitlines() if os.path.exists(os.path.join(top, f))]
    ours = [f for f in files if f.endswith((".c", ".h", ".cu", ".cuh")) and not is_within(f, ALONE)]
    tell("functions", function_lengths(top, ours))
    tell("files of C", sorted((open(os.path.join(top, f), "rb").read().count(b"\n"), f) for f in ours))
    tell_folders("folders of C", ours)
    tell_folders("all folders", [f for f in files if not f.endswith(NO_CODE)])
    print(f"folders with a reason to be larger: {len(LARGER)}; rings: {', '.join(f'{k} of {len(v[1].split())} files' for k, v in RINGS.items())}")
    found = list(statics(top, [f for f in ours if f.endswith((".c", ".h"))]))
    print(f"statics of one word: {sum(is_one_word(name) for _, _, name in found)} of {len(found)}")


if __name__ == "__main__":
    main()
