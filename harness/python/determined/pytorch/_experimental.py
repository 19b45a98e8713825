"""context.experimental"""

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


def _scaler(enabled: bool) -> Any:
    """By the name of torch 2.3 and newer, which warn of the older one."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=enabled)
    return torch.cuda.amp.GradScaler(enabled=enabled)


class PyTorchExperimentalContext:
    """Parts of the context whose interface may still change."""

    def __init__(self, parent: "PyTorchTrialContext") -> None:
        self._parent = parent
        self._auto_to_device = True
        self._dataset_checks = True

    def use_amp(self) -> None:
        """Mixed precision in one line: call it before wrap_model()."""
        self._parent.wrap_scaler(_scaler(self._parent.device.type == "cuda"))
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
