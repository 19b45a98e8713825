"""determined.experimental.core_v2, and Lightning's metrics by it: DetLogger under a stand-in of Lightning 2 (stand_ins/lightning)."""
import io
import os
import signal
import sys
import threading
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins"))

import determined as det  # noqa: E402
from determined import core  # noqa: E402
from determined.experimental import _shipping, _unmanaged, core_v2  # noqa: E402
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


class Master:
    """Of the log: keeps what comes, or answers as told."""

    def __init__(self, answers=()):
        self.lines, self.answers, self.said = [], list(answers), []

    def post(self, path, body):
        answer = self.answers.pop(0) if self.answers else None
        if answer:
            raise answer
        self.lines += [(line["stdtype"], line["log"]) for line in body]

    def patch(self, path, body):
        self.post(path, [])
        self.said.append(body)


class Shipping(unittest.TestCase):
    def shipped(self, work, answers=()):
        """What the trial's log has of the work."""
        master, out, err = Master(answers), io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "stdout", out), mock.patch.object(sys, "stderr", err):
            shipper = _shipping.LogShipper(master, "t", 0)
            shipper.start()
            work()
            shipper.end()
            self.assertIs(sys.stdout, out)
        self.seen = out.getvalue(), err.getvalue()
        return master.lines

    def test_lines(self):
        def work():
            print("one\r\ntwo\nhalf", end="")
            for i in range(3):
                print(f"\r{i} %", end="", file=sys.stderr)
            print(" of it")

        lines = self.shipped(work)
        self.assertEqual([t for k, t in lines if k == "stdout"], ["one\n", "two\n", "half of it\n"])
        self.assertEqual([t for k, t in lines if k == "stderr"], ["\n", "0 %\n", "1 %\n", "2 %\n"])
        self.assertEqual(self.seen, ("one\r\ntwo\nhalf of it\n", "\r0 %\r1 %\r2 %"))

    def test_long(self):
        lines = self.shipped(lambda: print("x" * 40000))
        self.assertEqual("".join(t[:-1] for _, t in lines), "x" * 40000)
        self.assertLessEqual(max(len(t) for _, t in lines), _shipping.LINE_MAX + 1)

    def test_master_away(self):
        """A standby's 503 and a cut line are asked again; what is refused is said and left out."""
        from determined.core._session import MasterError
        self.assertEqual(self.shipped(lambda: print("kept"), [MasterError(503, "stands by"), ConnectionError()]), [("stdout", "kept\n")])
        self.assertEqual(self.shipped(lambda: print("never"), [MasterError(400, "no")]), [])
        self.assertIn("log lines were refused", self.seen[1])

    def test_signal_handler_prints(self):
        """In the midst of a print too."""
        def work():
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            try:
                for i in range(3000):
                    print(i)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

        before = signal.signal(signal.SIGALRM, lambda *_: sys.stderr.write("tick\n"))
        try:
            lines = self.shipped(work)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assertEqual([t for k, t in lines if k == "stdout"], [f"{i}\n" for i in range(3000)])

    def test_none(self):
        with mock.patch.object(sys, "stdout", None), mock.patch.object(sys, "stderr", None):
            shipper = _shipping.LogShipper(Master(), "t", 0)
            shipper.start()
            shipper.end()

    def test_the_end_is_told_when_the_master_is_back(self):
        from determined.core._session import MasterError
        master = Master([ConnectionError(), MasterError(503, "stands by")])
        _unmanaged.Heartbeat(master, 7, 2).end("STATE_COMPLETED")
        self.assertEqual(master.said, [{"trialId": 7, "trialRunId": 2, "state": "STATE_COMPLETED"}])
        replaced = Master([MasterError(409, "replaced")] * 2)
        with self.assertLogs("determined.unmanaged", "WARNING"):
            _unmanaged.Heartbeat(replaced, 7, 1).end("STATE_ERROR")
        self.assertEqual((replaced.said, len(replaced.answers)), ([], 1))

    def test_ending(self):
        ending = _unmanaged.Ending()
        ending.start()
        try:
            with self.assertRaises(SystemExit):
                sys.exit(2)
            self.assertTrue(ending.failed)
            thread = threading.Thread(target=lambda: sys.exit(0))  # its own end only
            thread.start()
            thread.join()
            self.assertTrue(ending.failed)
            with self.assertRaises(SystemExit):
                sys.exit()
            self.assertFalse(ending.failed)
        finally:
            ending.end()


if __name__ == "__main__":
    unittest.main()
