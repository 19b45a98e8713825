"""det-harness on its own, without a cluster.

    with Scratch() as s:
        out = s.run("model_def:DigitsTrial", "examples/digits", config="const.yaml")
        s.state(out.checkpoints[-1])
"""
import hashlib
import os
import shutil
import subprocess
import tempfile

from cluster import BIN, TOP


class Output:
    """What a run printed: metrics by step, checkpoints in order."""

    def __init__(self, p):
        self.code, self.text, self.err = p.returncode, p.stdout, p.stderr
        self.training, self.validation, self.checkpoints = {}, {}, []
        for line in p.stdout.splitlines():
            words = line.split()
            if len(words) < 3 or not words[1].isdigit():  # what the trial itself says
                continue
            if words[0] == "checkpoint":
                self.checkpoints.append(words[2])
            elif words[0] in ("batches", "validation"):
                values = {k: float(v) for k, v in zip(words[2::2], words[3::2])}
                (self.training if words[0] == "batches" else self.validation)[int(words[1])] = values

    def best(self, metric):
        return max(v[metric] for v in self.validation.values())


class Scratch:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="det-harness-")
        self.checkpoints = os.path.join(self.dir, "checkpoints")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir)

    def env(self, **more):
        env = {**os.environ, "DET_CACHE_DIR": os.path.join(self.dir, "cache"), "DET_THREADS_PER_SLOT": "1", **more}
        return {k: v for k, v in env.items() if v is not None}

    def command(self, entrypoint, config=None, sets=(), args=()):
        cmd = [os.path.join(BIN, "det-harness"), "run", entrypoint, "--checkpoint-dir", self.checkpoints, *args]
        if config:
            cmd += ["--config", config]
        for s in sets:
            cmd += ["--set", s]
        return cmd

    def run(self, entrypoint, where, config=None, sets=(), args=(), env=None, ok=True, timeout=300):
        p = subprocess.run(self.command(entrypoint, config, sets, args), cwd=os.path.join(TOP, where), text=True,
                           capture_output=True, env=self.env(**(env or {})), timeout=timeout, errors="replace")
        if ok and p.returncode != 0:
            raise AssertionError(f"det-harness: exit {p.returncode}\n{p.stdout}{p.stderr}")
        return Output(p)

    def path(self, uuid, *name):
        return os.path.join(self.checkpoints, uuid, *name)

    def sha(self, uuid, name="state_dict.pth"):
        with open(self.path(uuid, name), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
