"""Batch processing: a data set through a model on all slots of a trial, with checkpoints and pauses."""

from determined.pytorch.experimental._context import TorchBatchProcessorContext, get_default_device
from determined.pytorch.experimental._torch_batch_process import TorchBatchProcessor, torch_batch_process

__all__ = ["TorchBatchProcessor", "TorchBatchProcessorContext", "get_default_device", "torch_batch_process"]
