"""Experiments with the trial of tests/faults/paced.c, which mostly waits: several clusters fit beside one another."""
import json
import os
import shutil
import tempfile
from collections import Counter

from cluster import TOP


def starts(c):
    """Allocation -> how often a trial's program began under it, of all experiments of the cluster."""
    with open(c.path("starts")) as f:
        return Counter(line.split()[0] for line in f)


class Holds:
    """Batches at which the trials wait, so that what shall strike there does, however fast they are."""

    def __init__(self, c):
        self.folder = tempfile.mkdtemp(dir=c.dir)
        os.chmod(self.folder, 0o755)

    def hold(self, *batches):
        for n in batches:
            open(os.path.join(self.folder, str(n)), "w").close()

    def release(self, batch):
        os.unlink(os.path.join(self.folder, str(batch)))


def create(c, config, pace_ms, holds=None, **replace):
    """Like Cluster.create(config, "examples/digits", **replace), with a pause in every batch; config is a path, a YAML text or a dict."""
    if isinstance(config, dict):
        config = "\n".join(f"{k}: {json.dumps(v)}" for k, v in config.items())
    text = open(os.path.join(TOP, config)).read() if config.endswith(".yaml") else config
    noted = c.path("starts")
    if not os.path.exists(noted):
        with open(noted, "w"):
            os.chmod(noted, 0o666)  # for whichever account the tasks have
    held = f", PACE_HOLD={holds.folder}" if holds else ""
    text = text.replace("DigitsTrial", "PacedTrial") + f"\nenvironment: {{environment_variables: [PACE_MS={pace_ms}, PACE_STARTS={noted}{held}]}}\n"
    digits = os.path.join(TOP, "examples", "digits")
    with tempfile.TemporaryDirectory() as context:
        shutil.copy(os.path.join(digits, "digits.csv.gz"), context)
        shutil.copy(os.path.join(digits, "model_def.c"), os.path.join(context, "digits.c"))
        shutil.copy(os.path.join(TOP, "tests", "faults", "paced.c"), os.path.join(context, "model_def.c"))
        return c.create(text, context, **replace)
