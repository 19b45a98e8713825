"""Checkpoints of Python trials: the same bits after a resume, and what may lie in their files."""
import itertools
import json
import os
import pathlib
import pickle
import random
import resource
import sys
import types
import unittest
import warnings
from unittest import mock

import numpy as np
import torch
from determined import pytorch
from recorder import RecordingTrial
from support import LineTrial, Numbers, fit, store
from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

Batch = pytorch.Batch


def read_json(*path):
    with open(os.path.join(*path)) as f:
        return json.load(f)


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

    OLD = """
import os, torch
from determined.pytorch import PyTorchTrial
import shapes
class Old(PyTorchTrial):
    def __init__(self, context):
        import late
        self.late, self.text = late.NUMBER, open("data.txt").read()
    def build_model(self):
        import late
        return torch.nn.Linear(1, shapes.WIDTH + late.NUMBER)
    train_batch = build_training_data_loader = build_validation_data_loader = None
class New(Old):
    def __init__(self, context):
        super().__init__(context)
        self.model = context.wrap_model(self.build_model())
"""

    def put_old(self, name, width, entrypoint, key):
        """A checkpoint whose code has the module names that the other's has."""
        os.makedirs(os.path.join(name, "code"))
        model = torch.nn.Linear(1, 2 * width)
        torch.save({key: model.state_dict() if key == "model_state_dict" else [model.state_dict()]}, os.path.join(name, "state_dict.pth"))
        for file, text in (("model_def.py", self.OLD), ("shapes.py", f"WIDTH = {width}"), ("late.py", f"NUMBER = {width}"), ("data.txt", name)):
            with open(os.path.join(name, "code", file), "w") as f:
                f.write(text)
        with open(os.path.join(name, "metadata.json"), "w") as f:
            json.dump({"experiment_config": {"entrypoint": entrypoint}, "hparams": {}}, f)
        return model

    def test_equal_module_names(self):
        """Each checkpoint has its own code, by relative paths too; the directory and the path of imports stay what they were."""
        with store():
            where, path = os.getcwd(), list(sys.path)
            with mock.patch.dict(sys.modules, {"shapes": types.ModuleType("shapes")}):
                mine = sys.modules["shapes"]
                for name, width in (("dl", 1), ("other", 2), ("third", 3)):
                    old = self.put_old(name, width, "model_def:Old", "model_state_dict")
                    model = pytorch.load_trial_from_checkpoint_path(name)
                    self.assertIs(type(model), torch.nn.Linear)
                    self.assertTrue(torch.equal(model.weight, old.weight))
                    new = self.put_old(name + "-new", width, "model_def:New", "models_state_dict")
                    trial = pytorch.load_trial_from_checkpoint_path(name + "-new")
                    self.assertTrue(torch.equal(trial.model.weight, new.weight))
                    self.assertEqual((trial.late, trial.text), (width, name + "-new"))
                    self.assertEqual((os.getcwd(), sys.path), (where, path))
                    self.assertIs(sys.modules["shapes"], mine)

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

    def test_nothing_left(self):
        """A script that is run again after its end: nothing is trained, validated or saved a second time."""
        with store() as where:
            fit(RecordingTrial, Batch(4))
            uuid, = os.listdir(where)
            again = fit(RecordingTrial, Batch(4), latest_checkpoint=uuid)
            self.assertEqual([t for t in again.trace if "validation" in t or "train" in t and "training_start" not in t], [])
            self.assertEqual(os.listdir(where), [uuid])

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


if __name__ == "__main__":
    unittest.main()
