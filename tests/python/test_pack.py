"""What the client sends of a directory, and what it fetches of a checkpoint.

What is ignored: as git would (tests/unit/cli/detignore.json, which `det` is tested by too).
"""
import base64
import io
import json
import os
import pathlib
import re
import shutil
import tarfile
import tempfile
import types
import unittest
from unittest import mock

from determined.errors import CheckpointNotFound
from determined.experimental import client
from determined.experimental._checkpoint import Checkpoint
from determined.experimental._experiment import pack

OPENAPI = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/openapi.yaml")
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
            for name in ("leads", "link", "pipes", "good"):
                os.mkdir(os.path.join(top, name))
            os.symlink("nowhere", os.path.join(top, "leads", "broken"))
            os.symlink("../good", os.path.join(top, "link", "data"))
            os.mkfifo(os.path.join(top, "pipes", "pipe"))
            os.symlink(__file__, os.path.join(top, "good", "model_def.py"))
            strange = ": remove it or name it in .detignore"
            for name, said in (("absent", "absent is no directory: model_dir must name the one"), ("leads", "broken is a link that leads nowhere" + strange),
                               ("link", "data is a link to a directory, and these are not sent" + strange), ("pipes", "pipe is neither a file nor a directory" + strange)):
                with self.subTest(name), self.assertRaisesRegex(ValueError, said):
                    pack(os.path.join(top, name))
            with open(__file__, "rb") as f:
                self.assertEqual([(e["path"], e["type"], base64.b64decode(e["content"])) for e in pack(os.path.join(top, "good"))], [("model_def.py", 48, f.read())])

    def test_too_large(self):
        """Known before it is read: data beside a model may be more than there is memory."""
        with tempfile.TemporaryDirectory() as top:
            with open(os.path.join(top, "data"), "wb") as f:
                f.truncate(1 << 40)
            with self.assertRaisesRegex(ValueError, "more than 95 MiB: name what is not needed in .detignore"):
                pack(top)
            with open(os.path.join(top, ".detignore"), "w") as f:
                f.write("data")
            self.assertEqual(pack(top), [])

    def test_name_that_is_not_utf8(self):
        with tempfile.TemporaryDirectory() as top:
            with open(os.path.join(os.fsencode(top), b"caf\xe9"), "w"):
                pass
            with self.assertRaisesRegex(ValueError, "caf.*not UTF-8: rename it or name it in .detignore"):
                pack(top)
            with open(os.path.join(top, ".detignore"), "w") as f:
                f.write("caf*\n")
            self.assertEqual(pack(top), [])


class Download(unittest.TestCase):
    """What was cut short is not taken for whole the next time."""

    FILES = {"metadata.json": b"{}", "state_dict.pth": bytes(100000)}

    def checkpoint(self, store, download=None):
        config = {"checkpoint_storage": {"type": "directory", "container_path": store}}
        master = types.SimpleNamespace(download=download)
        return Checkpoint._of(master, {"uuid": "u", "state": "STATE_COMPLETED", "training": {"experimentConfig": config}})

    def check(self, directory):
        self.assertEqual({f: pathlib.Path(directory, f).read_bytes() for f in sorted(os.listdir(directory))}, self.FILES)

    def test_directly(self):
        with tempfile.TemporaryDirectory() as store, tempfile.TemporaryDirectory() as target:
            os.mkdir(os.path.join(store, "u"))
            for name, content in self.FILES.items():
                pathlib.Path(store, "u", name).write_bytes(content)
            checkpoint = self.checkpoint(store)
            copy = shutil.copyfile

            def cut(src, dst):
                if src.endswith(".pth"):
                    raise OSError(28, "No space left on device")
                copy(src, dst)

            with mock.patch("shutil.copyfile", cut), self.assertRaisesRegex(OSError, "No space left"):
                checkpoint.download(target)
            self.check(checkpoint.download(target))

    def test_through_the_master(self):
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w:gz") as archive:
            for name, content in self.FILES.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        with tempfile.TemporaryDirectory() as target:
            half = io.BytesIO(whole.getvalue()[:-60])
            checkpoint = self.checkpoint("/nowhere", lambda path, accept: half)
            with self.assertRaises((EOFError, tarfile.ReadError)):
                checkpoint.download(target)
            checkpoint = self.checkpoint("/nowhere", lambda path, accept: io.BytesIO(whole.getvalue()))
            self.check(checkpoint.download(target))


class Asked:
    """A master that counts its calls and, to begin with, cannot be reached."""

    def __init__(self, absent=0):
        self.calls, self.absent = 0, absent

    def get(self, path, **query):
        self.calls += 1
        if self.calls <= self.absent:
            raise ConnectionError("the master cannot be reached")
        one = {"id": 1, "state": "STATE_COMPLETED", "name": "n", "archived": False, "experimentId": 1}
        many = [one, {**one, "id": 2}]
        return {"experiments": many, "trials": many, "experiment": one, "pagination": {"total": 2}}


class Stored:
    """A master with an experiment's checkpoints, 450 whole ones among 50 that were deleted, and the queries that it got."""

    def __init__(self):
        self.asked = []
        self.raw = [{"uuid": str(i), "state": "STATE_DELETED" if i % 10 == 0 else "STATE_COMPLETED"} for i in range(500)]

    def get(self, path, **query):
        if "/checkpoints/" in path:
            self.asked.append(path)
            if path.endswith("/no%2Fuuid"):
                raise client.APIException(400, "no UUID")
            if path.endswith("/lost"):
                raise client.NotFoundException(404, "not found")
            if path.endswith("/away"):
                raise client.APIException(503, "not now")
            uuid = path.rsplit("/", 1)[1]
            return {"checkpoint": {"uuid": uuid, "state": "STATE_COMPLETED", "training": {"trialId": len(uuid)}}}
        if not path.endswith("/checkpoints"):
            return {"experiment": {"id": 1, "state": "STATE_COMPLETED", "name": "n", "archived": False, "config": {"searcher": {"metric": "loss"}}}}
        self.asked.append(query)
        found = [c for c in self.raw if c["state"] in (query["states"] or [c["state"]])]
        return {"checkpoints": found[query["offset"]:][:query["limit"]], "pagination": {"total": len(found)}}


class Experiments(unittest.TestCase):
    def test_checkpoints(self):
        """Of an experiment those that are whole, of a trial all; the best is one question, for one."""
        master = Stored()
        experiment = client.Experiment(master, 1)
        trial = client.Trial._of(master, {"id": 1, "experimentId": 1, "state": "STATE_COMPLETED"})
        states = [[c.state.name for c in found] for found in (experiment.list_checkpoints(), experiment.list_checkpoints("loss"), trial.list_checkpoints())]
        self.assertEqual(states, [["COMPLETED"] * 450, ["COMPLETED"] * 450, ["COMPLETED"] * 450 + ["DELETED"] * 50])
        self.assertEqual([q["offset"] for q in master.asked], [0, 200, 400] * 3 + [0])
        for call, given in ((experiment.list_checkpoints, {}), (experiment.list_checkpoints, {"sort_by": "loss"}), (trial.list_checkpoints, {})):
            with self.subTest(call.__qualname__, **given):
                master.asked.clear()
                (best,) = call(max_results=1, **given)
                (query,) = master.asked
                self.assertEqual((best.uuid, query["limit"], query["sortByMetric"], query["states"]), ("1", 1, "loss", ["STATE_COMPLETED"]))
        self.assertEqual((len(trial.list_checkpoints(max_results=460)), trial.list_checkpoints(max_results=0)), (460, []))

    def test_one_of_a_trial(self):
        """The latest, and one by its UUID, are one question each, however many there are."""
        master = Stored()
        trial = client.Trial._of(master, {"id": 1, "experimentId": 1, "state": "STATE_COMPLETED"})
        self.assertEqual(trial.select_checkpoint(latest=True).uuid, "1")
        (query,) = master.asked
        self.assertEqual({k: query[k] for k in ("limit", "sortByAttr", "orderBy", "states")},
                         {"limit": 1, "sortByAttr": "SORT_BY_BATCH_NUMBER", "orderBy": "ORDER_BY_DESC", "states": ["STATE_COMPLETED"]})
        master.asked.clear()
        self.assertEqual((trial.select_checkpoint(uuid="a").uuid, master.asked), ("a", ["/api/v1/checkpoints/a"]))
        for uuid in ("of another's", "no/uuid", "lost"):
            with self.assertRaisesRegex(CheckpointNotFound, f"trial 1 has no checkpoint {uuid}"):
                trial.select_checkpoint(uuid=uuid)
        with self.assertRaisesRegex(client.APIException, "not now"):
            trial.select_checkpoint(uuid="away")
        master.raw = []
        with self.assertRaisesRegex(CheckpointNotFound, "trial 1 has no checkpoint"):
            trial.select_checkpoint(latest=True)

    def test_states(self):
        """A trial's state is one of its own kind; both kinds are what the master's interface lists."""
        trial = client.Trial._of(Asked(), {"id": 1, "experimentId": 1, "state": "STATE_RUNNING"})
        self.assertEqual(repr(trial.state), "<TrialState.RUNNING: 'STATE_RUNNING'>")
        with open(OPENAPI) as f:
            listed = dict(re.findall(r'^    (experiment|trial)\.v1\.State: .*"enum": (\[.*\])\}$', f.read(), re.M))
        for kind, states in (("experiment", client.ExperimentState), ("trial", client.TrialState)):
            self.assertEqual({s.value: s.name for s in states}, {s: s[len("STATE_"):] for s in json.loads(listed[kind])})

    def test_lists(self):
        """One question, however many there are."""
        determined = client.Determined.__new__(client.Determined)
        determined._master = Asked()
        first, second = determined.list_experiments()
        self.assertEqual((first.id, second.id, second.state, determined._master.calls), (1, 2, client.ExperimentState.COMPLETED, 1))
        self.assertEqual((second._path, [t.id for t in second.list_trials()]), ("/api/v1/experiments/2", [1, 2]))
        self.assertEqual(determined._master.calls, 2)

    def test_wait_for_a_master(self):
        """That is being started anew; but not for ever."""
        raw = {"id": 1, "state": "STATE_ACTIVE", "name": "n", "archived": False}
        self.assertEqual(client.Experiment._of(Asked(absent=20), raw).wait(0), client.ExperimentState.COMPLETED)
        with self.assertRaisesRegex(ConnectionError, "cannot be reached"):
            client.Experiment._of(Asked(absent=21), raw).wait(0)


if __name__ == "__main__":
    unittest.main()
