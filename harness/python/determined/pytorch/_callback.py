"""Hooks around training, validation and checkpoints."""

from typing import Any, Dict, List, Optional


class PyTorchCallback:
    """Override what is needed. Callbacks run in the order of `build_callbacks()`; `on_trial_shutdown` in reverse.

    The state that `state_dict()` gives is kept in checkpoints under the callback's name and given back to
    `load_state_dict()`.
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: Optional[str]) -> None:
        """First of all, before the data loaders are built."""

    def on_trial_shutdown(self) -> None:
        """Last of all, also after an exception."""

    def on_training_start(self) -> None:
        """After state was restored, before the first batch."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Before the first batch of an epoch."""

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """After the last batch of an epoch."""

    def on_training_workload_end(self, avg_metrics: Dict[str, Any], batch_metrics: List[Dict[str, Any]]) -> None:
        """After training metrics were reported: their averages, and those of each batch."""

    def on_validation_start(self) -> None:
        """Models are in eval mode; no batch was evaluated yet."""

    def on_validation_epoch_start(self) -> None:
        """Before the first batch of a validation; not with `evaluate_full_dataset`."""

    def on_validation_epoch_end(self, outputs: List[Any]) -> None:
        """After the last: what `evaluate_batch` gave on this rank; not with `evaluate_full_dataset`."""

    def on_validation_end(self, metrics: Dict[str, Any]) -> None:
        """The reduced validation metrics, before they are reported."""

    def on_checkpoint_load_start(self, checkpoint: Dict[str, Any]) -> None:
        """The loaded state dictionary, before anything of it is restored."""

    def on_checkpoint_save_start(self, checkpoint: Dict[str, Any]) -> None:
        """The complete state dictionary, before it is written; may be changed. Chief only."""

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Deprecated: use `on_checkpoint_write_end`."""

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """All files are in the directory, before metadata.json and the upload. Chief only."""

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """The checkpoint is stored and reported."""

    def state_dict(self) -> Dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes what `state_dict()` gave."""
