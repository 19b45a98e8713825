"""Calls that are given what they cannot use: named where they are made, with what they take instead."""

import collections.abc
import difflib
import inspect
from typing import Any, Callable, ContextManager, Dict, List, Optional

import torch

from determined import core


def _said(value: Any) -> str:
    return f"the class {value.__name__}: make one by {value.__name__}(...)" if isinstance(value, type) else f"a {type(value).__name__}"


def check_init(hparams: Any, exp_conf: Any, distributed: Any, aggregation_frequency: Any) -> None:
    for name, given in (("hparams", hparams), ("exp_conf", exp_conf)):
        if given is not None and not isinstance(given, collections.abc.Mapping):
            raise TypeError(
                f"determined.pytorch.init({name}=...) takes a dict, not {_said(given)}; read a file of YAML by yaml.safe_load()"
            )
    if distributed is not None and not isinstance(distributed, core.DistributedContext):
        raise TypeError(
            f"determined.pytorch.init(distributed=...) takes a determined.core.DistributedContext, not {_said(distributed)}; "
            "leave it out where torchrun starts the ranks"
        )
    if not isinstance(aggregation_frequency, int) or aggregation_frequency < 1:
        raise ValueError(
            f"determined.pytorch.init(aggregation_frequency=...) takes a whole number of at least 1, not {aggregation_frequency!r}"
        )


class Entered:
    """Gives what it stands for where a with statement begins, and says so where it is used without one."""

    def __init__(self, entered: ContextManager[Any], name: str) -> None:
        self._entered, self._name = entered, name

    def __enter__(self) -> Any:
        return self._entered.__enter__()

    def __exit__(self, *exc: Any) -> Any:
        return self._entered.__exit__(*exc)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"write `with {self._name}(...) as context:`, and use context.{name} within")


def missing(of: Any, name: str) -> AttributeError:
    """For an attribute that there is not: the likeliest that there is."""
    there = [n for n in dir(type(of)) if not n.startswith("_")]
    turned = [n for n in there if sorted(n.split("_")) == sorted(name.split("_"))]
    near = (turned or difflib.get_close_matches(name, there, 1))[:1]
    hint = f"; did you mean {near[0]}?" if near and not name.startswith("_") else ""
    return AttributeError(f"{type(of).__name__} has no attribute '{name}'{hint}")


def check_length(length: Any) -> None:
    """Of local training."""
    if not isinstance(length.value, int):
        raise TypeError(f"fit(max_length={length!r}): local training needs one whole number, such as {type(length).__name__}(100)")
    if length.value < 1:
        raise ValueError(f"fit(max_length={length!r}): local training needs at least {type(length).__name__}(1)")


# ---- what is wrapped ----


def check_model(model: Any) -> None:
    if isinstance(model, type) or not hasattr(model, "state_dict"):
        raise TypeError(f"context.wrap_model() takes a torch.nn.Module, not {_said(model)}")


def check_optimizer(optimizer: Any) -> None:
    if isinstance(optimizer, type) or not all(hasattr(optimizer, n) for n in ("step", "zero_grad", "param_groups")):
        raise TypeError(
            f"context.wrap_optimizer() takes an optimizer, such as torch.optim.SGD(model.parameters(), lr=0.1), not {_said(optimizer)}"
        )


def check_scheduler(scheduler: Any, frequency: Any) -> None:
    optimizer = isinstance(scheduler, torch.optim.Optimizer)
    if optimizer or isinstance(scheduler, type) or not all(hasattr(scheduler, n) for n in ("step", "state_dict", "load_state_dict")):
        raise TypeError(
            "context.wrap_lr_scheduler() takes a scheduler of the optimizer, such as torch.optim.lr_scheduler.StepLR(optimizer, 10), "
            f"not {_said(scheduler)}"
        )
    if not isinstance(frequency, int) or frequency < 1:
        raise ValueError(f"context.wrap_lr_scheduler(frequency=...) takes a whole number of at least 1, not {frequency!r}")


def check_clip(clip_grads: Any) -> None:
    if clip_grads is not None and not callable(clip_grads):
        raise TypeError(
            "context.step_optimizer(clip_grads=...) takes a function of the parameters, such as "
            f"lambda params: torch.nn.utils.clip_grad_norm_(params, {clip_grads!r}), not {_said(clip_grads)}"
        )


# ---- what is overridden ----


def _takes(method: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # not written in Python: the call will tell
        return True
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _refuse(of: Any, name: str, wanted: List[str]) -> TypeError:
    there = inspect.signature(getattr(of, name))
    return TypeError(
        f"{type(of).__name__}.{name}{there} cannot be called: the loop calls it with {', '.join(wanted) or 'nothing'}; write "
        f"`def {name}({', '.join(['self', *wanted])})`"
    )


#: The methods of a trial that are called with these, by name.
_BY_NAME = {"train_batch": ["batch", "epoch_idx", "batch_idx"]}
#: And those in this order.
_IN_ORDER: Dict[str, List[str]] = {
    "build_training_data_loader": [],
    "build_validation_data_loader": [],
    "build_callbacks": [],
    "evaluation_reducer": [],
    "evaluate_full_dataset": ["data_loader"],
    "get_batch_length": ["batch"],
}


def check_methods(trial: Any, with_index: Optional[bool]) -> None:
    """Before training: most of them are called only when much was trained. `with_index`: evaluate_batch() takes it."""
    by_name = dict(_BY_NAME)
    if with_index is not None:
        by_name["evaluate_batch"] = ["batch", "batch_idx"][: 1 + with_index]
    for name, wanted in by_name.items():
        if not _takes(getattr(trial, name), **dict.fromkeys(wanted)):
            raise _refuse(trial, name, wanted)
    for name, wanted in _IN_ORDER.items():
        if not _takes(getattr(trial, name), *wanted):
            raise _refuse(trial, name, wanted)


def check_hooks(callback: Any, base: type) -> None:
    for name, own in vars(base).items():
        hook = getattr(callback, name, None)
        if name.startswith("_") or not inspect.isfunction(own) or not callable(hook):
            continue
        wanted = list(inspect.signature(own).parameters)[1:]
        bare = name == "on_training_epoch_start" and _takes(hook)  # deprecated, and called so
        if not bare and not _takes(hook, *wanted) and not _takes(hook, **dict.fromkeys(wanted)):
            raise _refuse(callback, name, wanted)
