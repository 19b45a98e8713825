"""Gradients of several ranks: laid out the same way in every batch, the first of a run included."""

from typing import Set

import torch


def settle(model: torch.nn.parallel.DistributedDataParallel) -> None:
    """By all ranks at once, before the first batch; gradients are as before.

    DistributedDataParallel sums gradients in buckets, and fills these anew after its first backward pass, in the order in
    which gradients came. Where more than two ranks add up, the order of a number's terms depends on its place in its
    bucket: the first batch after a resume, alone, would be rounded otherwise than in a run that went on. So the first
    backward pass is one of zeros, which leads from each parameter to its gradient, in the same order always.
    """
    parameters = [p for p in model.module.parameters() if p.requires_grad]
    if any(_is_watched(p) for p in parameters):
        return
    kept, sparse = [p.grad for p in parameters], _sparse(model.module)
    for p in parameters:
        p.grad = None
    with torch.enable_grad():
        model.reducer.prepare_for_backward([])
        total = torch.zeros(())
        for p in parameters:
            total = total + _nothing(p, id(p) in sparse)
        total.backward()
    for p, gradient in zip(parameters, kept):
        p.grad = gradient


def _is_watched(parameter: torch.Tensor) -> bool:
    """Has it a hook of the user's, which would hear of gradients that are none?"""
    return bool(parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None))


def _sparse(module: torch.nn.Module) -> Set[int]:
    tables = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    return {id(m.weight) for m in module.modules() if isinstance(m, tables) and m.sparse}


def _nothing(parameter: torch.Tensor, sparse: bool) -> torch.Tensor:
    """Zero, of which the parameter's gradient is zeros of the kind that its batches give."""
    if sparse:
        row = torch.zeros(1, dtype=torch.long, device=parameter.device)
        parameter = torch.nn.functional.embedding(row, parameter, sparse=True)
    return (parameter * 0).sum().real.float()
