"""Long runs, interrupted runs, runs that end under the feet of those who still look."""
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import torch
from determined import pytorch
from recorder import RecordingTrial
from support import LineTrial, Numbers, fit, store

Batch = pytorch.Batch
HERE = os.path.dirname(os.path.abspath(__file__))


def resident_kib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Flat(unittest.TestCase):
    def test_5000_batches(self):
        """The second half of a long run takes no more memory and leaves no more objects than the first."""
        seen = {}

        class Long(LineTrial):
            def train_batch(self, batch, epoch_idx, batch_idx):
                metrics = super().train_batch(batch, epoch_idx, batch_idx)
                self.seen.clear()
                if batch_idx in (2500, 4999):
                    gc.collect()
                    seen[batch_idx] = (len(gc.get_objects()), resident_kib())
                return {**metrics, "array": metrics["loss"].detach().numpy(), "none": None, "list": [1, 2]}

            def build_callbacks(self):
                class Looks(pytorch.PyTorchCallback):
                    def on_training_workload_end(self, avg_metrics, batch_metrics):
                        assert len(batch_metrics) <= 100

                return {"looks": Looks()}

            def build_training_data_loader(self):
                return pytorch.DataLoader(Numbers(64), batch_size=4, shuffle=True)

        with store():
            fit(Long, Batch(5000), validation_period=Batch(500))
        (objects, resident), (objects_after, resident_after) = seen[2500], seen[4999]
        self.assertLess(objects_after - objects, 100)
        self.assertLess(resident_after - resident, 2000)  # less than a KiB for each batch


class Interrupted(unittest.TestCase):
    SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from determined import pytorch
from support import LineTrial, fit
class Trial(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if batch_idx == 3:
            print("training", flush=True)
        return super().train_batch(batch, epoch_idx, batch_idx)
    def build_callbacks(self):
        class Says(pytorch.PyTorchCallback):
            def on_trial_shutdown(self):
                print("shutdown", flush=True)
        return {"says": Says()}
fit(Trial, pytorch.Batch(10**9))
"""

    def test_ctrl_c(self):
        """As in any Python program: KeyboardInterrupt, with the traceback of where it struck; shutdown hooks run."""
        with tempfile.TemporaryDirectory() as top:
            p = subprocess.Popen([sys.executable, "-c", self.SCRIPT, HERE], env={**os.environ, "XDG_DATA_HOME": top}, cwd=top,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                self.assertEqual(p.stdout.readline(), "training\n")
                p.send_signal(signal.SIGINT)
                out, err = p.communicate(timeout=120)
            finally:
                p.kill()
                p.wait()
        self.assertEqual(out, "shutdown\n")
        self.assertIn("KeyboardInterrupt", err)
        self.assertIn("train_batch" if "train_batch" in err else "_loop.run", err)
        self.assertEqual(p.returncode, -signal.SIGINT)


class Ended(unittest.TestCase):
    def test_loop_refuses(self):
        """What a trial kept of the run says so, where it asked into freed memory before; other threads may ask all the while."""
        kept, errors, asked = [], [], threading.Event()

        class Keeps(LineTrial):
            def build_callbacks(self):
                kept.append(self.context._loop)
                thread.start()
                asked.wait(60)
                return {}

        def ask():
            try:
                while True:
                    kept[0].batch_idx, kept[0].epoch_len, kept[0].is_update_batch
                    asked.set()
            except RuntimeError as e:
                errors.append(str(e))

        thread = threading.Thread(target=ask)
        with store():
            fit(Keeps, Batch(50))
        thread.join(60)
        self.assertEqual(errors, ["the training run has ended"])
        for name in ("batch_idx", "epoch_len", "batches_trained", "is_update_batch", "stop_requested"):
            self.assertRaisesRegex(RuntimeError, "has ended", getattr, kept[0], name)
        with self.assertRaisesRegex(RuntimeError, "has ended"):
            kept[0].stop_requested = True
        with self.assertRaisesRegex(RuntimeError, "has ended"):
            kept[0].step_optimizer(None, None, None, None, None, False)


class Resumed(unittest.TestCase):
    def test_workers_far_ahead(self):
        """Workers that read several epochs ahead: the seeds of the epochs still to be trained are in the checkpoint."""
        class Ahead(RecordingTrial):
            def build_training_data_loader(self):
                return pytorch.DataLoader(Numbers(8), batch_size=4, shuffle=True, num_workers=3, prefetch_factor=5)

        with store():
            whole = fit(Ahead, Batch(9), checkpoint_period=Batch([3]), checkpoint_policy="none")
            second = fit(Ahead, Batch(9), seed=99, latest_checkpoint=whole.recorder.uuids[0], checkpoint_policy="none")
        self.assertEqual(second.seen, whole.seen[3:])
        self.assertTrue(torch.equal(second.model.weight, whole.model.weight))


class Lengths(unittest.TestCase):
    def test_exception(self):
        """get_batch_length() fails in training and in validation: its own exception ends the run."""
        for fails_at in (0, 5):
            class Fails(LineTrial):
                counted = 0

                def get_batch_length(self, batch):
                    Fails.counted += 1
                    if Fails.counted > fails_at:
                        raise ZeroDivisionError("of the length")
                    return 4

            with self.subTest(fails_at), store(), self.assertRaisesRegex(ZeroDivisionError, "of the length"):
                fit(Fails, Batch(6), validation_period=Batch(1))


if __name__ == "__main__":
    unittest.main()
