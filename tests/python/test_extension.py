"""determined._loop alone, without PyTorch: a client of plain Python, wrong values at every door, exceptions in every hook.

Under sanitizers it is this file that shows that the extension neither leaks into freed memory nor loses a reference.
"""
import gc
import json
import os
import pickle
import sys
import tempfile
import threading
import traceback
import unittest

from determined import InvalidHP, _loop
from test_ranks import free_port

CALLBACK_HOOKS = ("on_trial_startup", "on_training_start", "on_training_epoch_start", "on_training_epoch_end", "on_training_workload_end",
                  "on_validation_start", "on_validation_epoch_start", "on_validation_epoch_end", "on_validation_end",
                  "on_checkpoint_write_end", "on_checkpoint_upload_end", "on_trial_shutdown")
STATE = ("trial_id", "last_ckpt", "step_id", "last_val", "batches_trained", "epochs_trained")


class Stop(Exception):
    pass


class Loader:
    def __init__(self, client, what, batches=3):
        self.client, self.what, self.batches, self.at = client, what, batches, 0

    def start(self, repeat, size, rank, skip):
        self.client.note(self.what + ".start")
        self.at, self.repeat = skip, repeat

    def next(self):
        self.client.note(self.what + ".next")
        if not self.repeat and self.at >= self.batches:
            raise StopIteration
        self.at += 1
        return [self.at]


class Client:
    """Every hook notes its name, and raises where it is told to."""

    metrics = {"loss": 1.5, "int": 2, "big": 2**70, "none": None, "flag": True, "list": [1, 2.5], "text": '{"a": [1, null, "x"]}', "odd": object()}

    def __init__(self, raising=None, **wrong):
        self.raising, self.wrong, self.noted = raising, wrong, []
        if "evaluate_all" in wrong:
            self.evaluate_batch = None

    def note(self, what, value=None):
        self.noted.append(what)
        if what == self.raising:
            raise Stop(what)
        return self.wrong.get(what, value)

    def plain(self, value):
        return self.note("plain", value if isinstance(value, (str, list)) else "7")

    def create(self, loop):
        self.loop = loop
        self.note("create")

    def callbacks(self):
        return self.note("callbacks", [{h: (lambda *args, h=h: self.note(h)) for h in CALLBACK_HOOKS}, {}])

    def reducers(self):
        one = {"name": "reduced", "for_training": 1, "for_validation": 1, "reset": lambda: self.note("reset"),
               "per_slot_reduce": lambda: self.note("per_slot_reduce", b"abc"), "cross_slot_reduce": lambda blobs: self.note("cross_slot_reduce", {"reduced": len(blobs)})}
        return self.note("reducers", [one])

    def lr_schedulers(self):
        return self.note("lr_schedulers", [{"mode": 2, "frequency": 1, "step": lambda: self.note("lr_step")}])

    def build_training_loader(self):
        return self.note("build_training_loader", Loader(self, "training"))

    def build_validation_loader(self):
        return self.note("build_validation_loader", Loader(self, "validation"))

    def batch_records(self, batch):
        return self.note("batch_records", len(batch))

    def train_batch(self, batch, epoch, index):
        assert (self.loop.batch_idx, self.loop.epoch_len, self.loop.batches_trained, self.loop.is_update_batch) == (index, 3, index, True)
        step = [lambda *a, n=n: self.note(n) for n in ("scale", "clip", "step", "zero")]
        self.loop.step_optimizer(None, *step, False)
        return self.note("train_batch", dict(self.metrics))

    def evaluate_batch(self, batch, index):
        return self.note("evaluate_batch", {"val": 1.0 + index, "array": [1.0, 2.0]})

    def evaluate_full_dataset(self):
        return self.note("evaluate_full_dataset", {"val": 1.0})

    def reduction(self, metric):
        return self.note("reduction", 1)

    def set_training(self, training):
        self.note("set_training")

    def scaler_update(self):
        self.note("scaler_update")

    def before_save(self):
        self.note("before_save")

    def save(self, directory):
        with open(os.path.join(directory, "state_dict.pth"), "wb") as f:
            f.write(b"state")
        self.note("save")

    def load(self, directory):
        assert os.path.exists(os.path.join(directory, "state_dict.pth"))
        self.note("load")

    def save_state(self, directory, state):
        with open(os.path.join(directory, "trial_state.pkl"), "wb") as f:
            pickle.dump(state, f)
        self.note("save_state")

    def load_state(self, directory):
        with open(os.path.join(directory, "trial_state.pkl"), "rb") as f:
            state = pickle.load(f)
        return self.note("load_state", tuple(state[n] for n in STATE))

    def wants_metrics(self):
        return self.note("wants_metrics", True)

    def write_metrics(self, steps, metrics, rows):
        assert rows is None or len(rows) <= steps
        self.note("write_metrics")

    def tensorboard_dir(self):
        assert self.loop.tensorboard_kept is None
        return self.note("tensorboard_dir")

    def reported(self, what, steps, value):
        if what == "checkpoint":
            self.uuid = value
        self.note("reported")


def run(client, top, **config):
    base = {"managed": False, "max_length": ("batches", 4), "checkpoint_policy": "none", "checkpoint_dir": top, "validation_period": ("batches", 2),
            "reporting_period": ("epochs", 1), "rank": 0, "size": 1, "local_rank": 0, "local_size": 1, "hparams": {"lr": [1, None, 0.5]},
            "experiment_config": {"searcher": {"name": "single"}}, "trial_cls_spec": "a:B", "framework": "none"}
    return _loop.run({**base, **config}, client)


class Direct(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.top = holder.name

    def test_whole(self):
        """A run, and one that goes on from its checkpoint; between them every hook of the table was called."""
        first, second, third = Client(), Client(), Client(evaluate_all=None)
        self.assertIsNone(run(first, self.top))
        self.assertIsNone(run(second, self.top, max_length=("epochs", 2), latest_checkpoint=first.uuid))
        self.assertIsNone(run(third, self.top, step_zero_validation=True))
        self.assertIn("load_state", second.noted)
        called = {*first.noted, *second.noted, *third.noted}
        hooks = {n for n, v in vars(Client).items() if callable(v) and n not in ("note", "__init__")} | {*CALLBACK_HOOKS}
        self.assertEqual(hooks - called, set())
        with open(os.path.join(self.top, first.uuid, "load_data.json")) as f:
            self.assertEqual(json.load(f)["hparams"], {"lr": [1, None, 0.5]})

    def test_exceptions(self):
        """In every hook: the exception itself comes out, with the traceback to where it was raised, and nothing of the run is left."""
        model = Client()
        run(model, self.top)
        again = {"load", "load_state"}
        for name in sorted({*model.noted, *again, "evaluate_full_dataset"}):
            client = Client(raising=name, **({"evaluate_all": None} if name == "evaluate_full_dataset" else {}))
            options = {"latest_checkpoint": model.uuid, "max_length": ("batches", 6)} if name in again else {}
            with self.subTest(name):
                frames = []
                try:
                    run(client, self.top, **options)
                except Stop as e:
                    self.assertEqual(str(e), name)
                    frames = [f.name for f in traceback.extract_tb(e.__traceback__)]
                self.assertEqual(frames[-1:], ["note"])
                if name not in ("create", "callbacks", "reducers", "lr_schedulers", "on_trial_startup"):
                    self.assertIn("on_trial_shutdown", client.noted)

    def test_invalid_hp(self):
        class Invalid(Client):
            def train_batch(self, batch, epoch, index):
                raise InvalidHP("too large")

        self.assertIn("too large", run(Invalid(), self.top))

    def test_wrong_values(self):
        """Hooks that give what the loop cannot use are told so; nothing crashes."""
        wrong = [("callbacks", None, "must give a list"), ("reducers", {}, "must give a list"), ("lr_schedulers", 7, "must give a list"),
                 ("train_batch", [1], "metrics must be a dict"), ("train_batch", {1: 2}, "metric names must be str"), ("train_batch", {"a": "{"}, "metric \"a\""),
                 ("train_batch", {"a": ["x"]}, "must be real number"), ("train_batch", {"\ud800": 1}, "surrogates"), ("train_batch", {"big": 10**400}, "too large"),
                 ("plain", 3j, "not a number or an array"), ("evaluate_batch", 5, "metrics must be a dict"), ("per_slot_reduce", "text", "bytes"),
                 ("cross_slot_reduce", {"reduced": object, 3: 3}, "metric names must be str"), ("reduction", 9, "is no reducer"), ("load_state", (1, 2), "6"),
                 ("load_state", "nothing", "six numbers")]
        model = Client()
        run(model, self.top)
        for hook, value, text in wrong:
            options = {"latest_checkpoint": model.uuid} if hook == "load_state" else {}
            with self.subTest(hook=hook, value=value), self.assertRaisesRegex(Exception, text):
                run(Client(**{hook: value}), self.top, **options)
        lists = [{"callbacks": [7]}, {"reducers": [{"name": 5}]}, {"reducers": ["x"]}, {"lr_schedulers": [{}]}, {"lr_schedulers": [{"mode": "x", "step": print}]},
                 {"build_training_loader": object()}, {"build_validation_loader": None}, {"batch_records": "many"}, {"reduction": None}]
        for values in lists:
            with self.subTest(values), self.assertRaises(Exception):
                run(Client(**values), self.top)

    def test_wrong_configuration(self):
        class Deep(list):
            pass

        endless = Deep()
        endless.append(endless)
        wrong = [{"max_length": "ten"}, {"max_length": ("batches",)}, {"max_length": ("batches", 2**70)}, {"validation_period": ("batches", 1.5)},
                 {"rank": "0"}, {"size": 2**70}, {"hparams": {1, 2}}, {"hparams": endless}, {"chief_host": 5}, {"trial_cls_spec": b"x"}, {"framework": "\ud800"},
                 {"checkpoint_policy": 1}, {"aggregation_frequency": "two"}]
        for config in wrong:
            with self.subTest(str(config)), self.assertRaises((TypeError, ValueError, OverflowError, RecursionError, UnicodeError)):
                run(Client(), self.top, **config)
        for args in ((), (1,), ("text", Client()), ({}, object()), ({}, None)):
            with self.subTest(args), self.assertRaises((TypeError, AttributeError, RuntimeError)):
                _loop.run(*args)
        self.assertRaises(TypeError, _loop.Loop)

    def test_references(self):
        """Neither a run nor one that fails keeps what it was given."""
        def count(raising):
            client = Client(raising=raising)
            try:
                run(client, self.top)
            except Stop as e:
                e.__traceback__ = None
            gc.collect()
            return sys.getrefcount(client)

        alone = sys.getrefcount(Client())
        for raising in (None, "train_batch", "on_checkpoint_write_end", "create"):
            self.assertLessEqual(count(raising), alone + 1, raising)

    def test_comm(self):
        """Collectives of two ranks (threads here), closed and refusing afterwards."""
        port = free_port()
        out = {}

        def rank(n):
            c = _loop.Comm(n, 2, n, 2, "127.0.0.1", port, None)
            out[n] = (c.allgather(b"x" * n * 100000), c.broadcast(b"of %d" % n))
            c.close()
            try:
                c.allgather(b"")
            except RuntimeError as e:
                out[n] += (str(e),)

        threads = [threading.Thread(target=rank, args=(n,)) for n in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(120)
        expected = ([b"", b"x" * 100000], b"of 0", "the distributed context is closed")
        self.assertEqual(out, {0: expected, 1: expected})
        for args in ((), ("0", 2, 0, 2, None, 1), (5, 2, 0, 2, "127.0.0.1", 1), (0, 0, 0, 0, None, 1)):
            with self.assertRaises((TypeError, RuntimeError)):
                _loop.Comm(*args)


if __name__ == "__main__":
    unittest.main()
