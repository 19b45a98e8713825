"""The client alone, as deploy/client-wheel makes it: installed by pip, without a compiler and without torch."""
import ast
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile
from unittest import mock

from determined import cli, errors
from determined.experimental import client
from determined.experimental._master import Master, hash_password, keep_login

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PROGRAM = """
import sys
from determined import searcher
from determined.experimental import client
assert "torch" not in sys.modules and "determined.core" not in sys.modules
from determined import core
from determined.experimental import core_v2
try:
    core.DistributedContext(rank=0, size=2, local_rank=0, local_size=2, cross_rank=0, cross_size=1)
except ImportError as e:
    print(e)
import os, sys
with core.init(checkpoint_storage=sys.argv[1]) as context:
    with context.checkpoint.store_path({"steps_completed": 3}) as (path, uuid):
        (path / "weights").write_text("1")
    assert context.checkpoint.get_metadata(uuid) == {"steps_completed": 3}
    with context.checkpoint.restore_path(uuid) as path:
        assert (path / "weights").read_text() == "1"
    os.truncate(os.path.join(sys.argv[1], uuid, "weights"), 0)
    try:
        context.checkpoint.download(uuid, sys.argv[1] + "/again")
    except RuntimeError as e:
        print(e)
    context.checkpoint.delete(uuid)
    assert os.listdir(sys.argv[1]) == [], os.listdir(sys.argv[1])
"""


def make(folder):
    done = subprocess.run([sys.executable, os.path.join(TOP, "deploy/client-wheel"), folder], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Wheel(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.addCleanup(self.top.cleanup)

    def says(self, *command):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DET_"))}
        done = subprocess.run(command, env={**env, "PATH": "/usr/bin:/bin"}, cwd="/", capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @unittest.skipUnless(all(importlib.util.find_spec(m) for m in ("pip", "venv")), "no pip here")
    def test_installed(self):
        wheel, where = make(self.top.name), os.path.join(self.top.name, "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", where], check=True)
        python = os.path.join(where, "bin/python")
        subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "-q", wheel], check=True)
        said = self.says(python, "-c", PROGRAM, os.path.join(self.top.name, "store"))
        self.assertIn("the client of a det cluster alone", said)
        self.assertIn("weights is not as it was written", said)
        self.assertIn("experiment", self.says(os.path.join(where, "bin/det"), "--help"))
        self.assertIn("--follow", self.says(python, "-m", "determined.cli", "e", "create", "--help"))

    def test_bytes(self):
        wheels = [pathlib.Path(make(os.path.join(self.top.name, n))).read_bytes() for n in "ab"]
        self.assertEqual(*wheels)

    def test_older_pythons(self):
        """What the client imports has no syntax that is newer than its metadata says."""
        with zipfile.ZipFile(make(self.top.name)) as wheel:
            names = [n for n in wheel.namelist() if n.endswith(".py") and n.split("/")[1] in ("__init__.py", "_absent.py", "_info.py", "_loop.py", "_refusal.py", "_tls.py", "core", "experimental", "searcher", "cli", "errors.py")]
            self.assertGreater(len(names), 15)
            for name in names:
                ast.parse(wheel.read(name), name, feature_version=(3, 9))


class Passwords(unittest.TestCase):
    def test_read(self):
        """DET_PASS, else the first line of DET_PASS_FILE: by whoever logs in, and by `det user login`."""
        with tempfile.TemporaryDirectory() as top:
            file = pathlib.Path(top, "password")
            file.write_text("of the file\nand more")
            environment = {"XDG_CONFIG_HOME": top, "PATH": "", "DET_PASS_FILE": str(file)}
            for more, expected in (({}, "of the file"), ({"DET_PASS": "given"}, "given"), ({"DET_PASS": ""}, "")):
                with mock.patch.dict(os.environ, {**environment, **more}, clear=True), \
                        mock.patch.object(Master, "post", return_value={"token": "t"}) as post:
                    client.Determined("http://master:1", "admin")
                    self.assertEqual(cli.main(["-m", "http://master:1", "user", "login", "admin"]), 0)
                    self.assertEqual([call.args[1]["password"] for call in post.call_args_list], [hash_password(expected)] * 2)
            file.unlink()
            with mock.patch.dict(os.environ, environment, clear=True):
                with self.assertRaisesRegex(ValueError, "DET_PASS_FILE, which is .*, cannot be read"):
                    client.Determined("http://master:1", "admin")
            with mock.patch.dict(os.environ, {**environment, "DET_USER_TOKEN": "t"}, clear=True):
                client.Determined("http://master:1")


    def test_kept(self):
        """Beside what a process that died has left there, and readable to the user alone."""
        with tempfile.TemporaryDirectory() as top, mock.patch.dict(os.environ, XDG_CONFIG_HOME=top):
            folder = pathlib.Path(top, "determined")
            folder.mkdir()
            (folder / f".auth.json.{os.getpid()}").write_text("{")
            for user in ("ann", "bob"):
                keep_login("http://master:1", user, "token of " + user)
            kept = folder / "auth.json"
            self.assertEqual(json.loads(kept.read_text())["masters"]["http://master:1"],
                             {"active_user": "bob", "tokens": {"ann": "token of ann", "bob": "token of bob"}})
            self.assertEqual((kept.stat().st_mode & 0o777, len(os.listdir(folder))), (0o600, 2))


class Waiting(unittest.TestCase):
    def test_paused(self):
        """Waiting for a paused experiment is refused, also where the master does not say why it is paused."""
        paused = {"id": 7, "state": "STATE_PAUSED", "name": "x", "archived": False}
        with mock.patch.dict(os.environ, DET_USER_TOKEN="t"):
            experiment = client.Experiment._of(client.Determined("http://master:1")._master, paused)
        for error in (client.APIException(404, "no such route"), ConnectionError("away")):
            with mock.patch.object(Master, "get", side_effect=[{"experiment": paused}, error]), \
                    self.assertRaisesRegex(ValueError, "experiment 7 is paused: activate it"):
                experiment.wait()


class Best(unittest.TestCase):
    def setUp(self):
        self.asked = []

    def get(self, path, offset=0, **query):
        """A master of 1,000 whole checkpoints, whose loss is their number."""
        self.asked.append((path, offset, query))
        if "checkpoints" not in path:
            return {"experiment": {"state": "STATE_COMPLETED", "name": "n", "archived": False, "config": {"searcher": {"metric": "loss", "smaller_is_better": False}}}}
        numbers = list(range(1000))[:: -1 if query["orderBy"] == "ORDER_BY_DESC" else 1][offset: offset + query["limit"]]
        return {"pagination": {"total": 1000}, "checkpoints": [
            {"uuid": str(n), "state": "STATE_COMPLETED", "training": {"validationMetrics": {"avgMetrics": {"loss": n}}}} for n in numbers]}

    def test_the_best_are_asked_for_alone(self):
        trial, experiment = client.Trial.__new__(client.Trial), client.Experiment.__new__(client.Experiment)
        for it, path in ((trial, "/api/v1/trials/7"), (experiment, "/api/v1/experiments/5")):
            it._master, it.id, it.config = self, 7, {"searcher": {"metric": "loss", "smaller_is_better": False}}
        trial.experiment_id = experiment.id = 5
        self.assertEqual([c.uuid for c in experiment.top_n_checkpoints(3)], ["999", "998", "997"])
        self.assertEqual([c.uuid for c in experiment.top_n_checkpoints(2, "loss", True)], ["0", "1"])
        self.assertEqual([c.uuid for c in experiment.top_n_checkpoints(250, "loss", True)], [str(n) for n in range(250)])
        self.assertEqual(trial.top_checkpoint("loss", False).uuid, "999")
        self.assertEqual([(offset, query["limit"]) for path, offset, query in self.asked if "checkpoints" in path],
                         [(0, 3), (0, 2), (0, 200), (200, 200), (0, 1)])
        self.assertTrue(all(query["states"] == ["STATE_COMPLETED"] for path, _, query in self.asked if "checkpoints" in path))
        with self.assertRaisesRegex(errors.CheckpointNotFound, "no checkpoint with the validation metric \"other\""):
            experiment.top_checkpoint("other", True)


class Program(unittest.TestCase):
    def test_says_why(self):
        """What cannot be done is one line, not a traceback."""
        for error in (errors.CheckpointNotFound, errors.CheckpointStateException, errors.NoDirectStorageAccess, client.APIException, OSError, ValueError):
            raised = error(404, "gone") if error is client.APIException else error("gone")
            with mock.patch.dict(os.environ, PATH=""), mock.patch.object(client, "login"), mock.patch("sys.stderr", io.StringIO()) as said, \
                    mock.patch.object(client, "get_checkpoint", side_effect=raised):
                self.assertEqual(cli.main(["c", "download", "u"]), 1)
            self.assertEqual(said.getvalue(), "det: gone\n")

    def run_det(self, *words):
        """(status, output, errors) of a machine without the program."""
        with mock.patch.dict(os.environ, PATH=""), mock.patch("sys.stdout", io.StringIO()) as out, mock.patch("sys.stderr", io.StringIO()) as said:
            try:
                status = cli.main([*words])
            except SystemExit as e:
                status = e.code
        return status or 0, out.getvalue(), said.getvalue()

    def test_absent_is_named(self):
        """A command that only the program has: what there is, and where the rest is."""
        for words, word, there in ((("watch", "3"), "'watch'", "experiment"), (("t", "plot", "3"), "'plot'", "download")):
            status, _, said = self.run_det(*words)
            self.assertEqual((status, said.count("\n")), (2, 1), said)
            self.assertIn(word + " is not in det's Python client, which has ", said)
            self.assertIn(there, said)
        self.assertRegex(self.run_det("--version")[1], r"det \d+\.\d+\.\d+ \(Python client\)")

    def test_every_word_has_an_answer(self):
        """Of Determined's det: it is there, or one line says where it is or what to do instead."""
        with open(os.path.join(TOP, "tests/unit/cli/determined.txt")) as f:
            rows = [line.split() for line in f if not line.startswith("#")]
        reached, asked = ValueError("it is there"), 0
        with mock.patch.object(cli.client, "login", side_effect=reached), mock.patch.object(cli, "own_password", lambda: "x"), \
                mock.patch.object(cli.client, "Determined", side_effect=reached):
            for noun, verbs, *options in rows:
                for option in ("", *options):
                    words = [noun.split("|")[0], *verbs.split("|")[0].split("_")] + ([option.rstrip("=")] if option else []) + ["1"]
                    status, _, said = self.run_det(*words)
                    with self.subTest(" ".join(words)):
                        self.assertIn(status, (1, 2))
                        self.assertRegex(said.splitlines()[-1], "it is there|is not in det's Python client|there is no 'det |arguments are required|invalid ")
                    asked += 1
        self.assertGreater(asked, 300)
        self.assertRegex(self.run_det("notebook", "start")[2], "^det: there is no 'det notebook' here: run Jupyter on this machine")
        self.assertRegex(self.run_det("e", "create", "x.yaml", "--git")[2], "^det: --git is not in det's Python client; the program det")

    def test_create(self):
        """What --config says goes over the file, of which nothing else changes."""
        made = []
        with tempfile.TemporaryDirectory() as top, mock.patch.object(cli.client, "login"), mock.patch.object(cli.client, "_current") as current:
            file = os.path.join(top, "c.yaml")
            pathlib.Path(file).write_text("name: x\nsearcher: {name: single, max_length: 7}\n")
            current()._submit.side_effect = lambda *a: made.append(a) or types.SimpleNamespace(id=5)
            self.assertEqual(self.run_det("e", "create", file, ".", "--paused", "--template", "t", "--project_id", "2")[:2], (0, "Created experiment 5\n"))
            self.assertEqual(made.pop(), (file, ".", None, None, 2, "t", False))
            self.run_det("e", "create", file, "--config", "searcher.max_length.batches=9", "--config", "labels=[a]")
            self.assertEqual(made.pop(), ({"name": "x", "searcher": {"name": "single", "max_length": {"batches": 9}}, "labels": ["a"]}, None, None, None, None, None, True))
            self.assertRegex(self.run_det("e", "create", file, "--config", "labels")[2], "--config labels: write KEY=VALUE")

    def test_checkpoints_that_are_there_come_first(self):
        made = [types.SimpleNamespace(uuid=uuid, state=client.CheckpointState[state], metadata={"steps_completed": steps}, training=types.SimpleNamespace(trial_id=7))
                for uuid, state, steps in (("a", "DELETED", 10), ("b", "COMPLETED", 20), ("c", "PARTIALLY_DELETED", 30), ("d", "COMPLETED", 40))]
        with mock.patch.object(cli.client, "login"), mock.patch.object(cli.client, "get_experiment") as get:
            get()._in_any_state.return_value = made
            lines = self.run_det("e", "list-checkpoints", "1")[1].splitlines()
        self.assertEqual([line.split() for line in lines], [["TRIAL", "BATCHES", "STATE", "UUID"], ["7", "20", "COMPLETED", "b"], ["7", "40", "COMPLETED", "d"],
                                                            ["7", "10", "DELETED", "a"], ["7", "30", "PARTIALLY_DELETED", "c"]])

    def test_config_is_read_as_the_master_reads_it(self):
        """YAML 1.2 in the file and in what goes over it: no text where the master has a number, no truth and no date where it has a text."""
        made = []
        text = "on: {lr: 1e-4, day: 2020-01-01, keep: off, at: 1:30}\n012: 0o14\nodd: [0x1F, 012, .5, -1., 1_000, y, ~, True, 0b1, '1e-4', +7]\nbase: &b {a: 1}\nover: {<<: *b, c: }\n"
        with tempfile.TemporaryDirectory() as top, mock.patch.object(cli.client, "login"), mock.patch.object(cli.client, "_current") as current:
            file = os.path.join(top, "c.yaml")
            pathlib.Path(file).write_text(text)
            current()._submit.side_effect = lambda *a: made.append(a[0]) or types.SimpleNamespace(id=5)
            self.assertEqual(self.run_det("e", "create", file, "--config", "more=[2e3, no, 2020-01-01, false]")[0], 0)
        self.assertEqual(json.loads(json.dumps(made[0])), {
            "on": {"lr": 0.0001, "day": "2020-01-01", "keep": "off", "at": "1:30"}, "012": 12,
            "odd": [31, 12, 0.5, -1.0, "1_000", "y", None, True, "0b1", "1e-4", 7], "base": {"a": 1}, "over": {"a": 1, "c": None}, "more": [2000.0, "no", "2020-01-01", False]})
        self.assertIs(type(made[0]["on"]["lr"]), float)

    def test_what_is_no_config(self):
        for text, said in (("a: 1\na: 2", "'a' is given twice"), ("a: !!timestamp 2020-01-01", "not YAML: .*tag"), ("a: 1e400", "1e400 is no number"), ("a: [", "not YAML")):
            with self.subTest(text), tempfile.TemporaryDirectory() as top, mock.patch.object(cli.client, "login"), mock.patch.object(cli.client, "_current"):
                file = os.path.join(top, "c.yaml")
                pathlib.Path(file).write_text(text)
                rc, _, err = self.run_det("e", "create", file, "--config", "b=1")
                self.assertEqual(rc, 1)
                self.assertRegex(err, said)

    def test_exceptions_are_found(self):
        lines = ["[2026-11-28T01:27:41.4Z] ad46414d [rank=0] || " + line for line in (
            "Traceback (most recent call last):", '  File "/x/lib/det/python/determined/_loop.py", line 9, in run', '  File "/t/7.0/work/model_def.py", line 10, in train_batch',
            "    raise ValueError()", "ValueError: the fourth")] + ["[2026-11-28T01:27:41.9Z]          || ERROR: Run 1 ended: rank 0 exited with code 1"]
        trial = types.SimpleNamespace(iter_logs=lambda tail: [line + "\n" for line in lines])
        self.assertEqual(cli._exception(trial), "ValueError: the fourth (model_def.py, line 10, in train_batch)")
        self.assertIsNone(cli._exception(types.SimpleNamespace(iter_logs=lambda tail: [])))

    def test_why(self):
        asked = []
        thing = mock.Mock()
        thing._master.get = lambda path: asked.append(path) or {"text": "it waits"}
        with mock.patch.object(client, "login"), mock.patch.object(client, "get_trial", return_value=thing), \
                mock.patch.object(client, "get_experiment", return_value=thing):
            for what, path in (("7", "/api/v1/trials/7/why"), ("trial:7", "/api/v1/trials/7/why"), ("exp:3", "/api/v1/experiments/3/why")):
                self.assertEqual(self.run_det("why", what), (0, "it waits\n", ""))
                self.assertEqual(asked[-1], path)
            status, _, said = self.run_det("why", "job:x")
        self.assertEqual((status, said), (1, "det: 'job:x': write exp:ID or trial:ID; a number alone is a trial's\n"))

    def test_found(self):
        """A `det` that is a program runs in its place; one that is a script is this one."""
        with tempfile.TemporaryDirectory() as top:
            script, program = (os.path.join(top, name, "det") for name in "ab")
            for path, head in ((script, b"#!/usr/bin/python3\n"), (program, b"\x7fELF...")):
                os.mkdir(os.path.dirname(path))
                with open(path, "wb") as f:
                    f.write(head)
                os.chmod(path, 0o755)
            with mock.patch.dict(os.environ, PATH=f"{top}/a:{top}/none:{top}/b"), mock.patch("os.execv", side_effect=SystemExit) as run:
                self.assertRaises(SystemExit, cli.main, ["e", "list"])
            run.assert_called_once_with(program, [program, "e", "list"])


if __name__ == "__main__":
    unittest.main()
