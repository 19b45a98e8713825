"""The package's type hints agree with its code; they are there everywhere (py.typed)."""
import os
import subprocess
import tempfile
import unittest

import determined

# torch's own hints are left out: to read them takes half a minute.
COMMAND = ["/usr/bin/mypy", "-p", "determined", "--python-executable", "/usr/bin/python3", "--follow-imports=skip", "--ignore-missing-imports",
           "--disallow-untyped-defs", "--disallow-incomplete-defs", "--no-incremental", "--cache-dir", os.devnull]


class Types(unittest.TestCase):
    def test_whole_package(self):
        where = os.path.dirname(os.path.dirname(determined.__file__))
        self.assertTrue(os.path.exists(where + "/determined/py.typed"))
        with tempfile.TemporaryDirectory() as top:
            done = subprocess.run(COMMAND, cwd=top, env={**os.environ, "MYPYPATH": where}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
