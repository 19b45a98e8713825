"""docs/guides: each script as it is, without a cluster, under stand-ins of what Debian does not have (on one: test_python_layers.py)."""
import contextlib
import glob
import importlib
import json
import logging
import os
import pathlib
import runpy
import sys
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
GUIDES = os.path.join(HERE, "../../docs/guides")
sys.path[:0] = [os.path.join(HERE, "stand_ins"), GUIDES]

import determined as det  # noqa: E402
import mlflow  # noqa: E402
import torch  # noqa: E402
import wandb  # noqa: E402
from determined import core, pytorch  # noqa: E402
from support import store  # noqa: E402


def run(name):
    return runpy.run_path(os.path.join(GUIDES, name), run_name="__main__")


class Guides(unittest.TestCase):
    def test_hf_trainer(self):
        with store() as where, self.assertLogs("determined", "INFO") as log:
            run("hf_trainer.py")
            self.assertFalse(os.path.exists(where))
        self.assertIn("{'loss': 0.01", "".join(log.output).replace('"', "'"))

    def test_lightning(self):
        with self.assertRaisesRegex(NotImplementedError, "det experiment create"):
            run("lightning_metrics.py")

    def test_torchmetrics(self):
        validations = []

        class Seen(pytorch.PyTorchCallback):
            def on_validation_end(self, metrics):
                validations.append(metrics)

        guide = importlib.import_module("torch_metrics")
        torch.manual_seed(1)
        with store(), pytorch.init(hparams={"global_batch_size": 32}) as context:
            trial = guide.Halves(context)
            trial.build_callbacks = lambda: {"seen": Seen()}
            pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(60))
        self.assertGreater(validations[-1]["f1"], 0.9)

    def test_trackers(self):
        with store():
            run("wandb_mlflow.py")
        self.assertEqual(wandb.told[0], ("init", "det", "local", "allow", {"lr": 0.1}))
        self.assertEqual([t[1] for t in wandb.told if t[0] == "log"], [10, 20, 30, 40, 50, 60])
        self.assertEqual([t[2] for t in mlflow.told if t[0] == "log_metrics"], [10, 20, 30, 40, 50, 60])
        self.assertEqual((wandb.told[-1], mlflow.told[-1]), (("finish",), ("end_run",)))

    def test_trackers_paused(self):
        """After its third step; the next run goes on from there, and the trackers know it by the same name."""
        info = types.SimpleNamespace(latest_checkpoint=None, cluster_id="c", trial=types.SimpleNamespace(trial_id=3, hparams={"lr": 0.1}))
        wandb.told.clear()
        with store() as where:
            context = core.init()
            context.searcher._whole = 20
            with mock.patch.object(det, "get_cluster_info", lambda: info), mock.patch.object(core, "init", lambda: context):
                with mock.patch.object(context.preempt, "should_preempt", side_effect=[False, False, True]):
                    run("wandb_mlflow.py")
                self.assertEqual([t[:2] for t in wandb.told], [("init", "det"), ("log", 3), ("finish",)])
                info.latest_checkpoint, = os.listdir(where)
                run("wandb_mlflow.py")
        self.assertEqual([t[:2] for t in wandb.told[3:]], [("init", "det"), ("log", 10), ("log", 20), ("finish",)])
        self.assertEqual([t[2] for t in wandb.told if t[0] == "init"], ["c-trial-3"] * 2)

    def test_plain(self):
        with store() as where:
            run("plain_pytorch.py")
            self.assertEqual(len(os.listdir(where)), 4)

    def test_plain_resumed_at_its_end(self):
        """The run before stored its last checkpoint and ended before it reported."""
        with store() as where:
            run("plain_pytorch.py")
            last = max(os.listdir(where), key=lambda uuid: json.loads(pathlib.Path(where, uuid, "metadata.json").read_text())["steps_completed"])
            info = types.SimpleNamespace(latest_checkpoint=last, trial=types.SimpleNamespace(hparams={}))
            context = core.init()
            with mock.patch.object(det, "get_cluster_info", lambda: info), mock.patch.object(core, "init", lambda: context), \
                    self.assertLogs("determined.core", "INFO") as log:
                run("plain_pytorch.py")
        self.assertRegex(log.output[-1], "operation completed: length 1, metric [0-9.e-]+$")

    def test_short(self):
        for path in glob.glob(GUIDES + "/*.py"):
            with open(path) as f:
                self.assertLessEqual(len(f.readlines()), 65, path)
        with contextlib.suppress(KeyError):
            del sys.modules["torch_metrics"]


if __name__ == "__main__":
    logging.disable(logging.NOTSET)
    unittest.main()
