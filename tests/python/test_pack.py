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

    def test_strange(self):
        """What holds no code is refused before anything is sent; nothing waits for the other end of a pipe."""
        with tempfile.TemporaryDirectory() as top:
            os.symlink("nowhere", os.path.join(top, "broken"))
            os.mkdir(os.path.join(top, "model"))
            os.mkfifo(os.path.join(top, "model", "pipe"))
            strange = "is neither a file nor a directory: remove it or name it in .detignore"
            for name, said in (("absent", "absent is no directory: model_dir must name the one"), ("", "broken " + strange), ("model", "pipe " + strange)):
                with self.subTest(name), self.assertRaisesRegex(ValueError, said):
                    pack(os.path.join(top, name))


if __name__ == "__main__":
    unittest.main()
