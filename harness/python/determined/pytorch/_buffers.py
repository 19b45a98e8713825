"""Buffers of models on several ranks, running statistics above all: a validation uses rank 0's, on every rank."""

from typing import List

import torch


def share(models: List[torch.nn.parallel.DistributedDataParallel]) -> None:
    """By all ranks at once, at the start of a validation. No forward pass of it then exchanges anything.

    DistributedDataParallel itself would do so in the first forward pass of each rank, and wait for the others for ever
    where one of them has none: with fewer batches than ranks, or in evaluate_full_dataset(). What it was told to ignore
    stays each rank's own here too.
    """
    for model in models:
        for name, buffer in model.module.named_buffers() if model.broadcast_buffers else ():
            if name in model.parameters_to_ignore:
                continue
            whole = buffer.detach().contiguous()
            torch.distributed.broadcast(whole, 0)
            if whole.data_ptr() != buffer.data_ptr():
                buffer.copy_(whole)
        model.require_forward_param_sync = False
