"""determined.transformers.DetCallback under a stand-in of Hugging Face's Trainer (stand_ins/transformers): what it tells the cluster."""
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "stand_ins"))

import determined as det  # noqa: E402
from determined import core  # noqa: E402
from determined.core._storage import DirectoryStorage  # noqa: E402
from determined.transformers import DetCallback  # noqa: E402
from determined.transformers._hf_callback import get_ds_config_path_from_args, get_metric_type  # noqa: E402
from test_core import on_two_ranks  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402


class Searcher(core.DummySearcherContext):
    """Operations of these lengths."""

    def __init__(self, distributed, lengths, told):
        super().__init__(distributed)
        self.lengths, self.told = list(lengths), told

    def _next(self):
        return self.lengths.pop(0) if self.lengths else None

    def _operation(self, length):
        op = super()._operation(length)
        op._complete = lambda metric: self.told.append(("completed", length, metric))
        op._progress = lambda done: None
        return op


class Preempt(core.DummyPreemptContext):
    """Asked to make room once a step is reached."""

    def __init__(self, distributed, at):
        super().__init__(distributed)
        self.left = at

    def should_preempt(self, auto_ack=True):
        self.left -= 1
        return self.left < 0


class Train(core.DummyTrainContext):
    def __init__(self, told):
        self.told = told

    def report_training_metrics(self, steps_completed, metrics, batch_metrics=None):
        self.told.append(("training", steps_completed, sorted(metrics)))

    def report_validation_metrics(self, steps_completed, metrics):
        self.told.append(("validation", steps_completed, sorted(metrics)))


class Callback(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.addCleanup(self.top.cleanup)
        self.told = []

    def context(self, lengths, preempt_after=10**9, distributed=None):
        distributed = distributed or core.DummyDistributedContext()
        storage = core.DummyCheckpointContext(distributed, DirectoryStorage(os.path.join(self.top.name, "store")))
        context = core.Context(storage, distributed, Preempt(distributed, preempt_after), Train(self.told), Searcher(distributed, lengths, self.told))
        context.start()
        return context

    def train(self, searcher, lengths, latest=None, preempt_after=10**9, filter_metrics=None, user_data=None, out="out", others=(), **args):
        """What a run tells the cluster, and the Trainer that ran."""
        trial = types.SimpleNamespace(_config={"searcher": searcher}, trial_id=3)
        info = types.SimpleNamespace(trial=trial, latest_checkpoint=latest, task_type="TRIAL")
        self.told.clear()
        context = self.context(lengths, preempt_after)
        with mock.patch.object(det, "get_cluster_info", lambda: info):
            arguments = TrainingArguments(os.path.join(self.top.name, out), **args)
            callback = DetCallback(context, arguments, filter_metrics, user_data)
            trainer = Trainer(args=arguments, callbacks=[*others, callback])
            trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
        return list(self.told), trainer

    def checkpoints(self):
        store = os.path.join(self.top.name, "store")
        return {uuid: sorted(os.listdir(os.path.join(store, uuid))) for uuid in (os.listdir(store) if os.path.isdir(store) else [])}

    BATCHES = {"name": "single", "metric": "eval_loss", "max_length": {"batches": 7}}

    def test_batches(self):
        told, trainer = self.train(self.BATCHES, [7], max_steps=7, user_data={"mine": 1})
        self.assertEqual(trainer.state.global_step, 7)
        self.assertEqual([t[:2] for t in told], [("training", 7), ("validation", 7), ("completed", 7)])
        self.assertEqual(told[-1][2], 1 / 7)
        self.assertNotIn("train_step", told[0][2])
        (uuid, files), = self.checkpoints().items()
        self.assertEqual(files, ["checkpoint-7", "metadata.json"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.top.name, "store", uuid, "checkpoint-7"))), ["my_data.json", "trainer_state.json"])

    def test_epochs(self):
        """Each operation of a halving search at its own length, though the Trainer evaluates at that step by itself too."""
        searcher = {"name": "adaptive_asha", "metric": "eval_loss", "max_length": {"epochs": 3}}
        told, trainer = self.train(searcher, [1, 3], num_train_epochs=3, eval_steps=5, save_steps=5, logging_steps=5)
        self.assertEqual([t[:2] for t in told if t[0] == "completed"], [("completed", 1), ("completed", 3)])
        self.assertEqual([t[1] for t in told if t[0] == "validation"], [5, 10, 15])
        self.assertEqual(trainer.state.global_step, 15)
        told, trainer = self.train(searcher, [1], num_train_epochs=3)
        self.assertEqual(trainer.state.global_step, 5, "the searcher wants no more")
        self.assertEqual(told[-1][:2], ("completed", 1))

    def test_uncounted_batches(self):
        """Transformers before 4.46 is at 5/7 of an epoch at its end, where two batches are too few for a step."""
        searcher = {"name": "adaptive_asha", "metric": "eval_loss", "max_length": {"epochs": 3}}
        with mock.patch.object(Trainer, "batches_in_epoch", 7):
            told, trainer = self.train(searcher, [1, 3], num_train_epochs=3)
            self.assertEqual([t for t in told if t[0] == "completed"], [("completed", 1, 1 / 5), ("completed", 3, 1 / 15)])
            self.assertLess(trainer.state.epoch, 3)
            uuid = max(self.checkpoints(), key=lambda u: os.path.getmtime(os.path.join(self.top.name, "store", u)))
            self.assertEqual(self.train(searcher, [3], latest=uuid, num_train_epochs=3, out="later")[0], [("completed", 3, 1 / 15)])
            told, trainer = self.train(searcher, [1], preempt_after=2, num_train_epochs=3, out="paused")
            self.assertEqual((told, trainer.state.global_step), ([], 3), "a pause within an epoch is not its end")

    def test_only_the_best_are_saved(self):
        """By the evaluation alone, whatever the callback asks for: the operation is complete without a save at its step."""
        args = {"eval_steps": 3, "save_strategy": "best", "metric_for_best_model": "eval_loss", "greater_is_better": True}
        told, trainer = self.train(self.BATCHES, [7], max_steps=9, **args)
        self.assertEqual((told[-1], trainer.state.global_step), (("completed", 7, 1 / 7), 7))
        (uuid, files), = self.checkpoints().items()
        self.assertEqual(files, ["checkpoint-3", "metadata.json"])
        for steps in (7, 9):  # known as the best one's value alone
            told, trainer = self.train({**self.BATCHES, "metric": "accuracy"}, [7], max_steps=steps, **args)
            self.assertEqual((told[-1], trainer.state.global_step), (("completed", 7, 1 / 3), min(steps, 8)))

    def test_pause(self):
        """Asked to make room after 3 steps: a checkpoint there, and a plain end; the next run goes on from it."""
        told, trainer = self.train(self.BATCHES, [7], preempt_after=2, max_steps=7)
        self.assertEqual(trainer.state.global_step, 3)
        self.assertNotIn("completed", [t[0] for t in told])
        uuid, = self.checkpoints()
        os.makedirs(os.path.join(self.top.name, "later", "checkpoint-6"))  # of a run that died before the cluster had it
        told, trainer = self.train(self.BATCHES, [7], latest=uuid, max_steps=7, out="later")
        self.assertTrue(trainer.args.resume_from_checkpoint.endswith("checkpoint-3"))
        self.assertEqual((trainer.state.global_step, told[-1][:2]), (7, ("completed", 7)))
        with self.assertLogs("determined.transformers", "INFO") as log:
            _, trainer = self.train(self.BATCHES, [7], latest=uuid, max_steps=7, out="anew", overwrite_output_dir=True)
        self.assertIn("Skip downloading last checkpoint", "".join(log.output))
        self.assertIsNone(trainer.args.resume_from_checkpoint)

    def test_resumed_at_the_end(self):
        """The run before ended once its last checkpoint was stored, and before it told the searcher."""
        epochs = {"name": "adaptive_asha", "metric": "eval_loss", "max_length": {"epochs": 3}}
        for searcher, length, more, args in ((self.BATCHES, 7, [], {"max_steps": 7}), (epochs, 3, [], {"num_train_epochs": 3}), (epochs, 1, [3], {"num_train_epochs": 3})):
            with self.subTest(length):
                self.train(searcher, [length], out=f"out{length}{more}", **args)
                uuid = max(self.checkpoints(), key=lambda u: os.path.getmtime(os.path.join(self.top.name, "store", u)))
                told, trainer = self.train(searcher, [length, *more], latest=uuid, out=f"later{length}{more}", **args)
                step = length if searcher is self.BATCHES else length * 5
                self.assertEqual(told[0], ("completed", length, 1 / step))
                self.assertEqual([t[1] for t in told if t[0] == "completed"], [length, *more])
                if not more:
                    self.assertEqual((len(told), trainer.state.global_step), (1, step))
                with self.assertRaisesRegex(ValueError, "searcher.metric is 'accuracy'.*eval_loss"):
                    self.train({**searcher, "metric": "accuracy"}, [length], latest=uuid, out=f"wrong{length}{more}", **args)

    def test_too_short(self):
        """The Trainer's own end before the searcher's length is no success; a callback's that stops early is its own affair."""
        with self.assertRaisesRegex(RuntimeError, "training ended at step 5, but the searcher asks for 7 batches"):
            self.train(self.BATCHES, [7], max_steps=5)

        class Stop(TrainerCallback):
            def on_step_end(self, args, state, control, **kwargs):
                control.should_training_stop = control.should_training_stop or state.global_step == 4

        with self.assertLogs("determined.transformers", "WARNING") as log:
            told, _ = self.train(self.BATCHES, [7], max_steps=7, others=[Stop()])
        self.assertIn("training ended at step 4", log.output[-1])
        self.assertEqual([t for t in told if t[0] == "completed"], [])

    def test_two_ranks(self):
        """Of one machine, whose directory both write to: one checkpoint has the files, and rank 0 reports."""
        trial = types.SimpleNamespace(_config={"searcher": self.BATCHES}, trial_id=3)
        info = types.SimpleNamespace(trial=trial, latest_checkpoint=None, task_type="TRIAL")
        arguments = TrainingArguments(os.path.join(self.top.name, "out"), max_steps=7)

        def train(ranks):
            callback = DetCallback(self.context([7] if ranks.rank == 0 else [], distributed=ranks), arguments)
            Trainer(args=arguments, callbacks=[callback]).train()

        with mock.patch.object(det, "get_cluster_info", lambda: info):
            self.assertEqual(on_two_ranks(train), [None, None])
        self.assertEqual([t[:2] for t in self.told], [("training", 7), ("validation", 7), ("completed", 7)])
        self.assertEqual(list(self.checkpoints().values()), [["checkpoint-7", "metadata.json"]])

    def test_complete_already(self):
        told, trainer = self.train(self.BATCHES, [], max_steps=7)
        self.assertEqual((told, self.checkpoints()), ([], {}))
        self.assertLessEqual(trainer.state.global_step, 1)

    def test_metrics(self):
        told, _ = self.train(self.BATCHES, [7], max_steps=7, logging_steps=3, filter_metrics=["loss"])
        self.assertEqual(told[0], ("training", 3, ["loss"]))
        self.assertIn(("validation", 7, ["eval_loss"]), told)
        with self.assertRaisesRegex(ValueError, "searcher.metric is 'accuracy'.*eval_loss"):
            self.train({**self.BATCHES, "metric": "accuracy"}, [7], max_steps=7)
        self.assertEqual(len(self.checkpoints()), 1, "of the first run: what ends by a wrong name stores nothing")
        for logs, kind in (({"eval_x": 1}, "eval_"), ({"test_x": 1}, "test_"), ({"train_runtime": 1}, "train_"), ({"loss": 1, "eval_x": 2}, "train_progress")):
            self.assertEqual(get_metric_type(logs), kind)

    def test_lengths(self):
        for args in ({"max_steps": 8}, {"num_train_epochs": 7}):
            with self.assertLogs("determined.transformers", "WARNING") as log:
                self.train(self.BATCHES, [7], **args)
            self.assertIn("does not match HF Trainer configuration", log.output[0])
        for length in (100, {"records": 100}, None):
            with self.assertRaisesRegex(ValueError, "searcher.max_length"):
                self.train({**self.BATCHES, "max_length": length}, [7], max_steps=7)

    def test_custom(self):
        told, _ = self.train({"name": "custom", "metric": "eval_loss"}, [2, 4], max_steps=7)
        self.assertEqual([t[1] for t in told if t[0] == "completed"], [2, 4])

    def test_without_a_cluster(self):
        arguments = TrainingArguments(os.path.join(self.top.name, "out"), max_steps=4, logging_steps=2)
        with mock.patch.object(det, "get_cluster_info", lambda: None):
            trainer = Trainer(args=arguments, callbacks=[DetCallback(self.context([1]), arguments)])
            trainer.train()
        self.assertEqual([t[:2] for t in self.told], [("training", 2), ("training", 4)])
        self.assertEqual(trainer.state.global_step, 4)

    def test_deepspeed_arguments(self):
        self.assertEqual(get_ds_config_path_from_args(["--x", "--deepspeed", "ds.json"]), "ds.json")
        self.assertEqual(get_ds_config_path_from_args(["--deepspeed=ds.json"]), "ds.json")
        self.assertIsNone(get_ds_config_path_from_args(["--x"]))


if __name__ == "__main__":
    unittest.main()
