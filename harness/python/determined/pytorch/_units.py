"""Lengths and periods of training."""

import array
import collections.abc
import sys
from typing import Any, Container, Dict, Optional, Tuple, Union


class TrainUnit:
    """A number of batches or epochs, or a container of the step numbers at which something is due."""

    _kind = ""

    def __init__(self, value: Union[int, Container[int]]) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def should_stop(self, step_num: int) -> bool:
        if isinstance(self.value, int):
            return self._divides(step_num)
        assert isinstance(self.value, collections.abc.Container)
        return step_num in self.value

    def _divides(self, step_num: int) -> bool:
        assert isinstance(self.value, int)
        if self.value < 1:
            return True
        return step_num != 0 and step_num % self.value == 0

    @staticmethod
    def _from_searcher_unit(length: int, unit: Any, global_batch_size: Optional[int] = None) -> "TrainUnit":
        name = getattr(unit, "name", str(unit)).lower()
        if name == "epochs":
            return Epoch(length)
        if name == "batches":
            return Batch(length)
        if not global_batch_size:
            raise ValueError("a searcher unit of records needs the hyperparameter global_batch_size")
        return TrainUnit._from_records(length, global_batch_size)

    @staticmethod
    def _from_values(
        batches: Optional[int] = None,
        records: Optional[int] = None,
        epochs: Optional[int] = None,
        global_batch_size: Optional[int] = None,
    ) -> "TrainUnit":
        given = [v for v in (batches, records, epochs) if v is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of batches, records and epochs, not {len(given)}")
        if given[0] < 1:
            return Batch(sys.maxsize)
        if batches is not None:
            return Batch(batches)
        if epochs is not None:
            return Epoch(epochs)
        assert global_batch_size, "a period in records needs the hyperparameter global_batch_size"
        return TrainUnit._from_records(given[0], global_batch_size)

    @staticmethod
    def _from_records(records: int, global_batch_size: int) -> "Batch":
        return Batch(max(records // global_batch_size, 1))

    @staticmethod
    def _from_config(config: Optional[Dict[str, int]], global_batch_size: Optional[int] = None) -> Optional["TrainUnit"]:
        return None if not config else TrainUnit._from_values(**config, global_batch_size=global_batch_size)


class Epoch(TrainUnit):
    """Passes over the training data."""

    _kind = "epochs"


class Batch(TrainUnit):
    """Batches."""

    _kind = "batches"


def as_loop_unit(unit: Optional[TrainUnit]) -> Optional[Tuple[str, Any]]:
    """What determined._loop takes: ("batches" or "epochs", a number or the bytes of many); None: never."""
    if unit is None:
        return None
    if isinstance(unit.value, int):
        return (unit._kind, max(unit.value, 1))
    if not isinstance(unit.value, collections.abc.Iterable):
        raise TypeError(f"{unit!r}: give an int, or a container that can be listed, such as a list or a range")
    try:
        return (unit._kind, array.array("q", sorted(unit.value)).tobytes())
    except TypeError:
        raise TypeError(f"{unit!r}: the numbers of the steps must be ints, such as {type(unit).__name__}([1, 10])") from None
