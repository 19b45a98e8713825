"""What create_experiment() sends of a directory: as `det` packs it (tests/unit/cli/test_pack.c has the same cases)."""
import os
import tempfile
import unittest

from determined.experimental._experiment import pack

PATHS = {"m": "model_def.c", "s": "sub/skip.log", "a": "sub/deep/a.txt", "d": "data/big.bin"}
CASES = [
    ("", "msad"),
    ("*\n!*/\n!*.c\n", "m"),
    ("*.log\n!skip.log\n", "msad"),
    ("!skip.log\n*.log\n", "mad"),
    ("sub/\n!sub/deep/a.txt\n", "md"),
    ("**/deep\n", "msd"),
    ("sub/**\n", "md"),
    ("sub/**/a.txt\n", "msd"),
    ("**/sub/*.log  \n", "mad"),
    ("/a.txt\n/data\n", "msa"),
    ("sub/*.txt\n", "msad"),
    ("# s*\n\\!x\n!.git/\n!.detignore\n", "msad"),
]


class Pack(unittest.TestCase):
    def test_ignore(self):
        with tempfile.TemporaryDirectory() as top:
            for path in [*PATHS.values(), ".git/objects/blob", "__pycache__/m.pyc"]:
                os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
                with open(os.path.join(top, path), "w") as f:
                    f.write("x")
            for text, left in CASES:
                with open(os.path.join(top, ".detignore"), "w") as f:
                    f.write(text)
                found = {f["path"] for f in pack(top) if f["type"] == 48}
                with self.subTest(text):
                    self.assertEqual(found, {PATHS[letter] for letter in left})


if __name__ == "__main__":
    unittest.main()
