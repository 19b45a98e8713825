"""The loop as a Python trial sees it: order of calls, metrics, stopping, wrong use."""
import collections
import copy
import os
import traceback
import unittest

import numpy as np
import determined as det
import torch
from determined import errors, pytorch
from recorder import RecordingTrial
from support import LineTrial, Numbers, fit, store
from torch.optim.lr_scheduler import StepLR

Batch, Epoch = pytorch.Batch, pytorch.Epoch

KEYS = "['models_state_dict', 'optimizers_state_dict', 'lr_schedulers_state_dict', 'callbacks', 'rng_state']"
VALIDATION = ["validation_start", "validation_epoch_start", "v", "v", "v", "validation_epoch_end 3", "validation_end ['error']"]
CHECKPOINT = [f"save_start {KEYS}", "write_end", "upload_end"]


class Order(unittest.TestCase):
    def test_golden(self):
        """The order that the contract observed: 2 epochs of 3, validation every 4, reports every 2, checkpoints every epoch."""
        with store():
            t = fit(RecordingTrial, Epoch(2), checkpoint_period=Epoch(1), validation_period=Batch(4), reporting_period=Batch(2),
                    checkpoint_policy="none", step_zero_validation=True)
        expected = (
            ["startup 0 None", "training_start", *VALIDATION, "epoch_start", "b0 e0", "b1 e0", "workload_end 2", "b2 e0", "epoch_end 0",
             "workload_end 1", *CHECKPOINT, "epoch_start", "b3 e1", "workload_end 1", *VALIDATION, "b4 e1", "b5 e1", "epoch_end 1",
             "workload_end 2", *CHECKPOINT, *VALIDATION, "shutdown"])
        self.assertEqual(t.trace, expected)

    def test_schedulers(self):
        """The table of section 8."""
        mode = pytorch.LRScheduler.StepMode
        table = [(1, mode.STEP_EVERY_EPOCH, 2, [9]), (2, mode.STEP_EVERY_BATCH, 1, [1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11]),
                 (2, mode.STEP_EVERY_EPOCH, 1, [3, 9]), (3, mode.STEP_EVERY_BATCH, 2, [2, 5, 5, 8, 11, 11]),
                 (3, mode.STEP_EVERY_OPTIMIZER_STEP, 2, [5, 11]), (1, mode.MANUAL_STEP, 1, [])]
        for aggregation, step_mode, frequency, expected in table:
            class Stepping(LineTrial):
                steps = []

                def __init__(self, context):
                    super().__init__(context)
                    self.noted = context.wrap_lr_scheduler(Noted(self.optim, 1000), step_mode, frequency)

                def train_batch(self, batch, epoch_idx, batch_idx):
                    self.noted.batch = batch_idx
                    return super().train_batch(batch, epoch_idx, batch_idx)

                def build_training_data_loader(self):
                    return pytorch.DataLoader(Numbers(5))

            class Noted(StepLR):
                batch = None

                def step(self, *args):
                    if self.batch is not None:  # torch itself steps once, when the scheduler is made
                        Stepping.steps.append(self.batch)
                    return super().step(*args)

                def state_dict(self):
                    return {}

            with self.subTest(aggregation=aggregation, mode=step_mode), store():
                fit(Stepping, Batch(12), aggregation_frequency=aggregation)
                self.assertEqual(Stepping.steps, expected)

    def test_containers_are_periods(self):
        with store():
            t = fit(RecordingTrial, Batch(6), validation_period=Batch([1, 4]), checkpoint_policy="none")
        self.assertEqual(sum(x == "validation_start" for x in t.trace), 3)
        self.assertEqual(t.trace[t.trace.index("validation_start") - 2], "b0 e0")


class Metrics(unittest.TestCase):
    def test_kinds(self):
        """Tensors, arrays, numbers of numpy, None; arrays average to one number."""
        got = {}

        class Kinds(LineTrial):
            def train_batch(self, batch, epoch_idx, batch_idx):
                super().train_batch(batch, epoch_idx, batch_idx)
                return {"tensor": torch.tensor(float(batch_idx)), "bf16": torch.tensor(2.0, dtype=torch.bfloat16), "array": np.array([1.0, 3.0]),
                        "deep": torch.ones(2, 2), "numpy": np.float32(5), "none": None if batch_idx else 7, "int": 3, "flag": True}

            def build_callbacks(self):
                class Take(pytorch.PyTorchCallback):
                    def on_training_workload_end(self, avg_metrics, batch_metrics):
                        got.update(avg_metrics)

                return {"take": Take()}

        with store():
            fit(Kinds, Batch(2))
        self.assertEqual(got, {"tensor": 0.5, "bf16": 2.0, "array": 2.0, "deep": 1.0, "numpy": 5.0, "none": 7.0, "int": 3.0, "flag": 1.0})

    def test_nan(self):
        """What JSON cannot say reaches the loop all the same, deep inside too."""
        class Nan(RecordingTrial):
            def evaluate_batch(self, batch):
                return {"matrix": [[float("nan"), 1.0]], "inf": float("inf"), "array": np.array([[1.0, np.nan]])}

            def train_batch(self, batch, epoch_idx, batch_idx):
                return {"deep": {"a": [float("-inf"), 1.0]}, "loss": float("nan")}

        with store():
            self.assertIn("validation_end ['array', 'inf', 'matrix']", fit(Nan, Batch(1)).trace)

    def test_bare_loss(self):
        class Bare(RecordingTrial):
            def train_batch(self, batch, epoch_idx, batch_idx):
                return super().train_batch(batch, epoch_idx, batch_idx)["loss"]

        with store():
            self.assertIn("workload_end 1", fit(Bare, Batch(1)).trace)

    def test_reducers(self):
        results = []

        class Reduced(LineTrial):
            def __init__(self, context):
                super().__init__(context)
                self.count = context.wrap_reducer(sum, name="count")
                context.experimental.wrap_reducer(lambda values: -1, name="only_validation", for_training=False)

            def train_batch(self, batch, epoch_idx, batch_idx):
                self.count.update(len(batch[0]))
                return super().train_batch(batch, epoch_idx, batch_idx)

            def evaluation_reducer(self):
                return {"error": pytorch.Reducer.MAX}

            def build_callbacks(self):
                class Take(pytorch.PyTorchCallback):
                    def on_training_workload_end(self, avg_metrics, batch_metrics):
                        results.append(avg_metrics["count"])

                    def on_validation_end(self, metrics):
                        results.append((metrics["count"], metrics["only_validation"]))

                return {"take": Take()}

        with store():
            fit(Reduced, Batch(4), reporting_period=Batch(2))
        self.assertEqual(results, [8, 8, (0, -1)])

    def test_callbacks_see_what_reducers_gave(self):
        """Arrays stay arrays of their type and shape, lists lists; only reports have lists of numbers."""
        seen = []

        class Arrays(LineTrial):
            def __init__(self, context):
                super().__init__(context)
                self.counts = context.wrap_reducer(lambda values: np.array([[1, 2], [3, 4]], dtype=np.int32), name="confusion")
                context.wrap_reducer(lambda values: [1, 2], name="listed")
                context.wrap_reducer(lambda values: torch.tensor([5]), name="tensor")

            def train_batch(self, batch, epoch_idx, batch_idx):
                return {**super().train_batch(batch, epoch_idx, batch_idx), "per_class": np.array([0.5, 0.25])}

            def evaluate_batch(self, batch):
                return {"per_class": np.array([1.0, 3.0])}

            def build_callbacks(self):
                class Take(pytorch.PyTorchCallback):
                    def on_training_workload_end(self, avg_metrics, batch_metrics):
                        seen.append(avg_metrics)

                    def on_validation_end(self, metrics):
                        seen.append(metrics)

                return {"take": Take()}

        with store():
            fit(Arrays, Batch(2), reporting_period=Batch(2))
        trained, validated = seen
        for metrics in seen:
            self.assertEqual((metrics["confusion"].dtype, metrics["confusion"].tolist()), (np.int32, [[1, 2], [3, 4]]))
            self.assertEqual(metrics["listed"], [1, 2])
            self.assertIsInstance(metrics["listed"], list)
            self.assertIsInstance(metrics["tensor"], np.ndarray)
        self.assertEqual((trained["per_class"], validated["per_class"]), (0.375, 2.0), "averages are numbers")

    def test_interleaved(self):
        from determined.pytorch._reducer import _SimpleReducer

        self.assertEqual(_SimpleReducer(list).cross_slot_reduce(([0, 1], [100])), [0, 100, 1])

    def test_wrong_reducers(self):
        with store(), pytorch.init() as context:
            self.assertRaises(AssertionError, context.wrap_reducer, 7)
            r = context.wrap_reducer(lambda v: {"a": 1})
            self.assertRaises(AssertionError, context.wrap_reducer, r)
        cases = [(lambda v: 1, None, "did not return a dict"), (lambda v: {}, "x", "it returned a dict anyway"),
                 (lambda v: 1 / 0, "x", "cross_slot_reduce")]
        for fn, name, text in cases:
            class Wrong(LineTrial):
                def __init__(self, context):
                    super().__init__(context)
                    context.wrap_reducer(fn, name=name)

            with self.subTest(text), store(), self.assertRaisesRegex((AssertionError, ValueError), text):
                fit(Wrong, Batch(1))


class Stopping(unittest.TestCase):
    def test_stop_requested(self):
        class Stops(RecordingTrial):
            def train_batch(self, batch, epoch_idx, batch_idx):
                if batch_idx == 2:
                    self.context.set_stop_requested(True)
                return super().train_batch(batch, epoch_idx, batch_idx)

        with store():
            t = fit(Stops, Batch(50), reporting_period=Batch(4))
        self.assertEqual([x for x in t.trace if x.startswith("b")][-1], "b3 e1")
        self.assertEqual(t.trace[-4:], [*CHECKPOINT, "shutdown"])

    def test_invalid_hp(self):
        """A checkpoint, the shutdown hooks, exit 0."""
        class Invalid(RecordingTrial):
            traces = []

            def train_batch(self, batch, epoch_idx, batch_idx):
                Invalid.traces = self.trace
                if batch_idx == 1:
                    raise det.InvalidHP("too large")
                return super().train_batch(batch, epoch_idx, batch_idx)

        with store(), self.assertRaises(SystemExit) as e:
            fit(Invalid, Batch(5))
        self.assertEqual(e.exception.code, 0)
        self.assertEqual(Invalid.traces[-2:], ["upload_end", "shutdown"])
        self.assertRaises(TypeError, det.InvalidHP, 7)

    def test_exception(self):
        """The user's own exception comes out whole; shutdown hooks run, no checkpoint is made."""
        class Crashes(RecordingTrial):
            traces = []

            def train_batch(self, batch, epoch_idx, batch_idx):
                Crashes.traces = self.trace
                return {"loss": 1 / 0}

        text = ""
        try:
            with store():
                fit(Crashes, Batch(5))
        except ZeroDivisionError:
            text = traceback.format_exc()
        self.assertIn("in train_batch", text)
        self.assertEqual(Crashes.traces[-1], "shutdown")
        self.assertNotIn("write_end", Crashes.traces)
        self.assertTrue(torch.is_grad_enabled())


class Local(unittest.TestCase):
    def test_context(self):
        """What a context answers without a cluster."""
        with store(), pytorch.init(hparams={"global_batch_size": 5, "a": 1}) as context:
            self.assertEqual((context.get_per_slot_batch_size(), context.get_global_batch_size()), (5, 5))
            self.assertRaises(errors.InternalException, context.get_trial_seed)
            self.assertRaises(AttributeError, context.get_trial_id)
            self.assertRaises(errors.InternalException, context.is_epoch_start)
            self.assertRaises(ValueError, context.get_experiment_config)
            self.assertRaises(AssertionError, context.set_stop_requested, 1)


class Whole(unittest.TestCase):
    def test_full_dataset(self):
        class Full(LineTrial):
            evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

            def evaluate_full_dataset(self, data_loader):
                assert isinstance(data_loader, torch.utils.data.DataLoader) and not torch.is_grad_enabled() and not self.model.training
                self.batches = len(list(data_loader))
                return {"n": self.batches}

        with store():
            self.assertEqual(fit(Full, Batch(1)).batches, 3)

    def test_bytes(self):
        """Of a whole validation: left out, and said so."""
        class Full(RecordingTrial):
            evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

            def evaluate_full_dataset(self, data_loader):
                return {"text": b"x", "n": 1}

        with store(), self.assertLogs("determined.pytorch", "WARNING") as logs:
            self.assertIn("validation_end ['n']", fit(Full, Batch(1)).trace)
        self.assertTrue(any('"text" is bytes' in line for line in logs.output), logs.output)

    def test_length_of_none(self):
        """Nothing to train is a mistake; it was one batch."""
        with store(), self.assertRaisesRegex(ValueError, r"fit\(max_length=.*\): local training needs at least"):
            fit(LineTrial, Batch(0))

    def test_test_mode(self):
        with store():
            t = fit(RecordingTrial, Epoch(9), test_mode=True)
        self.assertEqual([x for x in t.trace if x in ("b0 e0", "b1 e0", "v", "write_end")], ["b0 e0", "v", "write_end"])

    def test_amp(self):
        class Mixed(LineTrial):
            def __init__(self, context):
                context.experimental.use_amp()
                super().__init__(context)

        with store() as where:
            fit(Mixed, Batch(2))
            uuid = os.listdir(where)[0]
            self.assertIn("scaler_state_dict", torch.load(os.path.join(where, uuid, "state_dict.pth")))

    def test_amp_of_copies(self):
        """An average of a model's weights, say, is a copy of it, and computes with weights of its own."""
        with pytorch.init() as context:
            context.experimental.use_amp()
            model = context.wrap_model(torch.nn.Linear(1, 1))
            average = copy.deepcopy(model)
            for p in average.parameters():
                p.data.zero_()
            self.assertEqual(average(torch.ones(1)).item(), 0)

    def test_amp_of_outputs(self):
        """They come back in their own types."""
        Pair = collections.namedtuple("Pair", "a b")

        class Named(dict):
            pass

        class Model(torch.nn.Module):
            def forward(self, x):
                return Pair(x.half(), Named(y=[x.half()], z=1))

        with pytorch.init() as context:
            context.experimental.use_amp()
            a, b = out = context.wrap_model(Model())(torch.ones(1))
        self.assertEqual((type(out), type(b), a.dtype, b["y"][0].dtype, b["z"]), (Pair, Named, torch.float32, torch.float32, 1))

    def test_amp_outside_of_training(self):
        """A scaler is updated between steps, but not between two optimizers' steps of one backward pass each."""
        calls = []

        class Scaler:
            stepped = set()

            def is_enabled(self):
                return True

            def scale(self, loss):
                calls.append("scale")
                return loss

            def step(self, optimizer):
                assert id(optimizer) not in self.stepped, "step() has already been called since the last update()"
                self.stepped.add(id(optimizer))
                calls.append("step")

            def update(self):
                self.stepped.clear()
                calls.append("update")

        context = pytorch.CheckpointLoadContext()
        context.wrap_scaler(Scaler())
        context._use_amp = True
        model = torch.nn.Linear(1, 1)
        first, second = (context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1)) for _ in range(2))
        for _ in range(2):
            context.backward(model(torch.ones(1)))
            context.step_optimizer(first)
            context.step_optimizer(second)
        self.assertEqual(calls, ["scale", "step", "step", "update", "scale", "step", "step"])

    def test_batch_length(self):
        """Asked for every batch, of training too; what it raises is the trial's failure."""
        class Counting(LineTrial):
            def get_batch_length(self, batch):
                self.seen.append("length")
                if len(self.seen) > 13:
                    raise KeyError("no length")
                return super().get_batch_length(batch)

        with store():
            seen = fit(Counting, Batch(3)).seen
            self.assertEqual([x == "length" for x in seen], [False, True] * 3 + [True] * 3)
            with self.assertRaisesRegex(KeyError, "no length"):
                fit(Counting, Batch(10))

    def test_plain_state(self):
        """A checkpoint names neither numpy nor code: torch 2 opens it as data alone, and an older numpy goes on from it."""
        options = {"weights_only": True} if torch.__version__ >= "2" else {}  # torch 1.13 takes no number for data
        with store() as where:
            np.random.seed(3)
            fit(LineTrial, Batch(1))
            after = np.random.random()
            state = torch.load(os.path.join(where, os.listdir(where)[0], "state_dict.pth"), **options)["rng_state"]
        self.assertIsInstance(state["np_rng_state"][1], list)
        np.random.set_state(state["np_rng_state"])
        self.assertEqual(np.random.random(), after)

    def test_twice(self):
        """fit() may be called again, in one process."""
        with store(), pytorch.init() as context:
            trial = LineTrial(context)
            trainer = pytorch.Trainer(trial, context)
            trainer.fit(max_length=Batch(1))
            trainer.fit(max_length=Batch(2))
            self.assertEqual(len(trial.seen), 3)


if __name__ == "__main__":
    unittest.main()
