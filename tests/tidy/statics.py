"""The names of static functions: a verb and what it is done to, so that a call can be read where it stands.

usage: statics.py [SOURCE_DIR]    how many there are in C in what is installed, of one word
"""
import json
import os
import subprocess
import sys

ALONE = ("tests", "bench", "examples")  # what is not installed
WORDS = {  # what may be one word, and why
    "dot loss min3 sigmoid slope softmax square triangle": "mathematics, which no verb makes clearer",
    "closedirp freep gzclosep": "a cleanup attribute's: the function, and p for the pointer's address",
    "main": "where a program begins",
}


def is_within(path, places):
    return any(path == p or path.startswith(p + "/") for p in places)


def statics(top, files):
    """Path, line and name of each static function. Names in capitals are macros that make one."""
    r = subprocess.run(["ctags", "--output-format=json", "--fields=+nf", "--kinds-C=f", "--kinds-C++=f", "-f", "-", *files],
                       cwd=top, text=True, capture_output=True)
    lines = {}
    for t in map(json.loads, r.stdout.splitlines()):
        path, n = t["path"], t["line"]
        if path not in lines:
            lines[path] = open(os.path.join(top, path), errors="replace").read().splitlines()
        if (t.get("file") or lines[path][n - 1].startswith("static")) and not t["name"].isupper():
            yield path, n, t["name"]


def is_one_word(name):
    return "_" not in name.strip("_")


def check_statics(top, files):
    known = {w for words in WORDS for w in words.split()}
    for path, n, name in statics(top, [f for f in files if f.endswith((".c", ".h")) and not is_within(f, ALONE)]):
        if is_one_word(name) and name not in known:
            yield path, n, f"{name}() is one word: say what it does to what (tests/tidy/statics.py)"


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else "."
    out = subprocess.run(["git", "-C", top, "ls-files", "*.c", "*.h"], text=True, capture_output=True, check=True).stdout
    found = list(statics(top, [f for f in out.splitlines() if not is_within(f, ALONE)]))
    print(f"{sum(is_one_word(name) for _, _, name in found)} of {len(found)}")


if __name__ == "__main__":
    main()
