"""determined.core without a cluster: what becomes of numbers that JSON lacks, and of stores that are full."""
import http.server
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np
import torch
from determined import InvalidHP, core
from determined.core._alive import Alive
from determined.core._session import Session
from determined.core._storage import DirectoryStorage
from determined.core._tensorboard import TensorboardFiles
from determined.experimental import Determined
from determined.experimental._master import masters
from determined.experimental.client import APIException
from test_ranks import free_port


class Full(DirectoryStorage):
    """Takes one file, and has no room for the next."""

    def add(self, src, uuid, paths):
        super().add(src, uuid, ["a"])
        raise OSError(28, "No space left on device")


def directory(top, *names):
    where = os.path.join(top, "directory")
    os.makedirs(where)
    for name in names:
        with open(os.path.join(where, name), "w") as f:
            f.write(name)
    return where


def on_two_ranks(what):
    """what(distributed) on two ranks, each a thread; what they gave or raised."""
    port = free_port()
    results = [None, None]

    def run(rank):
        d = core.DistributedContext(rank=rank, size=2, local_rank=rank, local_size=2, cross_rank=0, cross_size=1, pub_port=port)
        try:
            results[rank] = what(d)
        except Exception as e:
            results[rank] = e
        finally:
            d.close()

    ranks = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for t in ranks:
        t.start()
    for t in ranks:
        t.join()
    return results


class Heard(Session):
    """A session that keeps what the master would read."""

    def __init__(self):
        super().__init__("http://master", "token")
        self.bodies = []

    def _open(self, request, timeout):
        self.bodies.append(json.loads(request.data, parse_constant=self.refuse))
        return b""

    @staticmethod
    def refuse(name):
        raise ValueError(f"{name} is no JSON")


class Away(unittest.TestCase):
    """A store whose marker is not at its place: nothing is made there, and no checkpoint is called lost."""

    ID = "0b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"

    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.addCleanup(self.top.cleanup)
        self.root, self.run = (os.path.join(self.top.name, name) for name in ("store", "run"))
        os.mkdir(self.root)
        os.mkdir(self.run)
        patch = mock.patch.dict(os.environ, DET_RUN_DIR=self.run)
        patch.start()
        self.addCleanup(patch.stop)
        self.store = DirectoryStorage(self.root, self.ID)

    def mount(self, store_id):
        with open(os.path.join(self.root, ".det-store"), "w") as f:
            json.dump({"version": 1, "id": store_id}, f)

    def uses(self):
        return (lambda: self.store.begin("u"), lambda: self.store.verify("u"), lambda: self.store.metadata_of("u"),
                lambda: self.store.delete("u"), lambda: self.store.download("u", os.path.join(self.top.name, "down")))

    def test_it_is_not_used(self):
        for other in (None, "1b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"):
            if other:
                self.mount(other)
            before = os.listdir(self.root)
            for use in self.uses():
                with self.assertRaisesRegex(RuntimeError, "is away"):
                    use()
            self.assertEqual(os.listdir(self.root), before)
            self.assertFalse(self.store.is_there())
        with open(os.path.join(self.run, "store_away")) as f:  # for det-task: no fault of the trial's
            self.assertIn(self.root, f.read())

    def test_it_is_used_once_it_is_back(self):
        self.mount(self.ID)
        self.store.begin("u")
        self.store.publish("u", {}, {})
        self.store.verify("u")
        with self.assertRaises(FileNotFoundError):
            self.store.verify("other")
        self.assertFalse(os.path.exists(os.path.join(self.run, "store_away")))

    def store_and_fail(self, blocks, handled=False):
        """With so many free blocks in the store. What torch.save raises then says nothing of the disk."""
        checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), self.store)
        room = mock.Mock(f_bavail=blocks, f_bfree=blocks, f_frsize=4096, f_files=100, f_ffree=50)
        with mock.patch("os.statvfs", return_value=room), self.assertRaises(RuntimeError), core.Context(checkpoints):
            try:
                with checkpoints.store_path({"steps_completed": 1}):
                    raise RuntimeError("unexpected pos 64 vs 0")
            except RuntimeError:
                if not handled:
                    raise
            raise RuntimeError("something else")
        return os.path.join(self.run, "store_away")

    def test_no_room_is_no_failure_of_the_trial(self):
        self.mount(self.ID)
        self.assertFalse(os.path.exists(self.store_and_fail(1000)))
        self.assertFalse(os.path.exists(self.store_and_fail(0, handled=True)))
        with open(self.store_and_fail(0)) as f:
            self.assertEqual(f.read(), f"{self.root} has no room for a checkpoint: unexpected pos 64 vs 0")
        self.assertEqual(os.listdir(self.root), [".det-store"])

    def test_a_full_store_of_nobody(self):
        self.store = DirectoryStorage(self.root)
        self.assertFalse(os.path.exists(self.store_and_fail(0)))

    def test_tensorboard_waits(self):
        here = pathlib.Path(self.top.name, "events")
        here.mkdir()
        (here / "a").write_text("1")
        files = TensorboardFiles(here, self.store, "cluster/tensorboard", 0)
        files.upload_all()
        self.assertEqual(os.listdir(self.root), [])
        self.mount(self.ID)
        files.upload_all()
        self.assertTrue(os.path.exists(os.path.join(self.root, "cluster/tensorboard/a")))


class Signs(unittest.TestCase):
    """Of life: begun by the first report, one with each call from then on, none any more from the end on."""

    def test_signs(self):
        with tempfile.NamedTemporaryFile() as f, mock.patch.dict(os.environ, DET_PROGRESS_FILE=f.name):
            f.write(bytes(64))
            f.flush()

            def seen():
                return struct.unpack("<QQqI", os.pread(f.fileno(), 28, 0))
            alive, idle = Alive(True), Alive(False)
            session = Heard()
            session.waiting = alive.waiting
            session.post("/x", {})
            idle.trained(7)
            self.assertEqual(seen(), (0, 0, 0, 0))
            core.TrainContext(session, 1, 1, 1, core.TensorboardMode.MANUAL, None, None, False, alive).report_training_metrics(5, {})
            magic, batches, first_ms, phase = seen()
            self.assertEqual((magic.to_bytes(8, "little"), batches, phase), (b"DETPROG1", 5, 1))
            with alive.waiting():
                before = seen()
                while seen() == before:  # a wait is shown again and again
                    time.sleep(0.01)
            self.assertGreater(seen()[2], first_ms)
            self.shown_by_a_loop_that_asks(alive, seen)
            self.shown_while_files_are_stored(alive, seen)
            alive.end()
            alive.trained(6)
            self.assertEqual(seen()[:2], (0, 5))


    def shown_by_a_loop_that_asks(self, alive, seen):
        asks = core.PreemptContext(Heard(), "a", core.DummyDistributedContext(), core.PreemptMode.WorkersAskMaster)
        asks.waiting = alive.waiting
        asks._started = True
        before, most = seen(), time.monotonic() + 60
        while seen() == before and time.monotonic() < most:  # its clock has milliseconds
            asks.should_preempt()
        self.assertNotEqual(seen(), before)
        nobody = core.DummyPreemptContext(core.DummyDistributedContext()).start()  # where nothing is watched
        self.assertFalse(nobody.should_preempt())

    def shown_while_files_are_stored(self, alive, seen):
        """However long a large checkpoint takes to copy and to read."""
        session = Heard()
        session.waiting = alive.waiting
        store = mock.Mock()
        waited = []

        def slowly(*_):
            before, most = seen(), time.monotonic() + 60
            while seen() == before and time.monotonic() < most:
                time.sleep(0.01)
            waited.append(seen() != before)

        store.add.side_effect = store.verify.side_effect = slowly
        with tempfile.TemporaryDirectory() as root, mock.patch("determined.core._checkpoint.hash_paths", lambda *_: {}):
            os.mkdir(root + "/from")
            store.path_of.return_value = store.begun.return_value = root
            checkpoints = core.CheckpointContext(core.DummyDistributedContext(), store, session, "t", "a", "c")
            checkpoints.upload(root + "/from", {"steps_completed": 1})
            with checkpoints.restore_path("u"):
                pass
        self.assertEqual(waited, [True, True])


class Numbers(unittest.TestCase):
    def test_searcher_metric(self):
        """A loss that is no number, or one of NumPy's or torch's: the master reads it."""
        session = Heard()
        for metric, said in ((float("nan"), "NaN"), (np.float32(0.5), 0.5), (torch.tensor(2.0), 2.0)):
            core.SearcherOperation(session, 1, 10, True).report_completed(metric)
            self.assertEqual(session.bodies.pop(), {"op": {"length": 10}, "searcherMetric": said})

    def reports(self, *values, stop=False):
        """Training with these losses. What was logged."""
        session = Heard()
        train = core.TrainContext(session, 1, 1, 1, core.TensorboardMode.MANUAL, None, None, stop)
        with self.assertLogs("determined.core", "WARNING") as log:
            try:
                for steps, value in enumerate(values):
                    train.report_training_metrics(steps, {"lr": 0.1, "name": "NaN", "loss": value})
                train.report_validation_metrics(9, {"error": float("nan")})
            except InvalidHP as e:
                return [str(e), len(session.bodies), session.bodies[-1]]
        return [m.getMessage() for m in log.records]

    def test_no_numbers_any_more(self):
        """The first is warned of, whatever library made it, and no other; or the trial ends with it, reported all the same."""
        said = "{}, for the first time in this run; stop_on_nan: true in the configuration would end the trial here"
        nan, inf = float("nan"), float("inf")
        self.assertEqual(self.reports(1.0, nan, inf), [said.format('training metric "loss" is NaN at batch 1')])
        self.assertEqual(self.reports(torch.tensor(-inf)), [said.format('training metric "loss" is infinite at batch 0')])
        self.assertEqual(self.reports(np.float32(2)), [said.format('validation metric "error" is NaN at batch 9')])
        said = 'training metric "loss" is infinite at batch 1'
        self.assertEqual(self.reports(1.0, inf, nan, stop=True), [said, 3, {"reason": "EXITED_REASON_INVALID_HP", "text": said}])

    def test_metadata(self):
        with tempfile.TemporaryDirectory() as top:
            checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), DirectoryStorage(top))
            with checkpoints.store_path({"steps_completed": np.int64(5), "loss": torch.tensor(0.5)}) as (_, uuid):
                pass
            self.assertEqual(checkpoints.get_metadata(uuid), {"steps_completed": 5, "loss": 0.5})

    def test_writer(self):
        """metadata.json says which task of which cluster wrote it; whoever reads a checkpoint gets back what was given."""
        with tempfile.TemporaryDirectory() as top:
            store = DirectoryStorage(top)
            checkpoints = core.CheckpointContext(core.DummyDistributedContext(), store, None, "3.task", "3.task.1", "a-cluster")
            with mock.patch.object(checkpoints, "_report"), checkpoints.store_path({"steps_completed": 5}) as (_, uuid):
                pass
            with open(os.path.join(top, uuid, "metadata.json")) as f:
                whole = json.load(f)
            self.assertEqual((whole["det_task"], whole["det_cluster"]), ("3.task", "a-cluster"))
            self.assertEqual(store.metadata_of(uuid), {"steps_completed": 5})

    def test_hyperparameters(self):
        """metadata.json has the trial's, unless the trial gave a key of that name; and whoever reads gets back what was given."""
        for given, in_file in (({"steps_completed": 5}, {"lr": 0.5}), ({"steps_completed": 5, "hparams": "own"}, "own")):
            with tempfile.TemporaryDirectory() as top, self.subTest(given=given):
                store = DirectoryStorage(top)
                checkpoints = core.CheckpointContext(core.DummyDistributedContext(), store, None, "3.task", "3.task.1", "c", {"lr": 0.5})
                with mock.patch.object(checkpoints, "_report"), checkpoints.store_path(dict(given)) as (_, uuid):
                    pass
                with open(os.path.join(top, uuid, "metadata.json")) as f:
                    self.assertEqual(json.load(f)["hparams"], in_file)
                self.assertEqual(store.metadata_of(uuid), given)


class Cut(http.server.BaseHTTPRequestHandler):
    """A master that is ended in the middle of its first answer."""

    def do_GET(self):
        self.server.asked += 1
        self.send_response(200)
        answer = b'{"preempt": true}'
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: 5 if self.server.asked == 1 else None])

    def log_message(self, *args):
        pass


class Sessions(unittest.TestCase):
    def test_cut_answer(self):
        """Asked again, like a master that cannot be reached."""
        with http.server.HTTPServer(("127.0.0.1", 0), Cut) as master:
            master.asked = 0
            server = threading.Thread(target=master.serve_forever, kwargs={"poll_interval": 0.01})
            server.start()
            try:
                self.assertEqual(Session(f"http://127.0.0.1:{master.server_port}", "token").get("/"), {"preempt": True})
            finally:
                master.shutdown()
                server.join()


    def test_another_leads(self):
        """The first of two masters is gone."""
        with http.server.HTTPServer(("127.0.0.1", 0), Cut) as master, socket.socket() as gone:
            gone.bind(("127.0.0.1", 0))
            master.asked = 1
            server = threading.Thread(target=master.serve_forever, kwargs={"poll_interval": 0.01})
            server.start()
            first, second = f"http://127.0.0.1:{gone.getsockname()[1]}", f"http://127.0.0.1:{master.server_port}"
            said = {"DET_MASTERS": f"{first},{second}", "DET_RETRY_CONFIG": '{"total": 1, "backoff_factor": 0}'}
            try:
                with mock.patch.dict(os.environ, said):
                    self.assertEqual(Session(first, "token").get("/"), {"preempt": True})
                with mock.patch.dict(os.environ, DET_USER_TOKEN="token", DET_MASTER=f"{first},127.0.0.1:{master.server_port}"):
                    self.assertEqual(Determined()._master.get("/"), {"preempt": True})
                    self.assertEqual(Determined(f"{first},{second}")._master.get("/"), {"preempt": True})
            finally:
                master.shutdown()
                server.join()


class Refusals(http.server.BaseHTTPRequestHandler):
    """A master that stands by, and says so; or one that leads and cannot tell whether the write was done."""

    def do_POST(self):
        self.server.asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.server.status)
        for name, value in self.server.said:
            self.send_header(name, value)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


class Standby(unittest.TestCase):
    def master(self, status, *said):
        server = http.server.HTTPServer(("127.0.0.1", 0), Refusals)
        server.status, server.said, server.asked = status, said, 0
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for undo in (server.server_close, thread.join, server.shutdown):
            self.addCleanup(undo)
        return server

    def test_writes(self):
        """What may have been done is not asked of another master."""
        standby, unsure, leader = self.master(503, ("Retry-After", "1")), self.master(503), self.master(200)
        with mock.patch.dict(os.environ, DET_USER_TOKEN="token"):
            ask = lambda *masters: Determined(",".join(f"http://127.0.0.1:{m.server_port}" for m in masters))._master.post("/", {})
            self.assertEqual((ask(standby, leader), leader.asked), ({}, 1))
            self.assertRaises(APIException, ask, unsure, leader)
        self.assertEqual((standby.asked, unsure.asked, leader.asked), (1, 1, 1))


class Certificates(unittest.TestCase):
    """Over HTTPS: whose certificate is believed, and under which name."""

    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.cert, key = os.path.join(top.name, "crt"), os.path.join(top.name, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=det",
                        "-addext", "subjectAltName=DNS:the-master", "-keyout", key, "-out", self.cert], check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, key)
        self.master = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cut)
        self.master.asked = 1
        self.master.socket = context.wrap_socket(self.master.socket, server_side=True)
        server = threading.Thread(target=self.master.serve_forever, kwargs={"poll_interval": 0.01})
        server.start()
        for undo in (self.master.server_close, server.join, self.master.shutdown):
            self.addCleanup(undo)

    def check(self, ask):
        url = f"https://127.0.0.1:{self.master.server_port}"
        for cert, name in ((self.cert, "the-master"), ("noverify", None), ("noverify", "another")):
            self.assertEqual(ask(url, cert, name), {"preempt": True})
        for cert, name in ((self.cert, None), (self.cert, "another"), (None, "the-master")):
            with self.assertRaisesRegex(ConnectionError, "certificate verify failed"):
                ask(url, cert, name)
        with self.assertRaisesRegex(ValueError, "/nowhere.pem .* cannot be read: No such file.* name a PEM file"):
            ask(url, "/nowhere.pem", None)

    def test_task(self):
        with mock.patch.dict(os.environ, DET_RETRY_CONFIG='{"total": 0}'):
            self.check(lambda url, cert, name: Session(url, "token", cert, name).get("/"))

    def test_arguments(self):
        def ask(url, cert, name):
            client = Determined(url, cert_path=None if cert == "noverify" else cert, cert_name=name, noverify=cert == "noverify")
            return client._master.get("/")

        with mock.patch.dict(os.environ, DET_USER_TOKEN="token"):
            self.check(ask)

    def test_kept_by_det(self):
        """What a person told `det` to trust counts, and nothing else does; a broken file is none that trusts the system's."""
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        certs = pathlib.Path(home.name, "determined", "certs.json")
        certs.parent.mkdir()
        url = f"https://127.0.0.1:{self.master.server_port}"

        def ask(kept, **more):
            certs.write_text(kept)
            with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": home.name, "DET_USER_TOKEN": "token"}):
                return Determined(url, cert_name="the-master", **more)._master.get("/")

        self.assertEqual(ask(json.dumps({url: pathlib.Path(self.cert).read_text()})), {"preempt": True})
        other = self.cert + ".other"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=other",
                        "-keyout", other + ".key", "-out", other], check=True, stderr=subprocess.DEVNULL)
        another = json.dumps({url: pathlib.Path(other).read_text()})
        with self.assertRaisesRegex(ConnectionError, "NOT BY THE AUTHORITY .* DET_MASTER_CERT_FILE"):
            ask(another)
        self.assertEqual(ask(another, cert_path=self.cert), {"preempt": True})
        with self.assertRaisesRegex(ConnectionError, "nothing vouches .* DET_MASTER_CERT_FILE"):
            ask(json.dumps({url + "1": "x"}))
        for broken in ("{", "[]"):
            with self.assertRaisesRegex(ValueError, "certs.json .* cannot be read"):
                ask(broken)
        with self.assertRaisesRegex(ValueError, "no certificate"):
            ask(json.dumps({url: "x"}))

    def test_addresses(self):
        for said, full in (("host", "http://host:8080"), ("host:1", "http://host:1"), ("http://host", "http://host:80"), ("https://host/", "https://host:443"),
                           ("https://[::1]:2,[::1]", "https://[::1]:2 http://[::1]:8080")):
            self.assertEqual(" ".join(masters(said)), full)

    def test_environment(self):
        def ask(url, cert, name):
            said = {"DET_MASTER": url, "DET_MASTER_CERT_FILE": cert, "DET_MASTER_CERT_NAME": name, "DET_USER_TOKEN": "token"}
            with mock.patch.dict(os.environ, {k: v or "" for k, v in said.items()}):
                return Determined()._master.get("/")

        self.check(ask)


class Operations(unittest.TestCase):
    def test_length(self):
        context = core.DummySearcherContext(core.DummyDistributedContext(), length=5)
        for _ in range(2):
            for op in context.operations():
                self.assertEqual(op.length, 5)
                op.report_completed(1.0)


class Ends(unittest.TestCase):
    def test_unheard(self):
        """A context is closed also where the master did not take the word of its end."""
        context = core.Context(None)
        context.train.report_early_exit = mock.Mock(side_effect=ConnectionError("no master"))
        context.distributed.close = mock.Mock()
        with self.assertRaisesRegex(ConnectionError, "no master"), context:
            raise InvalidHP("no")
        context.distributed.close.assert_called_once_with()


class Failures(unittest.TestCase):
    """A checkpoint that cannot be stored leaves nothing in the store."""

    def test_no_json(self):
        with tempfile.TemporaryDirectory() as top:
            checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), DirectoryStorage(top))
            with self.assertRaises(TypeError), checkpoints.store_path({"steps_completed": 1, "model": object()}):
                pass
            self.assertEqual(os.listdir(top), [])

    def test_full(self):
        with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as work:
            checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), Full(top))
            with self.assertRaisesRegex(OSError, "No space left"):
                checkpoints.upload(directory(work, "a", "b"), {"steps_completed": 1})
            self.assertEqual(os.listdir(top), [])

    def test_full_for_one_rank(self):
        """All of them hear of it."""
        with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as work:
            where = directory(work, "a", "b")

            def upload(ranks):
                store = Full(top) if ranks.rank == 1 else DirectoryStorage(top)
                mine = ("b", "a")[ranks.rank]
                return core.DummyCheckpointContext(ranks, store).upload(where, {"steps_completed": 1}, shard=True, selector=mine.__eq__)

            for error in on_two_ranks(upload):
                self.assertRegex(str(error), "No space left on device")
            self.assertEqual(os.listdir(top), [])

    def test_one_rank_fails(self):
        """All of them hear why, whatever it was, and go on together."""

        def fails(**what):
            def of(ranks):
                store = core.DummyCheckpointContext(ranks, DirectoryStorage(top))
                given = {"ckpt_dir": where, "metadata": {"steps_completed": 1}, "selector": None}
                try:
                    store.upload(**{**given, **(what if ranks.rank == 1 else {})}, shard=True)
                except Exception as e:
                    return str(e), ranks.allgather(ranks.rank)

            for error, ranks in on_two_ranks(of):
                yield error
                self.assertEqual(ranks, [0, 1])

        def bad(path):
            raise KeyError("bad selector")

        with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as work:
            where = directory(work, "a", "b")
            for what, said in (
                ({"ckpt_dir": os.path.join(work, "none")}, "which is no directory"),
                ({"ckpt_dir": None, "selector": bad}, "a selector needs a directory"),
                ({"selector": bad}, "bad selector"),
                ({"metadata": {"steps_completed": 1, "model": object()}}, "object is not JSON"),
            ):
                first, second = fails(**what)
                self.assertRegex(second, said)
                self.assertRegex(first, f"cannot be stored: rank 1: .*{said}")
            self.assertEqual(os.listdir(top), [])

    def test_one_rank_fails_in_its_files(self):
        """The others, which may be in a collective of their own, hear why."""

        def store(ranks):
            checkpoints = core.DummyCheckpointContext(ranks, DirectoryStorage(top))
            with checkpoints.store_path({"steps_completed": 1}, shard=True):
                if ranks.rank == 1:
                    raise KeyError("no such layer")
                ranks.broadcast(None)

        with tempfile.TemporaryDirectory() as top:
            first, second = on_two_ranks(store)
            self.assertRegex(repr(second), "KeyError")
            self.assertRegex(str(first), "^rank 1: store_path.. of checkpoint .*: KeyError: 'no such layer'$")
            self.assertEqual(os.listdir(top), [])

    def test_one_rank_is_elsewhere(self):
        """Another directory is at the store's place on its host: its files are not left out of a checkpoint that counts as whole."""

        def write(place):
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, f"shard_{os.path.basename(os.path.dirname(place))}"), "w") as f:
                f.write("x")

        def store(ranks):
            checkpoints = core.DummyCheckpointContext(ranks, DirectoryStorage(tops[ranks.rank]))
            with checkpoints.store_path({"steps_completed": 1}, shard=True) as (place, _):
                if ranks.rank == 0:
                    write(place)

        def upload(ranks):
            checkpoints = core.DummyCheckpointContext(ranks, DirectoryStorage(tops[ranks.rank]))
            checkpoints.upload(work[ranks.rank], {"steps_completed": 1}, shard=True)

        for how in (store, upload):
            with self.subTest(how=how.__name__), tempfile.TemporaryDirectory() as top:
                tops, work = [os.path.join(top, str(n)) for n in (0, 1)], [os.path.join(top, f"from{n}") for n in (0, 1)]
                for place in [*tops, *work]:
                    os.mkdir(place)
                for n in (0, 1):
                    write(os.path.join(work[n], f"{n}"))
                for error in on_two_ranks(how):
                    self.assertRegex(str(error), "which rank 0 has made, is not on this host")
                self.assertEqual([os.listdir(place) for place in tops], [[], []])

    def test_chief_cannot_report(self):
        """The others do not wait for it, nor believe in the checkpoint."""

        def store(ranks):
            checkpoints = core.DummyCheckpointContext(ranks, DirectoryStorage(top))
            checkpoints._report = mock.Mock(side_effect=ConnectionError("no master"))
            with checkpoints.store_path({"steps_completed": 1}, shard=True):
                pass

        with tempfile.TemporaryDirectory() as top:
            for error in on_two_ranks(store):
                self.assertRegex(str(error), "no master")


class Published(unittest.TestCase):
    """A checkpoint is there whole, with the hashes that C's have, or not at all."""

    FILES = ["a", "inner/", "inner/b", "metadata.json"]

    def check(self, top, how, place):
        seen = []

        def report(uuid, resources, hashes, metadata):
            self.assertEqual(metadata, {"steps_completed": 1})
            self.assertEqual(os.listdir(top), [uuid])
            seen.append((uuid, resources))

        checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), DirectoryStorage(top))
        with mock.patch.object(checkpoints, "_report", report):
            how(checkpoints, place)
        [(uuid, resources)] = seen
        self.assertEqual(sorted(resources), self.FILES)
        with open(os.path.join(top, uuid, "metadata.json")) as f:
            metadata = json.load(f)
        self.assertEqual((metadata["uuid"], metadata["steps_completed"]), (uuid, 1))
        self.assertEqual(sorted(metadata["xxh128"]), ["a", "inner/b"])
        self.refuses_damage(top, uuid, checkpoints, os.path.join(place, "copy"))

    def refuses_damage(self, top, uuid, checkpoints, copy):
        def restore():
            with checkpoints.restore_path(uuid) as path:
                return sorted(os.listdir(path))

        self.assertEqual(restore(), ["a", "inner", "metadata.json"])
        with open(os.path.join(top, uuid, "inner/b"), "r+") as f:
            f.write("X")
        checkpoints.download(uuid, copy, selector=lambda path: path == "a")
        self.assertEqual(os.listdir(copy), ["a"])
        for read in (restore, lambda: checkpoints.download(uuid, copy)):
            with self.assertRaisesRegex(RuntimeError, f"checkpoint {top}/{uuid}: inner/b: its xxh128 is .*, recorded was"):
                read()
        os.unlink(os.path.join(top, uuid, "a"))
        with self.assertRaisesRegex(RuntimeError, "a is missing"):
            restore()
        os.rename(os.path.join(top, uuid), os.path.join(top, "another"))
        with self.assertRaisesRegex(RuntimeError, f"another holds the files of checkpoint {uuid}"), checkpoints.restore_path("another"):
            pass
        with open(os.path.join(top, "another", "metadata.json"), "w") as f:
            f.write('{"steps_')
        with self.assertRaisesRegex(RuntimeError, "another is damaged: metadata.json"):
            checkpoints.download("another", copy)

    def test_damage_seen_by_one(self):
        """The rank that looks for its machine finds it, and every one says so."""

        def restore(ranks):
            with core.DummyCheckpointContext(ranks, DirectoryStorage(top)).restore_path("c") as path:
                return path

        with tempfile.TemporaryDirectory() as top:
            os.mkdir(os.path.join(top, "c"))
            with open(os.path.join(top, "c", "metadata.json"), "w") as f:
                json.dump({"xxh128": {"weights": "00"}}, f)
            for error in on_two_ranks(restore):
                self.assertRegex(str(error), "weights is missing")

    def test_store_away(self):
        """Nothing is made at the place of a store that is not mounted."""
        with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as work:
            store = DirectoryStorage(top, "b3c2a1f0-0000-4000-8000-000000000001")
            checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), store)
            with self.assertRaisesRegex(RuntimeError, f"checkpoint store {top} is away"):
                checkpoints.upload(directory(work, "a"), {"steps_completed": 1})
            self.assertEqual(os.listdir(top), [])

    def test_delete(self):
        """Only what is a checkpoint's name; out of sight before its first file goes."""
        with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as work:
            top = os.path.join(base, "store")
            checkpoints = core.DummyCheckpointContext(core.DummyDistributedContext(), DirectoryStorage(top))
            uuid = checkpoints.upload(directory(work, "a"), {"steps_completed": 1})
            for name in ("", ".", "..", f"../store/{uuid}", f"{uuid}/", "/etc", "x" * 65):
                for work_on in (checkpoints.delete, checkpoints.get_metadata, lambda n: checkpoints.download(n, os.path.join(work, "b"))):
                    self.assertRaisesRegex(ValueError, "the name of its folder", work_on, name)
            self.assertRaises(FileNotFoundError, checkpoints.delete, "none")
            self.assertEqual(os.listdir(top), [uuid])
            checkpoints.delete(uuid)
            self.assertEqual(os.listdir(top), [])

    def test_all(self):
        def write(place):
            os.makedirs(os.path.join(place, "inner"))
            for name in ("a", "inner/b"):
                with open(os.path.join(place, name), "w") as f:
                    f.write(name)

        def store_path(shard):
            def store(checkpoints, _):
                with checkpoints.store_path({"steps_completed": 1}, shard=shard) as (place, _):
                    write(place)

            return store

        def upload(shard):
            def store(checkpoints, place):
                write(place)
                checkpoints.upload(place, {"steps_completed": 1}, shard=shard)

            return store

        for how in (store_path, upload):
            for shard in (False, True):
                with self.subTest(how=how.__name__, shard=shard), tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as work:
                    self.check(os.path.realpath(top), how(shard), work)


if __name__ == "__main__":
    unittest.main()
