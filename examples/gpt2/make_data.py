#!/usr/bin/env python3
"""Text files as a token file, one byte a token: train.u16 and valid.u16 (the last tenth of every file).

usage: make_data.py DIR FILE...
For the tokens of GPT-2 itself write the numbers of its tokenizer in the same form, and set vocabulary: 50257.
"""
import os
import sys


def main():
    out, texts = sys.argv[1], [open(f, "rb").read() for f in sys.argv[2:]]
    os.makedirs(out, exist_ok=True)
    for name, part in (("train", lambda t: t[:len(t) * 9 // 10]), ("valid", lambda t: t[len(t) * 9 // 10:])):
        data = b"".join(bytes((c, 0)) for t in texts for c in part(t))
        with open(f"{out}/{name}.u16", "wb") as f:
            f.write(data)
        print(f"{out}/{name}.u16: {len(data) // 2} tokens")


if __name__ == "__main__":
    main()
