"""The cluster from Python (client), and small helpers for trials."""

from typing import Any, Dict, Optional, Type

from determined._absent import absent
from determined.experimental import client
from determined.experimental.client import (
    Checkpoint,
    Determined,
    Experiment,
    ExperimentReference,
    Model,
    ModelSortBy,
    ModelVersion,
    OrderBy,
    Trial,
    TrialReference,
)


_OF_CLIENT = ("ModelOrderBy", "Project", "Session", "TrialOrderBy", "TrialSortBy")


def __getattr__(name: str) -> Any:
    if name in _OF_CLIENT:
        return getattr(client, name)
    if name in ("checkpoint", "metrics", "model"):
        raise absent(f"determined.experimental.{name} is not available in this version: its classes are those of determined.experimental.client")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def test_one_batch(trial_class: Type[Any], config: Optional[Dict[str, Any]] = None) -> Any:
    """Trains one batch, validates one and makes a checkpoint, without a cluster: does the trial work at all?"""
    from determined import pytorch
    from determined.pytorch._mistakes import refuse_old_interface

    refuse_old_interface(trial_class)
    config = config or {}
    with pytorch.init(hparams=config.get("hyperparameters"), exp_conf=config, enable_tensorboard_logging=False) as context:
        trial = trial_class(context)
        pytorch.Trainer(trial, context).fit(max_length=pytorch.Batch(1), test_mode=True)
        return trial


__all__ = [
    "Checkpoint",
    "Determined",
    "Experiment",
    "ExperimentReference",
    "Model",
    "ModelSortBy",
    "ModelVersion",
    "OrderBy",
    "Trial",
    "TrialReference",
    "client",
    "test_one_batch",
]
