"""context.experimental"""

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


class PyTorchExperimentalContext:
    """Parts of the context whose interface may still change."""

    def __init__(self, parent: "PyTorchTrialContext") -> None:
        self._parent = parent
        self._auto_to_device = True
        self._dataset_checks = True

    def use_amp(self) -> None:
        """Mixed precision in one line: call it before wrap_model()."""
        self._parent.wrap_scaler(torch.cuda.amp.GradScaler(enabled=self._parent.device.type == "cuda"))
        self._parent._use_amp = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Loaders that are no determined.pytorch.DataLoader are used as they are."""
        self._dataset_checks = False

    def disable_auto_to_device(self) -> None:
        """Batches reach train_batch() and evaluate_batch() where the loader left them."""
        self._auto_to_device = False

    def wrap_reducer(self, *args: Any, **kwargs: Any) -> Any:
        """The older place of context.wrap_reducer()."""
        return self._parent.wrap_reducer(*args, **kwargs)
