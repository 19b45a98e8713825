#!/usr/bin/env python3
"""Text files as words: train.u16, valid.u16 (the last tenth of every file) and words.txt, one word a line.

usage: make_data.py DIR FILE...
The words are the VOCABULARY - 1 most frequent ones; word 0 stands for all others.
"""
import collections
import os
import re
import struct
import sys

VOCABULARY = 2000


def main():
    out, texts = sys.argv[1], [re.findall(r"\w+|[^\w\s]", open(f, errors="replace").read().lower()) for f in sys.argv[2:]]
    count = collections.Counter(w for t in texts for w in t)
    words = ["<unk>"] + sorted(sorted(count), key=lambda w: -count[w])[:VOCABULARY - 1]
    index = {w: i for i, w in enumerate(words)}
    os.makedirs(out, exist_ok=True)
    with open(out + "/words.txt", "w") as f:
        f.write("".join(w + "\n" for w in words))
    for name, part in (("train", lambda t: t[:len(t) * 9 // 10]), ("valid", lambda t: t[len(t) * 9 // 10:])):
        tokens = [index.get(w, 0) for t in texts for w in part(t)]
        with open(f"{out}/{name}.u16", "wb") as f:
            f.write(struct.pack(f"<{len(tokens)}H", *tokens))
        print(f"{out}/{name}.u16: {len(tokens)} words")


if __name__ == "__main__":
    main()
