"""Gradients between two updates, which belong to the state of a trial with an aggregation_frequency above 1.

A checkpoint may fall between updates. Without what was summed up so far, different on every rank, a resumed trial would
make its next update of fewer batches than one that was never stopped.
"""

import logging
from typing import Any, Dict, List, Optional

import torch

logger = logging.getLogger("determined.pytorch")

KEY = "accumulated_gradients"


MOST_BYTES = 1 << 29  # of all ranks: each of them holds what is exchanged, twice while it is unpacked


def fits(models: List[torch.nn.Module], ranks: int) -> bool:
    """Whether they are few enough to be exchanged; the same answer on every rank."""
    own = sum(p.numel() * p.element_size() for m in models for p in m.parameters())
    return ranks == 1 or own * ranks <= MOST_BYTES


def of(models: List[torch.nn.Module]) -> List[List[Optional[torch.Tensor]]]:
    """Of every parameter of every model, on the CPU. Copies: a view is pickled with all that it is a view of."""
    return [[None if p.grad is None else p.grad.detach().cpu().clone() for p in m.parameters()] for m in models]


def restore(models: List[torch.nn.Module], saved: Optional[Dict[str, Any]], trial_id: int, rank: int, size: int) -> None:
    """Another trial's (a warm start) are left alone, and so are those of another number of ranks."""
    if saved is None or saved["trial_id"] != trial_id:
        return
    tensors = saved.get("tensors", [])
    if len(tensors) != size:
        logger.warning(
            f"the checkpoint has gradients of {len(tensors)} ranks, this run has {size}: the first update is of fewer batches"
        )
        return
    for model, grads in zip(models, tensors[rank]):
        for p, grad in zip(model.parameters(), grads):
            p.grad = None if grad is None else grad.to(p.device)
