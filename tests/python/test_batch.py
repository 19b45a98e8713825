"""determined.pytorch.experimental.torch_batch_process: which rank gets what, checkpoints, pauses, results."""
import json
import os
import pathlib
import types
import unittest
from unittest import mock

import torch
from determined import core
from determined.pytorch.experimental import TorchBatchProcessor, _torch_batch_process, get_default_device, torch_batch_process
from support import Numbers, store
from test_core import on_two_ranks


class Processor(TorchBatchProcessor):
    """Keeps what it was given, and how often it was told of what."""

    def __init__(self, context):
        self.context, self.seen, self.told = context, [], []
        self.model = context.prepare_model_for_inference(torch.nn.Linear(1, 1))
        self.sum = context.wrap_reducer(sum, name="sum")
        made.append(self)

    def process_batch(self, batch, batch_idx):
        x, _ = self.context.to_device(batch)
        self.seen.append((batch_idx, x.flatten().tolist()))
        self.sum.update(float(x.sum()))
        with self.context.upload_path() as path:
            (path / f"{batch_idx}.json").write_text(json.dumps(x.tolist()))

    def on_checkpoint_start(self):
        self.told.append("checkpoint")

    def on_finish(self):
        self.told.append("finish")


made = []


class Batch(unittest.TestCase):
    def setUp(self):
        made.clear()
        self.reports = []
        patch = mock.patch.object(core.DummyTrainContext, "report_validation_metrics", lambda _, steps, metrics: self.reports.append((steps, metrics)))
        patch.start()
        self.addCleanup(patch.stop)

    def test_alone(self):
        """Without a cluster: every batch once, a checkpoint every second and at the end, results in the store."""
        with store() as where, self.assertLogs("determined.pytorch", "INFO") as log:
            torch_batch_process(Processor, Numbers(10), batch_size=4, checkpoint_interval=2, dataloader_kwargs={"shuffle": False})
            results = sorted(p.name for p in pathlib.Path(where).glob("*/rank_0/*"))
            saved = sorted(json.loads(p.read_text())["batch_completed"] for p in pathlib.Path(where).glob("*/batch_completed.json"))
        p, = made
        self.assertEqual(p.seen, [(0, [0, 1, 2, 3]), (1, [4, 5, 6, 7]), (2, [8, 9])])
        self.assertEqual(p.told, ["checkpoint", "checkpoint", "finish"])
        self.assertEqual((results, saved), (["0.json", "1.json", "2.json"], [2, 3]))
        self.assertEqual(self.reports, [(3, {"sum": 45.0})])
        self.assertFalse(p.model.training)
        self.assertIn("Completed steps:  2 and checkpointing", "".join(log.output))
        self.assertIn("Files stored with default paths are at: ", "".join(log.output))
        self.assertEqual(get_default_device(core.init()).type, "cuda" if torch.cuda.is_available() else "cpu")

    def test_ranks(self):
        """50 records in tens over two ranks: 3 and 2 batches, and as many checkpoints on both."""
        with store():
            failed = [e for e in on_two_ranks(lambda d: torch_batch_process(
                Processor, Numbers(50), batch_size=10, checkpoint_interval=2, distributed_context=d)) if e is not None]
        self.assertEqual(failed, [])
        self.assertEqual(sorted(len(p.seen) for p in made), [2, 3])
        self.assertEqual([p.told for p in made], [["checkpoint", "checkpoint", "finish"]] * 2)
        self.assertEqual(self.reports, [(3, {"sum": sum(range(50))})])

    def test_max_batches(self):
        for given, got in ((2, 2), (99, 3), (0, 3)):
            with store():
                torch_batch_process(Processor, Numbers(12), batch_size=4, max_batches=given)
            self.assertEqual(len(made.pop().seen), got)

    def test_pause_and_resume(self):
        """Asked to make room: it ends at the next checkpoint, and the next run goes on after it, in the same folder."""
        info = types.SimpleNamespace(latest_checkpoint=None, task_type="NONE", slot_ids=[], trial=None)
        real = core.init

        def init(**options):
            context = real(**options)
            context.info = info
            return context

        with store() as where, mock.patch.object(_torch_batch_process.core, "init", init):
            with mock.patch.object(core.DummyPreemptContext, "should_preempt", lambda self: True):
                torch_batch_process(Processor, Numbers(10), batch_size=2, checkpoint_interval=2)
            self.assertEqual(made[0].told, ["checkpoint"])
            info.latest_checkpoint, = [p.parent.name for p in pathlib.Path(where).glob("*/batch_completed.json")]
            torch_batch_process(Processor, Numbers(10), batch_size=2, checkpoint_interval=2)
            folder, = [p for p in pathlib.Path(where).glob("*/rank_0")]
            self.assertEqual(len(os.listdir(folder)), 5)
        self.assertEqual([i for i, _ in made[1].seen], [2, 3, 4])
        self.assertEqual(made[1].told, ["checkpoint", "checkpoint", "finish"])

    def test_complete_already(self):
        with store(), mock.patch.object(core.DummySearcherContext, "_next", lambda self: None):
            torch_batch_process(Processor, Numbers(10))
        self.assertEqual(made, [])

    def test_wrong_use(self):
        for text, options in (("checkpoint_interval should be", {"checkpoint_interval": 0}), ("'shuffle' must be", {"dataloader_kwargs": {"shuffle": True}}),
                              ("remove 'sampler' arg", {"dataloader_kwargs": {"sampler": None}}),
                              ("batch_size is passed", {"batch_size": 1, "dataloader_kwargs": {"batch_size": 2}})):
            with self.assertRaisesRegex(ValueError, text):
                torch_batch_process(Processor, Numbers(10), **options)
        with self.assertRaisesRegex(Exception, "must implement __len__"):
            torch_batch_process(Processor, iter([]))
        several = types.SimpleNamespace(slot_ids=[0, 1])
        with mock.patch.object(_torch_batch_process.det, "get_cluster_info", lambda: several), self.assertRaisesRegex(ValueError, "distributed launch layer"):
            torch_batch_process(Processor, Numbers(10))


if __name__ == "__main__":
    unittest.main()
