"""The interface of a trial."""

import abc
from typing import Any, Dict, Union

import torch

from determined._legacy import LegacyTrial
from determined.pytorch._callback import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._data import DataLoader, TorchData, data_length
from determined.pytorch._reducer import Reducer


class PyTorchTrial(LegacyTrial):
    """A model, its data, and what happens with a batch; the loop does the rest.

    Exactly one of evaluate_batch() and evaluate_full_dataset() must be overridden.
    """

    trial_context_class = PyTorchTrialContext

    @abc.abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """Builds models, optimizers and schedulers, and wraps each with the context."""

    @abc.abstractmethod
    def train_batch(
        self, batch: TorchData, epoch_idx: int, batch_idx: int
    ) -> Union[torch.Tensor, Dict[str, Any]]:
        """Trains on one batch; gives the metrics, or a bare loss."""

    @abc.abstractmethod
    def build_training_data_loader(self) -> DataLoader:
        """The loader of the whole training set; the loop shards it."""

    @abc.abstractmethod
    def build_validation_data_loader(self) -> DataLoader:
        """The loader of the whole validation set."""

    def build_callbacks(self) -> Dict[str, PyTorchCallback]:
        """Callbacks by name; the name is the key of their state in checkpoints."""
        return {}

    def evaluate_batch(self, batch: TorchData, batch_idx: int) -> Dict[str, Any]:
        """The validation metrics of one batch."""
        return {}

    def evaluation_reducer(self) -> Union[Reducer, Dict[str, Reducer]]:
        """How validation metrics are reduced: one reducer for all, or one for each name."""
        return Reducer.AVG

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader) -> Dict[str, Any]:
        """The validation metrics, computed by the chief alone from the whole set."""
        return {}

    def get_batch_length(self, batch: Any) -> int:
        """The number of records in a batch; override it for batches of another shape."""
        return data_length(batch)
