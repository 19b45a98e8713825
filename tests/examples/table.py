"""Every directory of examples/, one entry each: how the tests run it, and what it must learn.

An entry is added here and its name in meson.build. Where an example needs data, `data` is a function that makes or
finds it beneath the given directory and returns the --set arguments that point there, or None where it cannot be had.
"""
import glob
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Callable, Optional

from cluster import TOP


@dataclass
class Example:
    entry: str  # the class of model_def.c
    metric: str  # the searcher's
    goal: float  # which tests/run --long must see reached ...
    config: str = "const.yaml"
    larger: bool = True  # ... or undercut
    quick: list = field(default_factory=list)  # --set arguments that make a few batches quick
    long: list = field(default_factory=list)  # --set arguments of the run to the goal
    minutes: int = 5  # that run's limit
    threads: int = 2  # and its threads: small layers are quicker with one
    data: Optional[Callable] = None


def mnist(scratch):
    path = os.path.join(TOP, "..", "shared", "data", "mnist")
    return ["data.path=" + path] if os.path.isdir(path) else None


def made(name, records):
    """What the example's own make_data.py writes; few records unless the run is to the goal."""
    def make(scratch):
        few = [] if os.environ.get("DET_TEST_LONG") else [str(records)]
        subprocess.run([sys.executable, f"{TOP}/examples/{name}/make_data.py", scratch + "/data", *few], check=True)
        return [f"data.path={scratch}/data", "data.workers=2"]
    return make


def of_text(name):
    """What the example's make_data.py makes of this project's own documents."""
    def make(scratch):
        texts = sorted(glob.glob(TOP + "/docs/*.md")) if os.environ.get("DET_TEST_LONG") else [TOP + "/docs/trial-api.md"]
        subprocess.run([sys.executable, f"{TOP}/examples/{name}/make_data.py", scratch + "/data", *texts], check=True)
        return [f"data.path={scratch}/data"]
    return make


EXAMPLES = {
    "callbacks": Example("SineTrial", "validation_loss", 0.03, larger=False),
    "cifar10": Example("CifarTrial", "accuracy", 0.8, data=made("cifar10", 100), minutes=20, quick=["hyperparameters.global_batch_size=8"],
                       long=["hyperparameters.global_batch_size=32", "hyperparameters.max_lr=0.05", "hyperparameters.epochs=6",
                             "searcher.max_length={epochs: 6}"]),
    "custom_reducers": Example("SpiralsTrial", "f1_mean", 0.95),
    "digits": Example("DigitsTrial", "accuracy", 0.95),
    "first": Example("SineTrial", "validation_loss", 0.01, larger=False),
    "gpt2": Example("Gpt2Trial", "validation_loss", 2.8, larger=False, minutes=15, threads=1, data=of_text("gpt2"),
                    quick=["hyperparameters.global_batch_size=4", "hyperparameters.layers=2", "hyperparameters.width=32"]),
    "imagenet": Example("ImageNetTrial", "accuracy", 0.9, data=made("imagenet", 32), minutes=20,
                        quick=["hyperparameters.global_batch_size=8", "hyperparameters.image_size=64"],
                        long=["hyperparameters.global_batch_size=16", "hyperparameters.image_size=64", "hyperparameters.learning_rate=0.02",
                              "searcher.max_length={epochs: 5}"]),
    "gan_mnist": Example("GanTrial", "mean_image_error", 0.05, larger=False, threads=1, data=mnist),
    "mnist": Example("MNistTrial", "accuracy", 0.97, data=mnist),
    "word_language_model": Example("WordModelTrial", "validation_loss", 5.4, larger=False, minutes=15, threads=1, data=of_text("word_language_model"),
                                   quick=["hyperparameters.global_batch_size=4", "hyperparameters.width=16"]),
}
