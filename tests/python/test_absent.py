"""What is not here says so on import, in one sentence; what DeepSpeed's users need beside DeepSpeed is here."""
import importlib
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

from determined import core
from determined.pytorch import deepspeed


class Absent(unittest.TestCase):
    def test_modules(self):
        for name, text in (("determined.keras", "trains PyTorch"), ("determined.estimator", "determined.core"), ("determined.pytorch.lightning", "DetLogger"),
                           ("determined.pytorch.dsat", "overwrite_deepspeed_config"), ("determined.common.api", "determined.experimental.client"),
                           ("determined.common.api.errors", "determined.experimental.client"), ("determined.common.api.bindings", "docs/api.md"),
                           ("determined.common.util", "yaml.safe_load"), ("determined.common.yaml", "PyYAML"), ("determined.common.storage", "download"),
                           ("determined.common.constants", "login")):
            for _ in range(2):
                with self.assertRaisesRegex(ImportError, text) as failed:
                    importlib.import_module(name)
            self.assertNotIn("\n", str(failed.exception))

    def test_libraries(self):
        """A library that is not installed: in one sentence, how it is; what a library itself lacks is told as it is."""
        for module, package in (("determined.transformers", "transformers"), ("determined.lightning.experimental", "lightning")):
            for lacking in (package, "tokenizers"):
                with tempfile.TemporaryDirectory() as top:
                    with open(os.path.join(top, package + ".py"), "w") as f:
                        f.write(f"raise ModuleNotFoundError('no {lacking}', name='{lacking}')")
                    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True,
                                          env={**os.environ, "PYTHONPATH": f"{top}:{os.environ.get('PYTHONPATH', '')}"})
                last = done.stderr.splitlines()[-1]
                said = f"{module} needs the package {package}, which {sys.executable} lacks: python3 -m pip install {package}; "
                self.assertIn(said if lacking == package else "no tokenizers", last)
                self.assertNotIn("During handling", done.stderr)

    def test_client(self):
        """What its users import of it, in this place or in the older one; a sentence where it is not there."""
        for module in ("determined.experimental.client", "determined.experimental", "determined.common.experimental", "determined.common.experimental.trial"):
            with self.assertRaisesRegex(ImportError, "Session is not available in this version: client.login"):
                exec(f"from {module} import Session")
            there = importlib.import_module(module)
            self.assertFalse(hasattr(there, "Session"), module)
            self.assertIsNone(getattr(there, "Session", None))
            with self.assertRaisesRegex(AttributeError, "Session is not available in this version: client.login"):
                there.Session
        with self.assertRaisesRegex(ImportError, "takes the level's name"):
            from determined.common.experimental.trial import LogLevel  # noqa: F401
        with self.assertRaisesRegex(ImportError, "yaml.safe_load"):
            from determined.common import util  # noqa: F401
        from determined.common.experimental.checkpoint import Checkpoint
        from determined.experimental import client
        self.assertIs(Checkpoint, client.Checkpoint)
        self.assertIs(client.TrialOrderBy.ASC, client.OrderBy.ASCENDING)
        sys.modules.pop("determined.common.experimental")
        with self.assertWarnsRegex(FutureWarning, "determined.experimental.client"):
            importlib.import_module("determined.common.experimental")

    def test_methods_of_the_client(self):
        """What an object of the client's has not is told when it is asked for; hasattr() has its answer."""
        from determined.experimental import client

        for kind, names in ((client.Checkpoint, "get_metrics"), (client.ModelVersion, "iter_metrics get_metrics"),
                            (client.Project, "add_note remove_note"), (client.Experiment, "delete_tensorboard_files"),
                            (client.ResourcePool, "add_bindings remove_bindings replace_bindings list_workspaces"),
                            (client.Determined, "add_oauth_client list_oauth_clients remove_oauth_client")):
            one = kind.__new__(kind)
            for name in names.split():
                with self.assertRaisesRegex(AttributeError, f"^{kind.__name__}.{name} is not available in this version: ."):
                    getattr(one, name)
                self.assertFalse(hasattr(one, name))
            with self.assertRaisesRegex(AttributeError, "object has no attribute 'nothing'"):
                one.nothing
        for name in ("checkpoint", "metrics", "model"):
            with self.assertRaisesRegex(ImportError, "determined.experimental.client"):
                exec(f"from determined.experimental import {name}")

    def test_deepspeed_trial(self):
        with self.assertRaisesRegex(ImportError, "determined.launch.deepspeed"):
            from determined.pytorch.deepspeed import DeepSpeedTrial  # noqa: F401
        self.assertFalse(hasattr(deepspeed, "DeepSpeedTrial"))
        with self.assertRaises(AttributeError):
            deepspeed.nothing


class DeepSpeed(unittest.TestCase):
    def test_config(self):
        base = {"optimizer": {"type": "Adam", "params": {"lr": 0.1, "eps": 1}}, "train_batch_size": 8}
        source = {"optimizer": {"params": {"lr": 0.2}}, "train_batch_size": {"x": 1}, "more": [1]}
        expected = {"optimizer": {"type": "Adam", "params": {"lr": 0.2, "eps": 1}}, "train_batch_size": {"x": 1}, "more": [1]}
        was = json.dumps([base, source])
        found = deepspeed.overwrite_deepspeed_config(base, source)
        self.assertEqual(found, expected)
        found["more"].append(2)
        self.assertEqual(json.dumps([base, source]), was)
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "ds.json")
            with open(path, "w") as f:
                json.dump(base, f)
            self.assertEqual(deepspeed.overwrite_deepspeed_config(path, source), expected)
            with open(path, "w") as f:
                f.write('{"a": 1, "a": 2}')
            with self.assertRaisesRegex(ValueError, "duplicate keys.*'a'"):
                deepspeed.overwrite_deepspeed_config(path, {})
        with self.assertRaisesRegex(TypeError, "Expected string or dict for base_ds_config argument."):
            deepspeed.overwrite_deepspeed_config(None, {})

    def test_units(self):
        """A grid of 2 stages, 2 slices and 3 copies, as DeepSpeed's PipelineParallelGrid tells of it (a stand-in of it)."""
        self.assertEqual(deepspeed.make_data_parallel_mpu(core.DummyDistributedContext()), deepspeed.ModelParallelUnit(0, 1, True, True))
        for stage, slice_, loads in ((0, 0, True), (2, 0, True), (1, 0, False), (0, 1, False)):
            grid = types.SimpleNamespace(get_data_parallel_rank=lambda: 1, get_data_parallel_world_size=lambda: 3, get_pipe_parallel_rank=lambda: stage,
                                         get_pipe_parallel_world_size=lambda: 3, get_slice_parallel_rank=lambda: slice_)
            self.assertEqual(deepspeed.make_deepspeed_mpu(grid), deepspeed.ModelParallelUnit(1, 3, True, loads))


if __name__ == "__main__":
    unittest.main()
