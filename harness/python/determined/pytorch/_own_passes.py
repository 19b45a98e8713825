"""Batch samplers of the trial's own, resumable in the middle of a pass.

Who knows what they count, and draw from which generator: when resuming, such a sampler runs from its first pass again, to
the place where the checkpoint was made, so that what it keeps by itself comes out the same. What it draws from the global
generators (random, NumPy's, torch's) as a pass begins comes out the same too: the states with which the passes under way
began go into checkpoints. Beyond, these generators are as the checkpoint has them.
"""

import random
from typing import Any, Dict, Iterator

import numpy as np
import torch

_END = object()


def _get_states() -> Dict[str, Any]:
    numpy: Any = np.random.get_state()
    return {"numpy": (numpy[0], numpy[1].tobytes(), *numpy[2:]), "random": random.getstate(), "torch": torch.get_rng_state()}


def _set_states(states: Dict[str, Any]) -> None:
    name, words, *place = states["numpy"]
    numpy: Any = (name, np.frombuffer(words, np.uint32), *place)
    np.random.set_state(numpy)
    random.setstate(states["random"])
    torch.set_rng_state(states["torch"])


class OwnPasses:
    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self._states: Dict[int, Any] = {}  # by pass, as it began
        self._pass = self._first = 0
        self._kept = 1
        self._behind = 0  # batches up to the checkpoint's place
        self._now: Any = None  # while behind: the generators as the checkpoint has them

    def start(self, first_pass: int, kept: int, states: Dict[int, Any], skipped: int) -> None:
        """The next iteration counts as pass 0; the checkpoint was made `skipped` batches later, in pass `first_pass`. The
        states of the last `kept` passes are remembered: the loader's workers may be ahead of training, never behind it."""
        self._pass, self._first, self._kept = 0, first_pass, kept
        self._states = dict(states)
        self._behind, self._now = skipped, None

    def state_dict(self) -> Dict[int, Any]:
        return dict(self._states)

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        number, self._pass = self._pass, self._pass + 1
        for old in [k for k in self._states if k <= number - self._kept]:
            del self._states[old]
        now = _get_states()
        if self._behind > 0 and self._now is None:
            self._now = now
        drawn = number in self._states  # before the checkpoint, as its generators know
        if number >= self._first:
            _set_states(self._states.setdefault(number, now))
        batches, first = iter(self._batches), True
        while True:
            batch = next(batches, _END)
            if first and drawn and self._now is None:
                _set_states(now)
            if batch is _END:
                return
            first = False
            self._catch_up()
            yield batch

    def _catch_up(self) -> None:
        if self._now is None:
            return
        self._behind -= 1
        if self._behind == 0:
            _set_states(self._now)
            self._now = None
