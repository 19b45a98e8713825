"""determined.experimental.core_v2, and Lightning's metrics by it: DetLogger under a stand-in of Lightning 2 (stand_ins/lightning)."""
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins"))

import determined as det  # noqa: E402
from determined import core  # noqa: E402
from determined.experimental import core_v2  # noqa: E402
from determined.lightning.experimental import DetLogger  # noqa: E402
from lightning.pytorch import LightningModule, Trainer  # noqa: E402
from lightning.pytorch.utilities import rank_zero_only  # noqa: E402


class Train(core.DummyTrainContext):
    def __init__(self, told):
        self.told = told

    def report_training_metrics(self, steps_completed, metrics, batch_metrics=None):
        self.told.append(("training", steps_completed, metrics))

    def report_validation_metrics(self, steps_completed, metrics):
        self.told.append(("validation", steps_completed, metrics))


class Model(LightningModule):
    def training_step(self, batch, batch_idx):
        self.log("loss", batch)

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", 2 * batch)


class Singleton(unittest.TestCase):
    def setUp(self):
        """A trial of the cluster; what its contexts say is kept."""
        self.told = []
        self.info = types.SimpleNamespace(task_type="TRIAL", master_url="http://master:8080/", trial=types.SimpleNamespace(experiment_id=7))
        real = core.init()

        def init(**options):
            d = core.DummyDistributedContext()
            return core.Context(real.checkpoint, d, core.DummyPreemptContext(d), Train(self.told), info=self.info)

        for place, name, stub in ((det, "get_cluster_info", lambda: self.info), (core_v2.core, "init", init)):
            patch = mock.patch.object(place, name, stub)
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(core_v2.close)

    def test_variables(self):
        names = ("train", "distributed", "preempt", "checkpoint", "searcher", "info")
        self.assertEqual([getattr(core_v2, n) for n in names], [None] * 6)
        core_v2.init()
        first = core_v2.train
        self.assertNotIn(None, [getattr(core_v2, n) for n in names])
        self.assertEqual(core_v2.url_reverse_webui_exp_view(), "http://master:8080/det/experiments/7")
        core_v2.init(defaults=core_v2.DefaultConfig(name="x"), unmanaged=core_v2.UnmanagedConfig(external_experiment_id="y"))
        self.assertIsNot(core_v2.train, first)
        core_v2.close()
        self.assertEqual([getattr(core_v2, n) for n in names], [None] * 6)
        with core_v2.init_context() as context:
            context.train.report_training_metrics(1, {"loss": 1.0})
        self.assertEqual(self.told, [("training", 1, {"loss": 1.0})])
        with self.assertRaisesRegex(RuntimeError, "init\\(\\) comes first"):
            core_v2.url_reverse_webui_exp_view()

    def test_elsewhere(self):
        self.info = None
        d, u = core_v2.DefaultConfig(name="x"), core_v2.UnmanagedConfig
        for wanted, options in (("either specify `defaults`", {}),
                                ("external_trial_id needs external_experiment_id", {"defaults": d, "unmanaged": u(external_trial_id="t")}),
                                ("external ids are strings", {"defaults": d, "unmanaged": u(external_experiment_id=7)})):
            with self.assertRaisesRegex(NotImplementedError, wanted):
                core_v2.init(**options)
        with self.assertRaisesRegex(ValueError, "name its directory"):
            core_v2.init(defaults=d, checkpoint_storage={"type": "shared_fs", "host_path": "/x"})

    def test_lightning(self):
        """One report for each step and group, though Lightning logs a step in several calls."""
        Trainer(max_epochs=2, logger=DetLogger()).fit(Model(), [3.0, 2.0], [0.5])
        self.assertEqual([t[:2] for t in self.told], [("training", 0), ("training", 1), ("validation", 1), ("training", 2), ("training", 3), ("validation", 3)])
        self.assertEqual(self.told[1][2], {"loss": 2.0, "epoch": 0})
        self.assertEqual(self.told[2][2], {"val_loss": 1.0, "epoch": 0})
        self.assertIsNone(core_v2.train)

    def test_lightning_names(self):
        class Names(Model):
            def training_step(self, batch, batch_idx):
                for name in ("value_loss", "valley", "val", "valid/x", "validation.y", "val-z"):
                    self.log(name, batch)

        Trainer(max_epochs=1, logger=DetLogger()).fit(Names(), [1.0])
        self.assertEqual([(t[0], sorted(t[2])) for t in self.told],
                         [("training", ["epoch", "valley", "value_loss"]), ("validation", ["epoch", "val", "val-z", "valid/x", "validation.y"])])

    def test_lightning_begins_again(self):
        """A second Trainer's steps that the cluster has from the first are left out, and it is said once."""
        core_v2.init()
        Trainer(max_epochs=1, logger=DetLogger()).fit(Model(), [3.0, 2.0], [0.5])
        with self.assertLogs("determined.lightning", "WARNING") as log:
            Trainer(max_epochs=2, logger=DetLogger()).fit(Model(), [1.0, 0.5], [0.5])
        self.assertEqual(len(log.output), 1, log.output)
        self.assertEqual([t[:2] for t in self.told], [("training", 0), ("training", 1), ("validation", 1), ("training", 2), ("training", 3), ("validation", 3)])
        core_v2.close()
        Trainer(max_epochs=1, logger=DetLogger()).fit(Model(), [3.0], [0.5])
        self.assertEqual([t[:2] for t in self.told[6:]], [("training", 0), ("validation", 0)])

    def test_lightning_other_ranks(self):
        logger = DetLogger()
        self.assertEqual((logger.name, logger.version, logger.experiment), ("DetLogger", "0.1", None))
        logger.finalize("success")
        with mock.patch.object(rank_zero_only, "rank", 1):
            Trainer(logger=DetLogger()).fit(Model(), [3.0], [0.5])
        self.assertEqual(self.told, [])


if __name__ == "__main__":
    unittest.main()
