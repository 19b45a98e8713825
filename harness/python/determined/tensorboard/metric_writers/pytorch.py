"""TorchWriter, which older trials make."""

import warnings
from typing import Any

import determined as det
from determined.core._tensorboard import tensorboard_path
from determined.tensorboard import open_writer


class TorchWriter:
    """Deprecated: use context.get_tensorboard_writer()."""

    def __init__(self) -> None:
        warnings.warn("TorchWriter is deprecated: use context.get_tensorboard_writer()", FutureWarning)
        info = det.get_cluster_info()
        path = tensorboard_path(info.trial._config.get("checkpoint_storage")) if info and info.task_type == "TRIAL" else None
        self.writer = open_writer(path)

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        self.writer.add_scalar(name, value, step)

    def reset(self) -> None:
        """The next value goes to a new file."""
        self.writer.close()
