"""torch's samplers that draw random numbers, resumable in the middle of a pass.

torch draws what a pass is shuffled with when the pass begins, from the global generator or from one that the sampler was
given. The states with which the passes under way began go into checkpoints, so that a resumed trial neither repeats nor
misses a record of its epoch.

Where several ranks deal out one order, each makes it for itself, at a time of its own and from a global generator that may
have drawn otherwise than the others': there the passes follow from a seed that all have.
"""

import logging
from typing import Any, Dict, Iterator, Optional, Tuple, Union

import numpy as np
import torch
from torch.utils.data import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

from determined.pytorch._own_passes import OwnPasses

logger = logging.getLogger("determined.pytorch")

_DRAWING = (RandomSampler.__iter__, SubsetRandomSampler.__iter__, WeightedRandomSampler.__iter__)


class Passes(Sampler):
    """The sampler's passes, in its own order."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._states: Dict[int, torch.Tensor] = {}  # by pass, as it began
        self._pass = self._first = 0
        self._kept = 1
        self._seed: Optional[int] = None

    def start(self, first_pass: int, kept: int, states: Dict[int, torch.Tensor], seed: Optional[int] = None) -> None:
        """The next iteration counts as pass 0. Passes before `first_pass` are skipped, in no particular order; the states
        of the last `kept` are remembered: the loader's workers may be ahead of training, never behind it."""
        self._pass, self._first, self._kept = 0, first_pass, kept
        self._states = dict(states)
        self._seed = seed  # of all ranks; None: this one is alone

    def state_dict(self) -> Dict[int, torch.Tensor]:
        return dict(self._states)

    @property
    def generator(self) -> Optional[torch.Generator]:
        return self._sampler.generator  # type: ignore

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        number, self._pass = self._pass, self._pass + 1
        if number < self._first:
            return iter(range(len(self)))
        for old in [k for k in self._states if k <= number - self._kept]:
            del self._states[old]
        return iter(self._order(number))

    def _order(self, number: int) -> Any:
        """What a pass that began before the checkpoint draws is drawn already, as the checkpoint's generators know."""
        generator = self.generator or torch.default_generator
        now = generator.get_state()
        if self._seed is not None and self.generator is None:
            generator.manual_seed(int(np.random.SeedSequence((self._seed, number)).generate_state(1)[0]))
            order = list(self._sampler)
            generator.set_state(now)
            return order
        resumed = number in self._states
        generator.set_state(self._states.setdefault(number, now))
        order = list(self._sampler)
        if resumed:
            generator.set_state(now)
        return order


#: RandomSampler draws as it goes where it has no permutation to make, and may have no end that matters.
LISTED_MAX = 1 << 24


def _too_long(sampler: Any) -> bool:
    if not isinstance(sampler, RandomSampler) or sampler.num_samples <= max(LISTED_MAX, len(sampler.data_source)):  # type: ignore
        return False
    logger.warning(
        f"a RandomSampler of {sampler.num_samples} samples is too long to be kept in order: a resumed trial goes on with other "
        f"records, and ranks draw each for itself. Make num_samples at most {LISTED_MAX} to have both right"
    )
    return True


def resumable(batches: Any) -> Tuple[Any, Union[Passes, OwnPasses, None]]:
    """The batch sampler over passes that can be resumed, and these, where random numbers may be drawn."""
    inner = getattr(batches, "sampler", None)
    if type(batches) is BatchSampler and type(inner) is SequentialSampler:
        return batches, None
    if type(batches) is not BatchSampler or getattr(type(inner), "__iter__", None) not in _DRAWING:
        own = OwnPasses(batches)
        return own, own
    if _too_long(inner):
        return batches, None
    passes = Passes(inner)
    return BatchSampler(passes, batches.batch_size, batches.drop_last), passes
