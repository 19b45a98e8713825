"""The loop as a Python trial sees it: order of calls, metrics, resuming, wrong use."""
import collections
import copy
import itertools
import json
import os
import pathlib
import pickle
import random
import resource
import sys
import traceback
import types
import unittest
import warnings
from unittest import mock

import numpy as np
import determined as det
import torch
from determined import errors, pytorch
from support import LineTrial, Numbers, fit, store
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

Batch, Epoch = pytorch.Batch, pytorch.Epoch


class Recorder(pytorch.PyTorchCallback):
    """Writes down every hook, with what can be compared."""

    def __init__(self, trace):
        self.trace, self.uuids = trace, []

    def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
        self.trace.append(f"startup {first_batch_idx} {checkpoint_uuid}")

    def on_training_start(self):
        self.trace.append("training_start")

    def on_training_epoch_start(self):
        self.trace.append("epoch_start")

    def on_training_epoch_end(self, epoch_idx):
        self.trace.append(f"epoch_end {epoch_idx}")

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.trace.append(f"workload_end {len(batch_metrics)}")

    def on_validation_start(self):
        self.trace.append("validation_start")

    def on_validation_epoch_start(self):
        self.trace.append("validation_epoch_start")

    def on_validation_epoch_end(self, outputs):
        self.trace.append(f"validation_epoch_end {len(outputs)}")

    def on_validation_end(self, metrics):
        self.trace.append(f"validation_end {sorted(metrics)}")

    def on_checkpoint_save_start(self, checkpoint):
        self.trace.append(f"save_start {list(checkpoint)}")
        checkpoint["mine"] = 1

    def on_checkpoint_load_start(self, checkpoint):
        self.trace.append(f"load_start {checkpoint['mine']}")

    def on_checkpoint_write_end(self, checkpoint_dir):
        self.trace.append("write_end")

    def on_checkpoint_upload_end(self, uuid):
        self.trace.append("upload_end")
        self.uuids.append(uuid)

    def on_trial_shutdown(self):
        self.trace.append("shutdown")

    def state_dict(self):
        return {"hooks": len(self.trace)}

    def load_state_dict(self, state_dict):
        self.trace.append(f"load_state_dict {sorted(state_dict)}")


class RecordingTrial(LineTrial):
    def build_callbacks(self):
        self.trace = []
        self.recorder = Recorder(self.trace)
        return {"recorder": self.recorder}

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.trace.append(f"b{batch_idx} e{epoch_idx}")
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch):
        self.trace.append("v")
        return super().evaluate_batch(batch, 0)


def read_json(*path):
    with open(os.path.join(*path)) as f:
        return json.load(f)


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


class Resume(unittest.TestCase):
    def resumed(self, trial_class, at, length, **options):
        """A whole run, and one that goes on from the checkpoint that the first made after `at` batches."""
        with store():
            whole = fit(trial_class, Batch(length), checkpoint_period=Batch([at]), checkpoint_policy="none", **options)
            second = fit(trial_class, Batch(length), seed=99, latest_checkpoint=whole.recorder.uuids[0], checkpoint_policy="none", **options)
        return whole, second

    def test_shuffled(self):
        """At any batch, with and without workers: no record twice, none missed, and the same weights to the last bit."""
        for at, workers in ((1, 0), (3, 0), (4, 0), (7, 0), (4, 2)):
            class Shuffled(RecordingTrial):
                shuffle = True

            Shuffled.workers = workers
            with self.subTest(at=at, workers=workers):
                whole, second = self.resumed(Shuffled, at, 11)
                self.assertEqual(second.seen, whole.seen[at:])
                self.assertTrue(torch.equal(second.model.weight, whole.model.weight) and torch.equal(second.model.bias, whole.model.bias))
                self.assertIn("load_start 1", second.trace)
                self.assertIn("load_state_dict ['hooks']", second.trace)

    def test_own_generators(self):
        """Of a dataset and its transforms: they go on where they were, and in workers belong to the batch."""
        class Shift:
            def __init__(self, rng):
                self.rng = rng

            def __call__(self, x):
                return x + self.rng.random()

        class Augmented(Numbers):
            def __init__(self):
                super().__init__()
                shared = random.Random(1)
                self.torch, self.old = torch.Generator().manual_seed(2), np.random.RandomState(3)
                self.transforms = [Shift(shared), Shift(np.random.default_rng(4)), Shift(shared)]

            def __getitem__(self, i):
                x, y = super().__getitem__(i)
                for transform in self.transforms:
                    x = transform(x)
                return x + torch.rand((), generator=self.torch) + self.old.rand(), y

        class Augmenting(RecordingTrial):
            def build_training_data_loader(self):
                data = torch.utils.data.Subset(Augmented(), list(range(12)))
                return pytorch.DataLoader(data, batch_size=4, num_workers=self.workers)

            def build_validation_data_loader(self):
                return pytorch.DataLoader(Augmented(), batch_size=4, num_workers=self.workers)

            def evaluate_batch(self, batch, batch_idx):
                self.seen.append(batch[0].flatten().tolist())
                return super().evaluate_batch(batch)

        for workers in (0, 2):
            Augmenting.workers = workers
            with self.subTest(workers=workers):
                whole, second = self.resumed(Augmenting, 4, 7, validation_period=Batch([2, 6]))
                self.assertEqual(second.seen, whole.seen[-len(second.seen):])
                self.assertGreater(len(second.seen), 3)
                drawn = [x for batch in whole.seen[:2] for x in batch]
                self.assertEqual(len({round(x % 1, 6) for x in drawn}), len(drawn))
                self.assertTrue(torch.equal(second.model.weight, whole.model.weight))

    def test_drawn_in_workers(self):
        """What a dataset draws belongs to its batch: the same after a resume and with other workers, new in each pass."""
        class Augmented(Numbers):
            def __getitem__(self, i):
                x, y = super().__getitem__(i)
                return x + torch.tensor([random.random(), np.random.rand(), torch.rand(()).item()]).sum(), y

        class TwoViews(Augmented):
            """Goes through the indices twice, as torch lets a dataset with __getitems__ do."""
            def __getitems__(self, indices):
                return [(a[0] - b[0], a[1]) for a, b in zip([self[i] for i in indices], [self[i] for i in indices])]

        class Augmenting(RecordingTrial):
            workers, data = 2, Augmented

            def build_training_data_loader(self):
                return pytorch.DataLoader(self.data(), batch_size=4, num_workers=self.workers)

        class FewerWorkers(Augmenting):
            workers = 1

        for at in (1, 4):
            with self.subTest(at=at):
                whole, second = self.resumed(Augmenting, at, 7)
                self.assertEqual(second.seen, whole.seen[at:])
        for workers, more in ((0, {"shuffle": True}), (3, {"shuffle": True, "persistent_workers": True})):
            class Otherwise(RecordingTrial):
                def build_training_data_loader(self):
                    return pytorch.DataLoader(Augmented(), batch_size=4, num_workers=workers, **more)

                def build_validation_data_loader(self):
                    return pytorch.DataLoader(Augmented(), batch_size=4, num_workers=workers, **more)

                def evaluate_batch(self, batch, batch_idx):
                    self.seen.append(batch[0].flatten().tolist())
                    return super().evaluate_batch(batch)

            for at in random.sample(range(1, 7), 1):
                with self.subTest(workers=workers, at=at, **more):
                    half, other = self.resumed(Otherwise, at, 7, validation_period=Batch([5]))
                    self.assertEqual(other.seen, half.seen[-len(other.seen):])
                    self.assertGreaterEqual(len(other.seen), 7 - at)
                    self.assertTrue(torch.equal(other.model.weight, half.model.weight))
        drawn = [x % 1 for batch in whole.seen for x in batch]
        self.assertEqual(len(set(drawn)), len(drawn))
        FewerWorkers.data = TwoViews
        self.assertNotIn(0, [x for batch in fit(FewerWorkers, Batch(3)).seen for x in batch])
        FewerWorkers.data = Augmented
        self.assertEqual(fit(FewerWorkers, Batch(7), seed=5).seen, fit(Augmenting, Batch(7), seed=5).seen)

    def test_between_updates(self):
        """From a checkpoint between two updates, what was summed up so far is part of the next one."""
        for at in (1, 2, 3):
            with self.subTest(at=at):
                whole, second = self.resumed(RecordingTrial, at, 6, aggregation_frequency=3)
                self.assertTrue(torch.equal(second.model.weight, whole.model.weight))

    def test_gradients_of_an_earlier_version(self):
        """Kept in state_dict.pth, as trials in C do too: not taken, and said so; a warm start does not ask for them."""
        from determined.pytorch import _open_grads

        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            _open_grads.warn_of_others({"accumulated_gradients": {"trial_id": 3, "tensors": []}}, 3)
        self.assertIn("the first update is of fewer batches", logs.output[0])
        with self.assertNoLogs("determined.pytorch", "WARNING"):
            _open_grads.warn_of_others({"accumulated_gradients": {"trial_id": 3, "tensors": []}}, 4)
            _open_grads.warn_of_others({}, 3)

    def test_of_a_view(self):
        """Of a gradient that is a view only its own numbers are kept."""
        from determined.pytorch import _open_grads

        small = torch.nn.Linear(1, 1)
        small.weight.grad = torch.zeros(1000)[:1].view(1, 1)
        self.assertLess(len(pickle.dumps(_open_grads.of([small]))), 1000)

    def test_samplers_of_torch(self):
        """Given by the trial, over the global generator or one of its own, to training and to validation."""
        def subset(g):
            return {"batch_size": 4, "sampler": SubsetRandomSampler(list(range(2, 12)), g)}

        def weighted(g):
            return {"batch_size": 4, "sampler": WeightedRandomSampler([1.0] * 12, 12, generator=g), "num_workers": 1}

        def batches(g):
            return {"batch_sampler": BatchSampler(RandomSampler(range(12), generator=g), 4, True)}

        def shuffled(g):
            return {"batch_size": 4, "shuffle": True, "generator": g}

        class Sampled(RecordingTrial):
            def loader(self, own):
                return pytorch.DataLoader(Numbers(), **self.options(torch.Generator().manual_seed(own) if self.own else None))

            def build_training_data_loader(self):
                self.evaluated = []
                return self.loader(5)

            def build_validation_data_loader(self):
                return self.loader(6)

            def evaluate_batch(self, batch, batch_idx):
                self.evaluated.append(batch[0].flatten().tolist())
                return super().evaluate_batch(batch)

        for options, own in itertools.product((subset, weighted, batches, shuffled), (False, True)):
            Sampled.options, Sampled.own = staticmethod(options), own
            for at in (3, 4):
                with self.subTest(options=options.__name__, own=own, at=at):
                    whole, second = self.resumed(Sampled, at, 7, validation_period=Batch([2, 5]))
                    self.assertEqual(second.seen, whole.seen[at:])
                    self.assertEqual(second.evaluated, whole.evaluated[-len(second.evaluated):])

    def test_samplers_of_the_trial(self):
        """Which draw from the global generators, or from one of their own, as a pass begins; training draws beside them."""
        class Buckets:
            def __init__(self, own):
                self.own = own and np.random.RandomState(1)

            def __len__(self):
                return 3

            def __iter__(self):
                order = self.own.permutation(12) if self.own else np.random.permutation(12)[torch.randperm(12).numpy()]
                batches = [order[k : k + 4].tolist() for k in (0, 4, 8)]
                if not self.own:
                    random.shuffle(batches)
                return iter(batches)

        class Lazy(Buckets):
            def __iter__(self):
                yield from super().__iter__()

        class Sampled(RecordingTrial):
            def build_training_data_loader(self):
                return pytorch.DataLoader(Numbers(), batch_sampler=self.kind(self.own), num_workers=self.workers)

            def train_batch(self, batch, epoch_idx, batch_idx):
                self.drawn = np.random.rand() + random.random() + torch.rand(()).item()
                return super().train_batch(batch, epoch_idx, batch_idx)

        cases = [(0, Buckets, own, at) for own in (False, True) for at in (2, 3, 7)]
        cases += [(0, Lazy, False, 7), (2, Buckets, False, 4), (2, Lazy, False, 3), (2, Buckets, True, 7)]
        for Sampled.workers, Sampled.kind, Sampled.own, at in cases:
            with self.subTest(workers=Sampled.workers, kind=Sampled.kind.__name__, own=Sampled.own, at=at):
                whole, second = self.resumed(Sampled, at, 11)
                self.assertEqual(second.seen, whole.seen[at:])
                self.assertEqual(second.drawn, whole.drawn)
                self.assertEqual(sorted(sum(whole.seen[3:6], [])), list(range(12)))

    def test_full_disk(self):
        """While a checkpoint is written: an error that says so, not torch's abort()."""
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

        class Full(LineTrial):
            def build_callbacks(self):
                class Large(pytorch.PyTorchCallback):
                    def on_checkpoint_save_start(self, checkpoint):
                        checkpoint["large"] = torch.zeros(1 << 20)
                        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, unlimited[1]))

                return {"large": Large()}

        with store(), self.assertRaisesRegex(OSError, "File too large"):
            try:
                fit(Full, Batch(1))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

    def test_files(self):
        with store() as where:
            t = fit(RecordingTrial, Batch(2), hparams={"a": 1})
            path = os.path.join(where, t.recorder.uuids[-1])
            with open(os.path.join(path, "trial_state.pkl"), "rb") as f:
                self.assertEqual(pickle.load(f)["batches_trained"], 2)
            about = read_json(path, "load_data.json")
            self.assertEqual((about["trial_type"], about["is_trainer"], about["hparams"]), ("PyTorchTrial", True, None))
            meta = read_json(path, "metadata.json")
            self.assertEqual((meta["steps_completed"], meta["format"]), (2, "pickle"))
            loaded = pytorch.load_trial_from_checkpoint_path(path, trial_class=RecordingTrial)
            self.assertTrue(torch.equal(loaded.model.weight, t.model.weight))

            class Elsewhere(pytorch.PyTorchTrial):
                """Keeps its context under another name."""
                def __init__(self, ctx):
                    self.model = ctx.wrap_model(torch.nn.Linear(1, 1))
                train_batch = build_training_data_loader = build_validation_data_loader = None

            loaded = pytorch.load_trial_from_checkpoint_path(path, trial_class=Elsewhere)
            self.assertTrue(torch.equal(loaded.model.weight, t.model.weight))
            with self.assertRaisesRegex(ValueError, "torch_load_kwargs"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pytorch.load_trial_from_checkpoint_path(path, RecordingTrial, torch_load_kwargs={}, map_location="cpu")

    def test_before_2020(self):
        """A checkpoint of a trial with build_model(): its model, with the weights."""
        class Old(LineTrial):
            def __init__(self, context):
                self.context = context

            def build_model(self):
                return torch.nn.Linear(1, 1)

        with store():
            model = torch.nn.Linear(1, 1)
            torch.save({"model_state_dict": model.state_dict()}, "state_dict.pth")
            with open("metadata.json", "w") as f:
                json.dump({"experiment_config": {"entrypoint": "model_def:Old"}, "hparams": {}}, f)
            loaded = pytorch.load_trial_from_checkpoint_path(".", trial_class=Old)
            self.assertTrue(torch.equal(loaded.weight, model.weight))
            with open("load_data.json", "w") as f:  # of 0.21
                json.dump({"is_trainer": True, "trial_cls_spec": "train:Old", "trial_in_main": True, "experiment_config": None, "hparams": None}, f)
            with self.assertRaisesRegex(ValueError, "give trial_class"):
                pytorch.load_trial_from_checkpoint_path(".")

    def test_data_parallel_names(self):
        from determined.pytorch._client import load_model

        a, b = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        load_model(b, {"module." + k: v for k, v in a.state_dict().items()})
        self.assertTrue(torch.equal(a.weight, b.weight))
        self.assertRaises(RuntimeError, load_model, b, {"other": torch.zeros(1)})

    def test_schedulers_ways_back(self):
        """Those of torch 1 to themselves cannot be pickled, or bring the model along; without them they go on as they were."""
        rates = []

        class Trial(RecordingTrial):
            def __init__(self, context):
                super().__init__(context)
                each = pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH
                context.wrap_lr_scheduler(torch.optim.lr_scheduler.CyclicLR(self.optim, 1e-3, 1e-2, step_size_up=3), each)
                context.wrap_lr_scheduler(torch.optim.lr_scheduler.OneCycleLR(self.optim, 1e-2, total_steps=9), each)

            def train_batch(self, batch, epoch_idx, batch_idx):
                rates.append(self.optim.param_groups[0]["lr"])
                return super().train_batch(batch, epoch_idx, batch_idx)

        with store() as where:
            fit(Trial, Batch(6))
            whole, rates[:] = list(rates), []
            fit(Trial, Batch(4))
            uuid = next(u for u in os.listdir(where) if json.loads(pathlib.Path(where, u, "metadata.json").read_text())["steps_completed"] == 4)
            fit(Trial, Batch(6), latest_checkpoint=uuid)
            self.assertEqual(rates, whole)
            state = torch.load(os.path.join(where, uuid, "state_dict.pth"), weights_only=False)
            self.assertEqual([k for s in state["lr_schedulers_state_dict"] for k, v in s.items() if hasattr(v, "__self__")], [])

    def test_pickled_callbacks(self):
        """A state of local classes goes by cloudpickle; where that is not installed, the error names it."""
        class Local:
            pass

        class Own(pytorch.PyTorchCallback):
            def state_dict(self):
                return {"own": Local()}

        class Trial(LineTrial):
            def build_callbacks(self):
                return {"own": Own()}

        with store(), mock.patch.dict(sys.modules, {"cloudpickle": None}), \
                self.assertRaisesRegex(pickle.PicklingError, r"the checkpoint's \['callbacks'\]\['own'\]\['own'\] must .* cloudpickle is installed"):
            fit(Trial, Batch(1))

        class ByName(pickle._Pickler):
            """As cloudpickle does, in its smallest form."""
            def reducer_override(self, value):
                return (str, ("a Local",)) if isinstance(value, Local) else NotImplemented

        stand_in = types.ModuleType("cloudpickle")
        stand_in.__dict__.update({n: getattr(pickle, n) for n in ("dump", "dumps", "load", "loads", "Unpickler")}, Pickler=ByName)
        with store() as where, mock.patch.dict(sys.modules, {"cloudpickle": stand_in}):
            fit(Trial, Batch(1))
            state = torch.load(os.path.join(where, os.listdir(where)[0], "state_dict.pth"), weights_only=False)
            self.assertEqual(state["callbacks"], {"own": {"own": "a Local"}})


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
