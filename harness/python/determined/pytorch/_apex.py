"""Mixed precision by NVIDIA's apex, where it is installed: what stands behind context.configure_apex_amp()."""

import importlib
from typing import Any, Callable, Dict, Iterable, List, Sequence

import torch

from determined.errors import InvalidExperimentException


def open_amp() -> Any:
    """apex.amp; the exception says what to use where there is none."""
    try:
        return importlib.import_module("apex.amp")
    except ImportError as e:
        raise InvalidExperimentException(
            f"apex is not installed on this host ({e}): install it, or use context.experimental.use_amp(), which needs nothing"
        ) from e


def replace(known: List[Any], old: Sequence[Any], new: Sequence[Any]) -> None:
    """apex returns what it was given, or copies: these take the places that decide the order in checkpoints."""
    places = {id(o): n for o, n in zip(old, new)}
    known[:] = [places.get(id(k), k) for k in known]


class Apex:
    """The scaled backward pass, and the state of its loss scalers."""

    def __init__(self, amp: Any) -> None:
        self._amp = amp
        self._last_batch = -1

    def begin(self) -> None:
        """A run begins, which may count its batches anew."""
        self._last_batch = -1

    def backward(
        self, loss: torch.Tensor, optimizers: List[Any], batch_idx: int, run: Callable[[torch.Tensor], None]
    ) -> None:
        if batch_idx == self._last_batch:
            raise InvalidExperimentException(
                "context.backward() was called twice in one batch, which apex does not bear: add the losses first, or use "
                "context.experimental.use_amp()"
            )
        self._last_batch = batch_idx
        with self._amp.scale_loss(loss, optimizers) as scaled:
            run(scaled)

    def parameters(self, optimizer: Any) -> Iterable[torch.nn.Parameter]:
        """Those of full precision, which gradients are clipped in."""
        return self._amp.master_params(optimizer)  # type: ignore

    def state_dict(self) -> Dict[str, Any]:
        return self._amp.state_dict()  # type: ignore

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._amp.load_state_dict(state)
