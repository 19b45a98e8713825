"""How metrics of batches and ranks become one."""

import abc
import enum
import itertools
import pickle
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import torch

_MISSING = object()


class Reducer(enum.Enum):
    """What `evaluation_reducer()` gives: how a validation metric is reduced over batches and ranks."""

    AVG = 1
    SUM = 2
    MAX = 3
    MIN = 4


class MetricReducer(abc.ABC):
    """A metric that is computed once per workload or validation, from what every rank gathered."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget what was gathered: a new workload or validation begins."""

    @abc.abstractmethod
    def per_slot_reduce(self) -> Any:
        """This rank's share; it must be possible to pickle it."""

    @abc.abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: Sequence[Any]) -> Any:
        """The metric, from every rank's share in the order of ranks."""


class _SimpleReducer(MetricReducer):
    """A function of all values that all ranks gave to `update()`."""

    def __init__(self, fn: Callable[[List[Any]], Any]) -> None:
        self._fn = fn
        self._values: List[Any] = []

    def reset(self) -> None:
        self._values = []

    def update(self, value: Any) -> None:
        self._values.append(value)

    def per_slot_reduce(self) -> Any:
        return self._values

    def cross_slot_reduce(self, per_slot_metrics: Sequence[Any]) -> Any:
        turns = itertools.zip_longest(*per_slot_metrics, fillvalue=_MISSING)
        return self._fn([v for turn in turns for v in turn if v is not _MISSING])


class WrappedReducer:
    """A reducer, the name of its result, and when it runs; errors of its methods name it."""

    def __init__(self, reducer: MetricReducer, name: Optional[str], for_training: bool, for_validation: bool) -> None:
        self.reducer = reducer
        self.name = name
        self.for_training = for_training
        self.for_validation = for_validation

    def _guard(self, what: str, fn: Callable[..., Any], *args: Any) -> Any:
        try:
            return fn(*args)
        except Exception as e:
            who = f'"{self.name}"' if self.name else type(self.reducer).__name__
            raise ValueError(f"{what}() of the reducer {who} failed: {e}") from e

    def reset(self) -> None:
        self._guard("reset", self.reducer.reset)

    def per_slot_reduce(self) -> bytes:
        return pickle.dumps(self._guard("per_slot_reduce", self.reducer.per_slot_reduce))

    def cross_slot_reduce(self, blobs: Sequence[bytes]) -> Dict[str, Any]:
        return self.result([pickle.loads(b) for b in blobs])

    def result(self, per_slot: Sequence[Any]) -> Dict[str, Any]:
        value = self._guard("cross_slot_reduce", self.reducer.cross_slot_reduce, tuple(per_slot))
        who = type(self.reducer).__name__
        if self.name is None:
            assert isinstance(value, dict), (
                f"{who}.cross_slot_reduce() was wrapped with name=None but it did not return a dict; give "
                "wrap_reducer() a name, or return {name: value}"
            )
            return {k: to_numpy(v) for k, v in value.items()}
        assert not isinstance(value, dict), (
            f"{who}.cross_slot_reduce() was wrapped with name set but it returned a dict anyway; leave the name out, "
            "or return one value"
        )
        return {self.name: to_numpy(value)}


def to_numpy(value: Any) -> Any:
    """A tensor as an array; NumPy has no bfloat16."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def wrap(
    known: List[WrappedReducer],
    reducer: Union[MetricReducer, Callable[[List[Any]], Any]],
    name: Optional[str],
    for_training: bool,
    for_validation: bool,
) -> MetricReducer:
    """Adds a reducer to the context's list, once."""
    assert isinstance(reducer, MetricReducer) or callable(reducer), (
        f"wrap_reducer() takes a MetricReducer or a function of a list of values, not a {type(reducer).__name__}"
    )
    if not isinstance(reducer, MetricReducer):
        reducer = _SimpleReducer(reducer)
    assert all(k.reducer is not reducer for k in known), "wrap_reducer() was given the same reducer twice"
    known.append(WrappedReducer(reducer, name, for_training, for_validation))
    return reducer
