"""Every directory of examples/, one entry each: how the tests run it, and what it must learn.

An entry is added here and its name in meson.build. Where an example needs data, `data` is a function that makes or
finds it beneath the given directory and returns the --set arguments that point there, or None where it cannot be had.
"""
import os
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
    data: Optional[Callable] = None


def mnist(scratch):
    path = os.path.join(TOP, "..", "shared", "data", "mnist")
    return ["data.path=" + path] if os.path.isdir(path) else None


EXAMPLES = {
    "callbacks": Example("SineTrial", "validation_loss", 0.03, larger=False),
    "custom_reducers": Example("SpiralsTrial", "f1_mean", 0.95),
    "digits": Example("DigitsTrial", "accuracy", 0.95),
    "mnist": Example("MNistTrial", "accuracy", 0.97, data=mnist),
}
