#!/usr/bin/env python3
"""Every command of README.md and docs/*.md is tried by a scene of plays.py or named there with a reason, and whatever it calls of ours has the
verb, the options and the file that it names. What they do, tests/documents/run tries on a fresh Debian."""
import os
import re
import shlex
import subprocess
import sys
import unittest

import plays
from commands import TOP, commands, documents

BIN = os.environ.get("DET_BIN", os.path.join(TOP, "build/prefix/bin"))
WORDS_MAX = {"det": 2, "det-master": 1, "det-agent": 1, "det-harness": 1}
ANYWHERE = {"--help", "--version"}


def simple(text):
    """The simple commands of a line as lists of words."""
    line = text.split("\n")[0]
    for part in re.split(r"&&|;|\|", re.sub(r"\$\([^)]*\)", "X", line)):
        words = shlex.split(part)
        yield words[words.index("--") + 1:] if words[:1] == ["runuser"] and "--" in words else words


def help_of(words):
    asked = subprocess.run([os.path.join(BIN, words[0]), *words[1:], "--help"], text=True, capture_output=True, timeout=30)
    return asked.returncode, asked.stdout + asked.stderr


def verbs(words):
    """The program with its noun and verb."""
    found = [words[0]]
    for w in words[1:1 + WORDS_MAX[words[0]]]:
        if not re.fullmatch(r"[a-z][a-z-]*", w):
            break
        found.append(w)
    return found


class Documents(unittest.TestCase):
    def setUp(self):
        self.all = [c for doc in documents() for c in commands(doc) if (c.doc, c.text) not in plays.ABSENT]

    def test_all_are_tried_or_named(self):
        untold, stale = plays.uncovered()
        self.assertEqual(untold, [], "commands that no scene of tests/documents/plays.py runs and no list there names")
        self.assertEqual(stale, [], "entries of tests/documents/plays.py that no document has")

    def test_verbs_and_options(self):
        for c in self.all:
            for words in simple(c.text):
                if not words or words[0] not in WORDS_MAX:
                    continue
                code, text = help_of(verbs(words))
                self.assertEqual(code, 0, f"{c}: {text}")
                for option in [w.split("=")[0] for w in words if w.startswith("-") and w.strip("-")]:
                    self.assertTrue(option in ANYWHERE or re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text), f"{c}: no option {option}")

    def test_files(self):
        for c in self.all:
            for words in simple(c.text):
                for w in words:
                    if re.match(r"(tests|deploy|bench|examples)/", w):
                        self.assertTrue(os.path.exists(os.path.join(TOP, w)), f"{c}: there is no {w}")
                if words[:2] == ["python3", "-m"] and words[2].startswith("determined"):
                    path = os.path.join(TOP, "harness/python", words[2].replace(".", "/"))
                    self.assertTrue(os.path.exists(path + ".py") or os.path.exists(path + "/__main__.py"), f"{c}: there is no {words[2]}")

    def test_what_there_is_not(self):
        for doc, text in sorted(plays.ABSENT):
            code, said = help_of(text.split())
            self.assertNotEqual(code, 0, f"{doc}: {text} is there: {said}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
