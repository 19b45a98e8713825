"""A learning-rate scheduler and when the loop steps it."""

import enum
import inspect
import weakref
from typing import Any, Dict, List

import torch.optim.lr_scheduler


class LRScheduler:
    """Wraps a scheduler of torch.optim.lr_scheduler; `context.wrap_lr_scheduler` makes it."""

    class StepMode(enum.Enum):
        """When the loop steps the scheduler, every `frequency`-th time."""

        STEP_EVERY_EPOCH = 1
        STEP_EVERY_BATCH = 2
        MANUAL_STEP = 3
        STEP_EVERY_OPTIMIZER_STEP = 4

    def __init__(
        self,
        scheduler: "torch.optim.lr_scheduler._LRScheduler",
        step_mode: "LRScheduler.StepMode",
        frequency: int = 1,
    ) -> None:
        if not isinstance(step_mode, LRScheduler.StepMode):
            raise TypeError(f"step_mode must be one of LRScheduler.StepMode, not {step_mode!r}")
        self._scheduler = scheduler
        self._step_mode = step_mode
        self._frequency = frequency

    def step(self, *args: Any, **kwargs: Any) -> None:
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> List[float]:
        return self._scheduler.get_last_lr()

    def state_dict(self) -> Dict[str, Any]:
        return self._scheduler.state_dict()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._scheduler.load_state_dict(state_dict)


def saved_state(lr: LRScheduler) -> Any:
    """Without ways back to the scheduler, which its constructor makes: of torch 1's, CyclicLR's cannot be pickled, and
    OneCycleLR's would bring the optimizer and the model, to stay in memory wherever the checkpoint is loaded."""
    state = lr.state_dict()
    if not isinstance(state, dict):
        return state
    return {k: v for k, v in state.items() if not isinstance(v, weakref.ref) and not (inspect.ismethod(v) and v.__self__ is lr._scheduler)}
