"""Lightning's metrics as the cluster's: DetLogger."""

from determined.lightning.experimental._logger import DetLogger

__all__ = ["DetLogger"]
