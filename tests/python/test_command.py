"""Commands for the ranks that cannot be run: said once, as a shell would judge it, and with what to do."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import types
import unittest
from unittest import mock

from determined.launch import _command, _common, deepspeed, horovod, torch_distributed, wrap_rank
from support import store

FILES = (("train.py", "print(1)", 0o644), ("plain", "x", 0o644), ("no-line", "print 1", 0o755), ("no-such", "#!/no/such\n", 0o755))


@contextlib.contextmanager
def files():
    with store():
        for name, text, mode in FILES:
            pathlib.Path(name).write_text(text)
            os.chmod(name, mode)
        yield os.getcwd()


class Commands(unittest.TestCase):
    def test_problems(self):
        with files() as top:
            for line, code, said in (
                ("nosuch", 127, "nosuch: command not found in PATH .*: install it on this host$"),
                ("plain", 127, f"plain: command not found in PATH .*, or write ./plain for the one in {top}$"),
                ("./nosuch", 127, f"./nosuch: no such file .*{top}"),
                ("train.py", 127, "train.py is a Python script, no command: put python3 before it"),
                ("./train.py", 126, "./train.py is a Python script, no command: put python3 before it"),
                (top, 126, f"{top} is a directory"),
                ("./plain", 126, "./plain is not executable: chmod"),
                ("--nnodes 2", 127, "--nnodes: an option where the command is expected: .* ends with --"),
                ("model_def:Line", 127, "model_def:Line: command not found: .* --trial model_def:Line"),
                (f"{sys.executable} nosuch.py", 127, f"nosuch.py: there is no such script in {top}: correct its name"),
            ):
                with self.subTest(line):
                    found = _command.problem(line.split())
                    self.assertEqual(found[0], code)
                    self.assertRegex(found[1], "^" + said)
            for line in ("sh", "/bin/sh nosuch", f"{sys.executable} train.py", f"{sys.executable} -u nosuch.py", "./no-line"):
                self.assertIsNone(_command.problem(line.split()), line)

    def test_launchers(self):
        """Before they start ranks, each of which would say it again."""
        info = types.SimpleNamespace(container_addrs=["127.0.0.1"], slot_ids=[0, 1])
        for launcher in (torch_distributed, horovod, deepspeed):
            with self.subTest(launcher.__name__), mock.patch.object(_common, "cluster", lambda: info), mock.patch.dict(os.environ), \
                    mock.patch("os.execvp") as become, mock.patch("sys.stderr", io.StringIO()) as stderr:
                with self.assertRaises(SystemExit) as left:
                    launcher.main(["--", "nosuch", "--epochs", "2"])
                self.assertEqual((left.exception.code, become.called), (127, False))
                self.assertRegex(stderr.getvalue(), "^nosuch: command not found in PATH .*\n$")

    def python(self, *args):
        return subprocess.run([sys.executable, "-m", *args], capture_output=True, text=True)

    def test_wrap_rank(self):
        """What only the kernel knows too, and with the rank wherever lines have it."""
        with files():
            for line, code, said in (
                ("nosuch", 127, "nosuch: command not found in PATH .*"),
                ("./no-line", 126, "./no-line is no program of this machine: a script's first line .*"),
                ("./no-such", 127, "./no-such: its first line names an interpreter that is not on this host: .*"),
            ):
                for how, start in (["--"], r"\[rank=3\] "), (["--no-redirect-stdio"], ""):
                    with self.subTest(line=line, how=how):
                        done = self.python("determined.launch.wrap_rank", "3", *how, line)
                        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                        self.assertRegex(done.stderr, f"^{start}{said}\n$")
            self.assertEqual(self.python("determined.launch.wrap_rank", "3", "--", "echo", "--").stdout, "[rank=3] --\n")
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            self.assertEqual(wrap_rank.main(["3", "--"]), 1)
        self.assertIn("usage: ", stderr.getvalue())

    def test_torchrun(self):
        for argv in (["nosuch.py"], ["--no_python", "nosuch"]):
            done = self.python("determined.launch.torchrun", *argv)
            self.assertEqual(done.returncode, 127, done.stderr)
            self.assertRegex(done.stderr, "^nosuch.*\n$")


if __name__ == "__main__":
    unittest.main()
