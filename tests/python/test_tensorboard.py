"""TensorBoard and torch's profiler: what is written, read by a reader of its own."""
import glob
import json
import os
import sys
import tempfile
import unittest
import warnings

import numpy as np
import torch
from determined import pytorch, tensorboard
from determined.tensorboard.metric_writers.pytorch import TorchWriter
from support import LineTrial, fit, store

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tfevents  # noqa: E402

Batch = pytorch.Batch


def scalars(directory):
    """{tag: {step: value}} of a directory's files, and of those below it as "sub/tag"."""
    found = {}
    for where, event in tfevents.read_dir(directory):
        for v in event.summary.value:
            if v.HasField("simple_value"):
                tag = v.tag if where == "." else f"{where}/{v.tag}"
                found.setdefault(tag, {})[event.step] = v.simple_value
    return found


class Writer(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.top = holder.name

    def values(self):
        return {v.tag: v for _, event in tfevents.read_dir(self.top) for v in event.summary.value}

    def test_everything(self):
        with tensorboard.EventWriter(self.top) as w:
            w.add_scalar("loss", torch.tensor(0.5), 3)
            w.add_scalars("both", {"a/b": 1, "c": np.float32(2)}, 4)
            w.add_histogram("weights", torch.linspace(-1, 1, 11, dtype=torch.float16), 5)
            w.add_image("grey", torch.rand(1, 4, 6), 6)
            w.add_image("colours", np.zeros((4, 6, 3), np.uint8), 6, dataformats="HWC")
            w.add_image("flat", np.ones((4, 6)), 6, dataformats="HW")
            w.add_text("words", "*hello*", 7)
        self.assertEqual(scalars(self.top), {"loss": {3: 0.5}, "both_a_b/both": {4: 1}, "both_c/both": {4: 2}})
        v = self.values()
        self.assertEqual((v["weights"].histo.num, v["weights"].histo.min, v["weights"].histo.max), (11, -1, 1))
        self.assertEqual([(v[n].image.height, v[n].image.width, v[n].image.colorspace) for n in ("grey", "colours", "flat")], [(4, 6, 1), (4, 6, 3), (4, 6, 1)])
        self.assertEqual(v["words/text_summary"].tensor.string_val[0], b"*hello*")

    def test_once(self):
        """A step that is there already, of this writer's directory or of one to remember, is not written again."""
        for value in (1, 2):
            with tensorboard.EventWriter(self.top + "/a") as w:
                w.add_scalar("x", value, 1)
        with tensorboard.EventWriter(self.top + "/b") as w:
            w.remember(self.top + "/a")
            w.add_scalar("x", 3, 1)
            w.add_scalar("x", 4, 2)
        self.assertEqual((scalars(self.top + "/a"), scalars(self.top + "/b")), ({"x": {1: 1}}, {"x": {2: 4}}))

    def test_wrong_values(self):
        w = tensorboard.EventWriter(self.top)
        cases = [(ValueError, lambda: w.add_image("x", torch.zeros(2, 2), 0)), (ValueError, lambda: w.add_image("x", torch.zeros(9, 2, 2), 0)),
                 (ValueError, lambda: w.add_image("x", torch.zeros(0, 2, 1), 0)), (ValueError, lambda: w.add_scalar("x", "much", 0)),
                 (TypeError, lambda: w.add_text("x", 5, 0)), (ValueError, lambda: w.add_scalar("a\0b", 1, 0)), (OverflowError, lambda: w.add_scalar("x", 1, 2**70)),
                 (RuntimeError, lambda: w.add_histogram("x", [], 0)), (TypeError, lambda: tensorboard.EventWriter("x", 1))]
        for error, call in cases:
            self.assertRaises(error, call)
        with self.assertRaisesRegex(RuntimeError, "finite"):  # the first failure stays
            w.add_scalar("x", 1, 0)
        open(self.top + "/file", "w").close()
        with self.assertRaises(RuntimeError):
            tensorboard.EventWriter(self.top + "/file/dir").add_scalar("x", 1, 0)

    def test_torch_writer(self):
        with store(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            w = TorchWriter()
            w.add_scalar("x", 1, 1)
            w.reset()
            w.add_scalar("x", 2, 2)
            w.reset()
            self.assertEqual(scalars(glob.glob("runs/*")[0]), {"x": {1: 1, 2: 2}})


class Logged(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        context.wrap_reducer(len, name="batches", for_validation=False).update(0)

    def evaluate_batch(self, batch, batch_idx):
        return {"error": 2.0, "validation_error": 3.0}


class Training(unittest.TestCase):
    def test_metrics(self):
        """Each batch's metrics at its own step, reducers' at the end, validation's by their names."""
        with store():
            fit(Logged, Batch(5), reporting_period=Batch(2))
            found = scalars(glob.glob("runs/*")[0])
        self.assertEqual(sorted(found), ["Determined/batches", "Determined/loss", "Determined/val_error", "Determined/validation_error"])
        self.assertEqual([sorted(found["Determined/" + n]) for n in ("loss", "batches", "val_error")], [[0, 1, 2, 3, 4], [2, 4, 5], [5]])
        self.assertEqual(found["Determined/validation_error"], {5: 3})

    def test_off(self):
        class Off(LineTrial):
            def __init__(self, context):
                super().__init__(context)
                context.set_enable_tensorboard_logging(False)

        with store():
            fit(Off, Batch(2))
            self.assertFalse(os.path.exists("runs"))

    def test_nowhere(self):
        """Where nothing can be written, training goes on."""
        with store(), self.assertLogs("determined.pytorch", "WARNING") as logs:
            open("runs", "w").close()
            self.assertEqual(len(fit(LineTrial, Batch(4), reporting_period=Batch(1)).seen), 4)
        self.assertEqual(len([line for line in logs.output if "TensorBoard" in line]), 1)


class Profiled(LineTrial):
    options = {}

    def __init__(self, context):
        super().__init__(context)
        context.set_profiler(activities=[torch.profiler.ProfilerActivity.CPU], **self.options)


def traces(directory):
    """The name and the ProfilerSteps of each trace, by these."""
    found = []
    for path in glob.glob(directory + "/*.pt.trace.json"):
        with open(path) as f:
            trace = json.load(f)  # a torch without kineto, as Debian's, writes the bare list
        spans = [e for e in (trace if isinstance(trace, list) else trace["traceEvents"]) if e.get("ph") == "X"]
        assert any("addmm" in e["name"] for e in spans), path
        found.append((os.path.basename(path), {e["name"] for e in spans if e["name"].startswith("ProfilerStep")}))
    return sorted(found, key=lambda x: min(x[1], default=""))


class Profiler(unittest.TestCase):
    def test_schedule(self):
        """Its steps are batches; each round is one trace, named by host and rank; the end of training ends the last one."""
        class Trial(Profiled):
            options = {"schedule": torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=2)}

        with store():
            fit(Trial, Batch(9))
            first, second = traces("runs")
        for found, round_of in ((first[1], range(1, 5)), (second[1], range(6, 10))):  # without kineto with the warm-up, with it to the end
            self.assertLessEqual(found, {f"ProfilerStep#{i}" for i in round_of})
            self.assertGreater(len(found), 1)
        self.assertRegex(first[0], r"#0\.\d+\.pt\.trace\.json$")

    def test_no_schedule(self):
        """Every batch is a trace of its own."""
        with store():
            fit(Profiled, Batch(2))
            self.assertEqual(len(traces("runs")), 2)


if __name__ == "__main__":
    unittest.main()
