"""What create_experiment() sends of a directory: as git would ignore (tests/unit/cli/detignore.json, which `det` is tested by too)."""
import json
import os
import tempfile
import unittest

from determined.experimental._experiment import pack

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/cli/detignore.json")


class Pack(unittest.TestCase):
    def test_ignore(self):
        with open(TABLE) as f:
            table = json.load(f)
        with tempfile.TemporaryDirectory() as top:
            for path in [*table["paths"], ".git/objects/blob", "__pycache__/m.pyc"]:
                os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
                with open(os.path.join(top, path), "w") as f:
                    f.write("x")
            for case in table["cases"]:
                with open(os.path.join(top, ".detignore"), "w", newline="") as f:
                    f.write(case["ignore"] + "!.git/\n!.detignore\n")
                found = {f["path"] for f in pack(top) if f["type"] == 48}
                with self.subTest(case["ignore"]):
                    self.assertEqual(set(table["paths"]) - found, set(case["ignored"]))
                    self.assertEqual(found - set(table["paths"]), set())


if __name__ == "__main__":
    unittest.main()
