"""After a loss of power at any moment, what was promised holds, and nothing half is taken for whole.

Each scene runs once, recorded. Then come states that the file system may have been left in, drawn from a seed
(POWER_SEED, printed; POWER_STATES: how many of each scene), and are looked at by the code that would find them. So that this is known to find
anything, the same recordings are replayed as if one call of fsync had been forgotten: each must be found.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
from replay import Recording, lay, read  # noqa: E402

SEED = int(os.environ.get("POWER_SEED") or random.randrange(1 << 32))
STATES = int(os.environ.get("POWER_STATES") or 400)
PYTHON = os.path.join(HERE, "python_scene.py")


def is_begun(path):
    """The directory in which a checkpoint is written."""
    return re.fullmatch(r"a/store/\.[0-9a-f-]{36}\.tmp", path) is not None


def has_extension():
    return subprocess.run([sys.executable, "-c", "from determined import _loop, core"], capture_output=True).returncode == 0


class Power(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"POWER_SEED={SEED} POWER_STATES={STATES}", flush=True)

    def setUp(self):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="det-power-"))
        self.addCleanup(shutil.rmtree, self.top)
        self.scene = os.path.join(self.top, "scene")
        shutil.copy(os.environ["POWER_SCENE"], self.scene)
        os.symlink("/bin/true", os.path.join(self.top, "det-task"))  # looked for beside it, never run

    def native(self, name):
        def check(top, marks):
            p = subprocess.run([self.scene, "check-" + name, top, *marks], capture_output=True, text=True, timeout=60)
            return p.stdout + p.stderr if p.returncode else None

        return [self.scene, name], check

    def record(self, command):
        root, log = os.path.join(self.top, "root"), os.path.join(self.top, "log")
        os.mkdir(root)
        env = {**os.environ, "LD_PRELOAD": os.environ["POWER_RECORDER"], "POWER_ROOT": root, "POWER_LOG": log}
        p = subprocess.run([*command, root], env=env, capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        recording = Recording(log, root)
        self.assertEqual(recording.whole(), read(root), "the recorder missed what the program did")
        return recording

    def first_broken(self, recording, check, states=STATES):
        """What does not hold in the first state in which anything does not; None: all hold."""
        where = os.path.join(self.top, "root")
        for name, marks, state in recording.states(SEED, states):
            shutil.rmtree(where)
            os.mkdir(where)
            lay(state, where)
            said = check(where, marks)
            if said:
                return f"{name}: {said}"
        return None

    def holds(self, command, check):
        recording = self.record(command)
        self.assertIsNone(self.first_broken(recording, check))
        return recording

    def finds(self, recording, check, forgets, said):
        found = self.first_broken(recording.without(forgets), check, 3 * STATES)
        self.assertIsNotNone(found, "a forgotten fsync was not found")
        self.assertRegex(found, said)

    def finds_what_a_store_forgets(self, recording, check):
        whole = "row is durable is not there|is not whole"
        for what, forgets, said in (
            ("a file", lambda path: path.endswith("/weights"), "is not whole"),
            ("metadata.json", lambda path: path.endswith("/metadata.json"), "is not whole"),
            ("the directory of a checkpoint", lambda path: is_begun(path), "is not whole"),
            ("a directory in one", lambda path: path.endswith("/code"), "is not whole"),
            ("the root", lambda path: path == "a/store", whole + "|the store is away"),
            ("the root's own entry", lambda path: path == "a", whole + "|the store is away"),
            ("its parent's", lambda path: path == "", whole + "|the store is away"),
        ):
            with self.subTest(forgotten=what):
                self.finds(recording, check, forgets, said)

    def test_store(self):
        command, check = self.native("store")
        recording = self.holds(command, check)
        self.finds_what_a_store_forgets(recording, check)
        with self.subTest(forgotten="the marker"):
            self.finds(recording, check, lambda path: ".det-store." in path, "the store is away")

    # These two promise nothing on the disk (no trial waits for it, and tasks do not outlive their host): no fsync is missed.
    def test_spool(self):
        self.holds(*self.native("spool"))

    def test_task(self):
        self.holds(*self.native("task"))

    def finds_what_an_agent_forgets(self, name, file, said):
        command, check = self.native(name)
        recording = self.holds(command, check)
        for what, forgets in (
            ("the file", lambda path: path.startswith(f"a/work/.{file}.")),
            ("its directory", lambda path: path == "a/work"),
            ("the directory's own entry", lambda path: path == "a"),
            ("its parent's", lambda path: path == ""),
        ):
            with self.subTest(forgotten=what):
                self.finds(recording, check, forgets, said)

    def test_life(self):
        self.finds_what_an_agent_forgets("life", "life.json", "a leader is forgotten|cannot be read")

    def test_identity(self):
        self.finds_what_an_agent_forgets("identity", "identity.json", "is lost|cannot be read")

    @unittest.skipUnless(has_extension(), "no determined package here")
    def test_python(self):
        """core.checkpoint: upload() and store_path(), whole and in shards."""
        from python_scene import check

        recording = self.holds([sys.executable, PYTHON], check)
        self.finds_what_a_store_forgets(recording, check)


if __name__ == "__main__":
    unittest.main()
