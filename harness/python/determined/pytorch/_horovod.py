"""Gradients averaged by Horovod, where it started the ranks; elsewhere torch.distributed does it."""

import importlib
import os
from typing import Any, Callable, List, Sequence

import torch


def in_use(size: int) -> Any:
    """horovod.torch, or None."""
    return importlib.import_module("horovod.torch") if size > 1 and os.environ.get("USE_HOROVOD") else None


def wrap_optimizer(hvd: Any, optimizer: Any, models: Sequence[torch.nn.Module], passes: int, fp16: bool) -> Any:
    """An optimizer whose gradients are averaged over the ranks, after so many backward passes."""
    mine = {id(p) for group in optimizer.param_groups for p in group["params"]}
    named = [(f"{i}.{name}", p) for i, m in enumerate(models) for name, p in m.named_parameters() if id(p) in mine]
    return hvd.DistributedOptimizer(
        optimizer,
        named_parameters=named,
        backward_passes_per_step=passes,
        compression=hvd.Compression.fp16 if fp16 else hvd.Compression.none,
    )


def without_synchronizing(optimizer: Any, step: Callable[[], Any]) -> Callable[[], None]:
    """The step, after synchronize() was called by itself: gradients are clipped in between."""

    def run() -> None:
        with optimizer.skip_synchronize():
            step()

    return run


def broadcast(hvd: Any, models: List[torch.nn.Module], optimizers: List[Any]) -> None:
    """Rank 0's models and optimizers, to all."""
    for model in models:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    for optimizer in optimizers:
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
