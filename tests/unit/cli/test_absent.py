#!/usr/bin/env python3
"""usage: test_absent.py DET    every verb and option of determined.txt is there, or det says what to do instead"""
import os
import subprocess
import sys

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "determined.txt")


def det(*words):
    return subprocess.run([sys.argv[1], *words], text=True, capture_output=True, timeout=120,
                          env={"DET_MASTER": "http://127.0.0.1:9", "HOME": "/nonexistent"})


def check(*words):
    """Whether it is there."""
    r = det(*words, "--help")
    if r.returncode == 0:
        return True
    text = r.stderr.partition(": ")[2]
    if r.returncode != 2 or not text.startswith("there is no ") or len(text.partition(": ")[2]) < 20:
        bad.append(f"det {' '.join(words)}: {r.returncode} {r.stderr}")
    return False


def rows():
    for line in open(LIST):
        if not line.startswith("#"):
            noun, verb, *opts = line.split()
            yield noun.split("|"), verb.split("|"), opts


bad, asked, there = [], 0, 0
for nouns, verbs, opts in rows():
    for noun in nouns:
        for verb in verbs:
            words = [noun, *verb.split("_")] if verb != "show_ssh_command" else [noun, verb]
            has = check(*words)
            asked, there = asked + 1, there + has
    for opt in opts if has else ():
        given = [opt.rstrip("=")] + ["1"] * opt.endswith("=")
        there += check(*words, *given)
        asked += 1
for words in (("tensorbord", "start"), ("experiment", "lst"), ("experiment", "list", "--pges", "1")):
    r = det(*words)
    assert r.returncode == 2 and "there is no" not in r.stderr, r
assert "did you mean" in det("experiment", "lst").stderr
print(*bad, sep="")
assert asked > 300 and not bad
print(f"{asked} verbs and options, {there} of them there")
