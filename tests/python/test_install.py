"""The package as others get it: by pip, offline, from this checkout; and by the line that meson leaves for the system's python3."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import determined

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BUILD = os.environ.get("DET_BUILD") or os.path.join(TOP, "build")
PROGRAM = "import determined as det; from determined import _loop; print(det.__version__, det.__file__, det.core.Context.__name__)"


def read(name):
    with open(os.path.join(TOP, name)) as f:
        return f.read()


class Installed(unittest.TestCase):
    def says(self, *command):
        """What PROGRAM prints, in an environment that knows nothing of the checkout."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DET_"))}
        return subprocess.run([*command, PROGRAM], env=env, cwd="/", check=True, capture_output=True, text=True).stdout.split()

    @unittest.skipUnless(all(importlib.util.find_spec(m) for m in ("pip", "setuptools", "wheel", "venv")), "no pip here")
    def test_pip(self):
        with tempfile.TemporaryDirectory() as where:
            subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", where], check=True)
            python = os.path.join(where, "bin/python")
            done = subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-build-isolation", "--no-index", "--no-deps", "."],
                                  env={**os.environ, "DET_BUILD": BUILD}, cwd=TOP, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            version, file, _ = self.says(python, "-c")
            self.assertEqual(version, determined.__version__)
            self.assertTrue(file.startswith(where), file)
            self.assertTrue(os.path.exists(os.path.join(os.path.dirname(file), "py.typed")))

    def test_line(self):
        """determined.pth in a folder that python3 reads is all that it takes."""
        folder = os.path.join(BUILD, "harness/python")
        program = f"import site; site.addsitedir({folder!r}); {PROGRAM}"
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        out = subprocess.run([sys.executable, "-c", program], env=env, cwd="/", check=True, capture_output=True, text=True).stdout
        self.assertIn(os.path.dirname(determined.__file__), out)

    def test_version(self):
        """Written down three times, the same."""
        found = [re.search(r"version: '([^']+)'", read("meson.build"))[1], re.search('version = "([^"]+)"', read("pyproject.toml"))[1]]
        self.assertEqual(found, [determined.__version__] * 2)


if __name__ == "__main__":
    unittest.main()
