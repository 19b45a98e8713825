"""Data loaders that a trial can be resumed in the middle of, and batches."""

import itertools
import logging
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Union

import numpy as np
import torch
import torch.utils.data
from torch.utils.data import BatchSampler, RandomSampler, Sampler, SequentialSampler

from determined.pytorch import _generators, _workers, samplers
from determined.pytorch._own_passes import OwnPasses
from determined.pytorch._passes import Passes, resumable

logger = logging.getLogger("determined.pytorch")

#: A batch: a tensor, or tensors by name or in order.
TorchData = Union[Dict[str, torch.Tensor], Sequence[torch.Tensor], torch.Tensor]

_Worker_init_fn = Optional[Callable[[int], None]]


class DataLoader:
    """torch.utils.data.DataLoader's arguments; the loop makes the loader, sharded and at the right place."""

    def __init__(
        self,
        dataset: torch.utils.data.Dataset,
        batch_size: Optional[int] = 1,
        shuffle: bool = False,
        sampler: Optional[Sampler] = None,
        batch_sampler: Optional[BatchSampler] = None,
        num_workers: int = 0,
        collate_fn: Optional[Callable[[List[Any]], Any]] = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: _Worker_init_fn = None,
        multiprocessing_context: Any = None,
        generator: Optional[torch.Generator] = None,
        *,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = False,
    ) -> None:
        _check_loader(dataset, num_workers, timeout, prefetch_factor, persistent_workers)
        _check_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is None:
            if sampler is None:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)  # type: ignore
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn if collate_fn is not None else torch.utils.data.dataloader.default_collate
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers

    def get_data_loader(
        self, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
    ) -> torch.utils.data.DataLoader:
        """torch's own loader over the adapted batch sampler."""
        return self._over(adapt_batch_sampler(self.batch_sampler, repeat, skip, num_replicas, rank))

    def _over(self, batches: Any) -> torch.utils.data.DataLoader:
        options: Dict[str, Any] = {}
        if self.prefetch_factor is not None:
            options["prefetch_factor"] = self.prefetch_factor
        return torch.utils.data.DataLoader(
            self.dataset,
            batch_sampler=batches,
            num_workers=self.num_workers,
            collate_fn=self.collate_fn,
            pin_memory=self.pin_memory,
            timeout=self.timeout,
            worker_init_fn=self.worker_init_fn,
            multiprocessing_context=self.multiprocessing_context,
            generator=self.generator,
            persistent_workers=self.persistent_workers,
            **options,
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get_data_loader())

    def __len__(self) -> int:
        return len(self.batch_sampler)


def _check_loader(
    dataset: Any, num_workers: int, timeout: float, prefetch_factor: Optional[int], persistent_workers: bool
) -> None:
    if isinstance(dataset, type):
        name = dataset.__name__
        raise TypeError(f"determined.pytorch.DataLoader takes a dataset, not the class {name}: make one by {name}(...)")
    if isinstance(dataset, torch.utils.data.IterableDataset):
        raise ValueError(
            "determined.pytorch.DataLoader does not take an IterableDataset: its records have no numbers, so the loop "
            "could neither shard nor resume it. Give it a Dataset with __getitem__ and __len__."
        )
    if num_workers < 0:
        raise ValueError(f"num_workers must be non-negative, not {num_workers}")
    if timeout < 0:
        raise ValueError(f"timeout must be non-negative, not {timeout}")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError(f"prefetch_factor must be non-negative, not {prefetch_factor}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor needs num_workers > 0")
    if num_workers == 0 and persistent_workers:
        raise ValueError("persistent_workers needs num_workers > 0")


def _check_order(
    batch_size: Optional[int],
    shuffle: bool,
    sampler: Optional[Sampler],
    batch_sampler: Optional[BatchSampler],
    drop_last: bool,
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler excludes shuffle: shuffle in the sampler")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
    elif batch_size is None:
        if shuffle or drop_last:
            raise ValueError("batch_size=None excludes shuffle and drop_last")
        raise ValueError("batch_size=None needs a batch_sampler")


def adapt_batch_sampler(
    batch_sampler: BatchSampler, repeat: bool = False, skip: int = 0, num_replicas: int = 1, rank: int = 0
) -> BatchSampler:
    """Repeats, then shards over ranks, then skips: the order in which these commute with resuming."""
    adapted: Any = batch_sampler
    if repeat:
        adapted = samplers.RepeatBatchSampler(adapted)
    if num_replicas > 1:
        adapted = samplers.DistributedBatchSampler(adapted, num_replicas, rank)
    if skip > 0:
        adapted = samplers.SkipBatchSampler(adapted, skip)
    return adapted  # type: ignore


def data_length(data: Any) -> int:
    """The number of records in a batch."""
    if isinstance(data, (np.ndarray, torch.Tensor)):
        return len(data)
    if isinstance(data, (dict, list, tuple)):
        if not data:
            raise ValueError("data_length: the batch is empty; override get_batch_length() to count its records")
        return len(next(iter(data.values())) if isinstance(data, dict) else data[0])
    raise TypeError(
        f"data_length: a batch of type {type(data).__name__} cannot be counted; override get_batch_length()"
    )


def to_device(data: Any, device: Any, warned_types: Optional[Set[type]] = None) -> Any:
    """The batch with every tensor, and every array of numbers as a tensor, on the device."""
    warned_types = set() if warned_types is None else warned_types
    if isinstance(data, torch.Tensor):
        return data.to(device)
    if isinstance(data, dict):
        return {k: to_device(v, device, warned_types) for k, v in data.items()}
    if isinstance(data, list):
        return [to_device(v, device, warned_types) for v in data]
    if isinstance(data, tuple):
        return tuple(to_device(v, device, warned_types) for v in data)
    if isinstance(data, np.ndarray) and data.dtype.kind in "fciub":
        return torch.from_numpy(data).to(device)
    if callable(getattr(data, "to", None)):
        return data.to(device)
    if type(data) not in warned_types:
        logger.warning(f"not able to move data of type {type(data).__name__} to {device}: it stays where it is")
        warned_types.add(type(data))
    return data


class Feed:
    """A loader as the loop asks of it: its length, a start at a place, the next batch."""

    def __init__(self, loader: Any, move: Callable[[Any], Any], initial: int = 0) -> None:
        self._loader = loader
        self._initial = initial  # the batch at which the trial's own loaders start
        self._move = move
        self._iterator: Optional[Iterator[Any]] = None
        self._restored: Optional[Dict[str, Any]] = None
        # Of this feed alone: a validation with the loader of training does not disturb its passes.
        self._batch_sampler: Any = None
        self._passes: Union[Passes, OwnPasses, None] = None
        if isinstance(loader, DataLoader):
            self._batch_sampler, self._passes = resumable(loader.batch_sampler)
        self._worker_seed: Optional[int] = None  # of the whole training, resumed or not; None: torch's, when it starts
        self.order_seed: Optional[int] = None  # of several ranks, which deal out one order
        try:
            self.batches: Optional[int] = len(loader)
        except TypeError:
            self.batches = None

    def start(self, repeat: bool, size: int, rank: int, skip: int) -> None:
        restored, rng = self._restored, torch.get_rng_state()
        if self._passes is not None:
            first = skip * size // self.batches if repeat and self.batches else 0
            ahead = self._loader.num_workers * (self._loader.prefetch_factor or 2) * size
            kept = 4 + ahead // max(self.batches or 1, 1)
            states = (restored or {}).get("passes", {})
            if isinstance(self._passes, Passes):
                self._passes.start(first, kept, states, self.order_seed)
            else:
                self._passes.start(first, kept, states, skip * size)
        if isinstance(self._loader, DataLoader):
            self._iterator = iter(self._loader._over(self._batches(repeat, size, rank, skip)))
        else:
            self._iterator = self._foreign(repeat, skip)
        if restored is not None:  # what making the iterator drew was drawn already when the trial first started
            torch.set_rng_state(rng)
            self.set_generators(restored.get("generators", []))
            self.set_dataset_generators(restored.get("dataset", []))
        self._restored = None

    def _batches(self, repeat: bool, size: int, rank: int, skip: int) -> Any:
        batches = adapt_batch_sampler(self._batch_sampler, repeat, skip, size, rank)
        if not repeat or self._loader.num_workers == 0:
            return batches
        if self._worker_seed is None:
            self._worker_seed = torch.initial_seed()
        return _workers.SeededBatches(batches, (self._worker_seed, rank), skip)

    def _foreign(self, repeat: bool, skip: int) -> Iterator[Any]:
        """A loader whose reproducibility checks were disabled: used as it is, once around after another.

        It starts at get_initial_batch() by itself; that is 0 where a script without a cluster goes on from a checkpoint.
        """
        first = iter(self._loader)  # now: it may draw a random number, which is put back when resuming
        return itertools.islice(_cycle(self._loader, first), max(skip - self._initial, 0), None) if repeat else first

    def next(self) -> Any:
        return self._move(next(self._iterator))  # type: ignore

    def stop(self) -> None:
        """Ends the loader's workers, which otherwise live until the collector finds it."""
        self._iterator = None

    def _generators(self) -> List[torch.Generator]:
        """Those that the trial gave, to the loader, whose workers are seeded by it, or to torch's samplers."""
        places = (self._loader, getattr(self._loader, "sampler", None), self._passes)
        given = [getattr(place, "generator", None) for place in places]
        return [g for g in given if isinstance(g, torch.Generator)]

    def generator_states(self) -> List[torch.Tensor]:
        return [g.get_state() for g in self._generators()]

    def set_generators(self, states: List[torch.Tensor]) -> None:
        for generator, state in zip(self._generators(), states):
            generator.set_state(state)

    def _of_dataset(self) -> List[Any]:
        """Those that it draws from in this process; in workers every batch seeds them."""
        here = isinstance(self._loader, DataLoader) and self._loader.num_workers == 0
        return _generators.find(self._loader.dataset) if here else []

    def dataset_generators(self) -> List[Any]:
        return [_generators.state(g) for g in self._of_dataset()]

    def set_dataset_generators(self, states: List[Any]) -> None:
        there = self._of_dataset()
        if states and len(states) != len(there):
            logger.warning(
                f"the dataset had {len(states)} random generators of its own when the checkpoint was made and has {len(there)} "
                "now: they start anew, so what it draws differs from an uninterrupted training"
            )
            return
        for generator, saved in zip(there, states):
            _generators.restore(generator, saved)

    def state_dict(self) -> Dict[str, Any]:
        passes = self._passes.state_dict() if self._passes is not None else {}
        seeds = {"worker_seed": self._worker_seed, "order_seed": self.order_seed}
        # A sampler of the trial's own is run again from its start when resuming: it draws again what it drew.
        generators = self.generator_states() if isinstance(self._passes, Passes) else []
        return {"passes": passes, "generators": generators, "dataset": self.dataset_generators(), **seeds}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """For the next start(); empty: of a checkpoint that knows nothing of data."""
        if any(isinstance(key, int) for key in state):
            logger.warning(
                "the checkpoint is of an earlier version, whose order of shuffled records is not known any more: of the epoch "
                "that goes on now some records come twice and others not at all; resume at an epoch's end to avoid that"
            )
            state = {}
        self._restored = state
        self._worker_seed = state.get("worker_seed")
        self.order_seed = state.get("order_seed") or self.order_seed


def _cycle(loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            return
        batches = iter(loader)
