"""Experiments with the trial of tests/faults/paced.c, which mostly waits: several clusters fit beside one another."""
import os
import shutil
import tempfile

from cluster import TOP


def create(c, config, pace_ms, **replace):
    """Like Cluster.create(config, "examples/digits", **replace), with a pause in every batch; config is a path or a YAML text."""
    text = open(os.path.join(TOP, config)).read() if config.endswith(".yaml") else config
    text = text.replace("DigitsTrial", "PacedTrial") + f"\nenvironment: {{environment_variables: [PACE_MS={pace_ms}]}}\n"
    digits = os.path.join(TOP, "examples", "digits")
    with tempfile.TemporaryDirectory() as context:
        shutil.copy(os.path.join(digits, "digits.csv.gz"), context)
        shutil.copy(os.path.join(digits, "model_def.c"), os.path.join(context, "digits.c"))
        shutil.copy(os.path.join(TOP, "tests", "faults", "paced.c"), os.path.join(context, "model_def.c"))
        return c.create(text, context, **replace)
