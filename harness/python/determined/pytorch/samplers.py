"""Samplers that repeat, shard, skip and shuffle, so that a trial finds its place in the data again.

Each wraps a sampler (of indices) or a batch sampler (of lists of indices). Apply them in the order shuffle, repeat,
shard, skip, as `DataLoader` does.
"""

import itertools
from typing import Any, Iterator, List, Sized, TypeVar

import numpy as np
import torch.utils.data

T = TypeVar("T")


def _shard_length(length: int, shards: int, rank: int) -> int:
    return length // shards + (1 if length % shards > rank else 0)


class RepeatSampler(torch.utils.data.Sampler):
    """The inner sampler again and again, without end. Its length is one pass."""

    def __init__(self, sampler: torch.utils.data.Sampler) -> None:
        self._sampler = sampler

    def __len__(self) -> int:
        return len(self._sampler)  # type: ignore

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self._sampler


class RepeatBatchSampler(RepeatSampler):
    """RepeatSampler for batches."""

    def __init__(self, batch_sampler: torch.utils.data.Sampler) -> None:
        super().__init__(batch_sampler)


class DistributedSampler(torch.utils.data.Sampler):
    """Deals the inner sampler's items to the workers in turn; the dealing goes on across repeats."""

    def __init__(self, sampler: torch.utils.data.Sampler, num_workers: int, rank: int) -> None:
        self._sampler, self._num_workers, self._rank = sampler, num_workers, rank

    def __len__(self) -> int:
        return _shard_length(len(self._sampler), self._num_workers, self._rank)  # type: ignore

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._sampler), self._rank, None, self._num_workers)


class DistributedBatchSampler(DistributedSampler):
    """DistributedSampler for batches: the unit that is dealt is the batch."""

    def __init__(self, batch_sampler: torch.utils.data.BatchSampler, num_workers: int, rank: int) -> None:
        if rank < 0:
            raise ValueError(f"rank must be non-negative, not {rank}")
        if num_workers < 1:
            raise ValueError(f"num_workers must be positive, not {num_workers}")
        if rank >= num_workers:
            raise ValueError(f"rank must be below num_workers, but {rank} >= {num_workers}")
        super().__init__(batch_sampler, num_workers, rank)


class SkipSampler(torch.utils.data.Sampler):
    """The inner sampler without its first `skip` items. Its length is the inner one's."""

    def __init__(self, sampler: torch.utils.data.Sampler, skip: int) -> None:
        self._sampler, self._skip = sampler, skip

    def __len__(self) -> int:
        return len(self._sampler)  # type: ignore

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._sampler), self._skip, None)


class SkipBatchSampler(SkipSampler):
    """SkipSampler for batches."""

    def __init__(self, batch_sampler: torch.utils.data.Sampler, skip: int) -> None:
        super().__init__(batch_sampler, skip)


class ReproducibleShuffleSampler(torch.utils.data.Sampler):
    """The inner sampler's items in an order that follows from the seed and the number of passes made."""

    def __init__(self, sampler: torch.utils.data.Sampler, seed: int) -> None:
        self._sampler, self._seed = sampler, seed
        self._rng = np.random.RandomState(seed)

    def __len__(self) -> int:
        return len(self._sampler)  # type: ignore

    def __iter__(self) -> Iterator[Any]:
        items: List[Any] = list(self._sampler)
        self._rng.shuffle(items)
        return iter(items)


class ReproducibleShuffleBatchSampler(ReproducibleShuffleSampler):
    """ReproducibleShuffleSampler for batches: whole batches change places, their contents stay."""

    def __init__(self, batch_sampler: torch.utils.data.Sampler, seed: int) -> None:
        super().__init__(batch_sampler, seed)
