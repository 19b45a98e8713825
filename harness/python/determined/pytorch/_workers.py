"""Random numbers in a data loader's workers, which belong to the batch they are drawn for.

torch seeds a worker once, so what it draws for a batch follows from the batches it read before; the workers of a resumed
trial have not read those. Here every batch brings a seed, and augmentation goes on as if the trial had never stopped.
"""

import random
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np
import torch
import torch.utils.data

from determined.pytorch import _generators


class SeededBatch(List[Any]):
    """A batch's indices: a worker that begins to go through them first seeds what torch seeds at its start.

    Only the first time: a dataset with __getitems__ may go through them again, for a second view of each record.
    """

    key: Optional[Tuple[int, ...]]

    def __iter__(self) -> Iterator[Any]:
        if self.key is not None and torch.utils.data.get_worker_info() is not None:
            _seed(self.key)
            self.key = None
        return super().__iter__()


class SeededBatches:
    """The batches of a sampler, of which the first has the number `first`: key and number make the seed."""

    def __init__(self, batches: Any, key: Tuple[int, ...], first: int) -> None:
        self._batches = batches
        self._key = key
        self._first = first

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        for number, indices in enumerate(self._batches, self._first):
            if type(indices) is list:  # as BatchSampler makes it; what a sampler of the trial's own makes is left alone
                indices = SeededBatch(indices)
                indices.key = (*self._key, number)
            yield indices


def _seed(key: Tuple[int, ...]) -> None:
    words = np.random.SeedSequence(key).generate_state(6)
    random.seed(int(words[0]))
    torch.manual_seed(int(words[1]))
    np.random.seed(words[2:])
    worker = torch.utils.data.get_worker_info()
    for n, generator in enumerate(_generators.find(worker.dataset) if worker is not None else []):
        _generators.seed(generator, int(np.random.SeedSequence((*key, n)).generate_state(1)[0]))
