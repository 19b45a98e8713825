"""Lightning's metrics as the cluster's: DetLogger."""

from determined._absent import needs

with needs("lightning", __name__):
    from determined.lightning.experimental._logger import DetLogger

__all__ = ["DetLogger"]
