"""What guides to PyTorchTrial show, fragment by fragment (schedulers, metrics and reducers: test_loop.py; profiler: test_tensorboard.py)."""
import os
import tempfile
import unittest

import numpy as np
import torch
from determined import pytorch
from determined.pytorch import samplers
from support import LineTrial, Numbers, fit, store

Batch = pytorch.Batch


class Fragments(unittest.TestCase):
    def test_step_lr_and_clipping(self):
        """SGD under StepLR, stepped every epoch; gradients clipped by norm and by value, and a manual zero_grad()."""
        class Trial(LineTrial):
            rates, norms = [], []

            def __init__(self, context):
                super().__init__(context)
                scheduler = torch.optim.lr_scheduler.StepLR(self.optim, step_size=1, gamma=0.5)
                self.scheduler = context.wrap_lr_scheduler(scheduler, step_mode=pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)

            def train_batch(self, batch, epoch_idx, batch_idx):
                self.rates.append(self.scheduler.get_last_lr()[0])
                loss = self.loss(batch)
                self.context.backward(loss)
                clip = (lambda p: torch.nn.utils.clip_grad_norm_(p, 0.01), lambda p: torch.nn.utils.clip_grad_value_(p, 0.001))[batch_idx % 2]

                def seen(parameters):
                    clip(parameters)
                    self.norms.append(float(torch.cat([p.grad.flatten() for p in self.model.parameters()]).norm()))

                self.context.step_optimizer(self.optim, clip_grads=seen, auto_zero_grads=False)
                self.optim.zero_grad()
                return loss

        with store():
            fit(Trial, pytorch.Epoch(3))
        self.assertEqual(Trial.rates, [1e-3] * 3 + [5e-4] * 3 + [2.5e-4] * 3)
        self.assertLess(max(Trial.norms), 0.011)

    def test_own_samplers(self):
        """A torch loader of one's own, sharded and repeated by hand, once the checks are off."""
        class Trial(LineTrial):
            def build_training_data_loader(self):
                self.context.experimental.disable_dataset_reproducibility_checks()
                ranks, data = self.context.distributed, Numbers()
                batches = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(data), 4, drop_last=False)
                batches = samplers.ReproducibleShuffleBatchSampler(batches, 777)
                batches = samplers.SkipBatchSampler(samplers.RepeatBatchSampler(batches), self.context.get_initial_batch())
                batches = samplers.DistributedBatchSampler(batches, ranks.get_size(), ranks.get_rank())
                return torch.utils.data.DataLoader(data, batch_sampler=batches)

        with store():
            seen = fit(Trial, Batch(6)).seen
        self.assertEqual(sorted(sum(seen[:3], [])), sorted(sum(seen[3:], [])))
        self.assertNotEqual(seen[:3], seen[3:], "shuffled anew")

    def test_streams(self):
        """An iterable dataset, and no DataLoader at all, once the checks are off."""
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return (Numbers()[i] for i in range(8))

        class Trial(LineTrial):
            def __init__(self, context):
                super().__init__(context)
                context.experimental.disable_dataset_reproducibility_checks()

            def build_training_data_loader(self):
                return torch.utils.data.DataLoader(Stream(), batch_size=4)

            def build_validation_data_loader(self):
                return torch.utils.data.DataLoader(Stream(), batch_size=2)

        with store():
            self.assertEqual(fit(Trial, Batch(2)).seen, [[0, 1, 2, 3], [4, 5, 6, 7]])

    def test_directory_of_a_rank(self):
        class Trial(LineTrial):
            def __init__(self, context):
                super().__init__(context)
                self.directory = os.path.join(tempfile.gettempdir(), f"data-rank{context.distributed.get_rank()}-{os.getpid()}")
                os.makedirs(self.directory, exist_ok=True)
                np.save(os.path.join(self.directory, "x.npy"), np.arange(4, dtype=np.float32).reshape(4, 1))

            def build_training_data_loader(self):
                x = torch.from_numpy(np.load(os.path.join(self.directory, "x.npy")))
                return pytorch.DataLoader(torch.utils.data.TensorDataset(x, x), batch_size=2)

            def build_callbacks(trial):
                class CleanUp(pytorch.PyTorchCallback):
                    def on_trial_shutdown(self):
                        os.remove(os.path.join(trial.directory, "x.npy"))
                        os.rmdir(trial.directory)

                return {"clean_up": CleanUp()}

        with store():
            t = fit(Trial, Batch(2))
        self.assertEqual(t.seen, [[0, 1], [2, 3]])
        self.assertFalse(os.path.exists(t.directory))

    def test_nested_batches(self):
        """Dicts of lists of tuples, with arrays and texts in them; get_batch_length counts what data_length cannot."""
        def collate(records):
            x = np.array([[float(r[0])] for r in records], np.float32)
            return {"text": [f"{i}" for i in range(len(records))], "deep": [{"pair": (x, torch.from_numpy(2 * x))}]}

        class Trial(LineTrial):
            lengths = []

            def build_training_data_loader(self):
                return pytorch.DataLoader(Numbers(), batch_size=5, collate_fn=collate)

            build_validation_data_loader = build_training_data_loader

            def get_batch_length(self, batch):
                self.lengths.append(len(batch["text"]))
                return self.lengths[-1]

            def loss(self, batch):
                x, y = batch["deep"][0]["pair"]
                assert isinstance(x, torch.Tensor) and isinstance(batch["text"][0], str)
                return super().loss((x, y))

            def train_batch(self, batch, epoch_idx, batch_idx):
                return {"loss": self.loss(batch)}

        with store():
            fit(Trial, Batch(1))
        self.assertEqual(Trial.lengths[-3:], [5, 5, 2])

    def test_callbacks_values(self):
        """Averages are numbers; metrics of a batch are NumPy's, and those of a validation's batches what the trial returned, tensors as arrays."""
        got = {}

        class Take(pytorch.PyTorchCallback):
            def on_training_workload_end(self, avg_metrics, batch_metrics):
                got.update(avg=avg_metrics, batch=batch_metrics)

            def on_validation_epoch_end(self, outputs):
                got.update(outputs=outputs)

            def on_validation_end(self, metrics):
                got.update(metrics=metrics)

        class Trial(LineTrial):
            def build_callbacks(self):
                return {"take": Take()}

            def train_batch(self, batch, epoch_idx, batch_idx):
                return {"loss": torch.tensor(float(batch_idx)), "numpy": np.float64(2), "array": torch.ones(3, dtype=torch.bfloat16) * batch_idx}

            def evaluate_batch(self, batch, batch_idx):
                error = torch.tensor(float(batch_idx), dtype=(torch.float32, torch.bfloat16)[batch_idx % 2])
                self.changed = error.new_zeros(()) if batch_idx == 0 else self.changed
                self.changed += 1  # in place
                return {"error": error, "changed": self.changed, "array": np.full((2, 1), [[np.inf]] if batch_idx else [[1]])}

            def evaluation_reducer(self):
                return {"error": pytorch.Reducer.MAX, "changed": pytorch.Reducer.MAX, "array": pytorch.Reducer.SUM}

        with store():
            fit(Trial, Batch(2))
        self.assertEqual(got["avg"], {"loss": 0.5, "numpy": 2.0, "array": 0.5})
        self.assertEqual([(m["loss"].item(), m["numpy"].mean()) for m in got["batch"]], [(0, 2), (1, 2)])
        self.assertEqual([(m["array"].shape, m["array"].sum()) for m in got["batch"]], [((3,), 0), ((3,), 3)])
        self.assertEqual([m["error"].item() for m in got["outputs"]], [0, 1, 2])
        self.assertEqual([m["changed"].item() for m in got["outputs"]], [1, 2, 3])
        self.assertEqual([m["array"].tolist() for m in got["outputs"]], [[[1], [1]], [[np.inf]] * 2, [[np.inf]] * 2])
        self.assertEqual({k: float(v) for k, v in got["metrics"].items()}, {"error": 2, "changed": 3, "array": np.inf})

    def test_one_reducer(self):
        class Trial(LineTrial):
            def evaluate_batch(self, batch):
                return {"seen": batch[0].max()}

            def evaluation_reducer(self):
                return pytorch.Reducer.MIN

            def build_callbacks(trial):
                class Take(pytorch.PyTorchCallback):
                    def on_validation_end(self, metrics):
                        trial.metrics = metrics

                return {"take": Take()}

        with store():
            self.assertEqual(fit(Trial, Batch(1)).metrics, {"seen": 3})


if __name__ == "__main__":
    unittest.main()
