"""Random numbers that a dataset draws from generators of its own: found, kept and restored like the global ones."""

import random
from typing import Any, Iterator, List

import numpy as np
import torch
import torch.utils.data

_KINDS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
DEPTH_MAX = 4  # of a transform in a composition in a subset of a dataset
PARTS_MAX = 64  # of a list: longer ones hold records


def _parts(of: Any) -> Iterator[Any]:
    """What a dataset is made of: other datasets, and transforms, which can be called."""
    if isinstance(of, dict):
        of = list(of.values())
    if isinstance(of, (list, tuple)):
        yield from of if len(of) <= PARTS_MAX else ()
    elif isinstance(of, torch.utils.data.Dataset) or callable(of):
        if not isinstance(of, type):
            yield from getattr(of, "__dict__", {}).values()


def find(root: Any, depth: int = 0) -> List[Any]:
    """In an order that follows from how the dataset was made; one that two parts share comes once."""
    if isinstance(root, _KINDS):
        return [] if isinstance(root, random.SystemRandom) else [root]
    if depth > DEPTH_MAX:
        return []
    found: List[Any] = []
    for part in _parts(root):
        found += [g for g in find(part, depth + 1) if all(g is not known for known in found)]
    return found


def state(of: Any) -> Any:
    if isinstance(of, random.Random):
        return of.getstate()
    return of.bit_generator.state if isinstance(of, np.random.Generator) else of.get_state()


def restore(of: Any, saved: Any) -> None:
    if isinstance(of, random.Random):
        of.setstate(saved)
    elif isinstance(of, np.random.Generator):
        of.bit_generator.state = saved
    else:
        of.set_state(saved)


def seed(of: Any, value: int) -> None:
    if isinstance(of, random.Random):
        of.seed(value)
    elif isinstance(of, torch.Generator):
        of.manual_seed(value)
    elif isinstance(of, np.random.Generator):
        of.bit_generator.state = type(of.bit_generator)(value).state  # type: ignore
    else:
        of.seed(value)
