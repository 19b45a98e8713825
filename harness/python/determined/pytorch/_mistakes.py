"""What goes wrong often, found early and named with the call that replaces it."""

import contextlib
import difflib
import inspect
import logging
import os
import pathlib
import pwd
import re
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Optional, Type

import torch

from determined.errors import InvalidExperimentException

logger = logging.getLogger("determined.pytorch")

STEP_WITHIN = 16  # batches
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_visible_at_start = os.environ.get(_VISIBLE)

_OLD_METHODS = {
    "build_model": "context.wrap_model()",
    "optimizer": "context.wrap_optimizer()",
    "create_lr_scheduler": "context.wrap_lr_scheduler()",
}


def _defined(cls: type, name: str) -> bool:
    return inspect.isfunction(getattr(cls, name, None))


def _takes_model(cls: type, name: str) -> bool:
    return _defined(cls, name) and "model" in inspect.signature(getattr(cls, name)).parameters


def refuse_old_interface(cls: type) -> None:
    """Trials of before 2020 gave models by methods that nothing calls any more, and got them as arguments.

    One such name alone may be a helper of the trial's own: it takes two, or an argument `model`, to be old.
    """
    found = [name for name in _OLD_METHODS if _defined(cls, name)]
    with_model = [name for name in ("train_batch", "evaluate_batch", "evaluate_full_dataset") if _takes_model(cls, name)]
    if len(found) < 2 and not with_model:
        return
    advice = [f"{name}(): call {_OLD_METHODS[name]} in __init__() and keep what it returns" for name in found]
    advice += [f"{name}(): without the parameter `model`; use the model that __init__() kept" for name in with_model]
    raise InvalidExperimentException(
        f"{cls.__name__} has the interface of before 2020. Replace " + "; ".join(advice)
        + "; and step in train_batch() by context.backward() and context.step_optimizer()"
    )


def no_model(cls: type) -> InvalidExperimentException:
    old = " instead of build_model()" if _defined(cls, "build_model") else ""
    return InvalidExperimentException(
        f"no model is wrapped: call context.wrap_model() in the trial's __init__(){old}, and use what it returns"
    )


def no_optimizer(cls: type) -> InvalidExperimentException:
    old = " instead of optimizer()" if _defined(cls, "optimizer") else ""
    return InvalidExperimentException(
        f"no optimizer is wrapped: call context.wrap_optimizer() in the trial's __init__(){old}"
    )


def no_evaluation(cls: type, both: bool) -> InvalidExperimentException:
    """One of the two is wanted; of a method that nothing calls, and that reads like one of them, this is said."""
    said, names = "override exactly one of evaluate_batch() and evaluate_full_dataset()", ("evaluate_batch", "evaluate_full_dataset")
    own = [name for name in vars(cls) if name not in names and _defined(cls, name)]
    near = [(name, got[0]) for name in names for got in [difflib.get_close_matches(name, own, 1, 0.8)] if got]
    if both or not near:
        return InvalidExperimentException(said)
    return InvalidExperimentException(f"{said}; {cls.__name__} has {near[0][1]}(): did you mean {near[0][0]}()?")


def check_scheduler(cls: type, wrapped: int) -> None:
    if not wrapped and _defined(cls, "create_lr_scheduler"):
        logger.warning(
            f"{cls.__name__}.create_lr_scheduler() is of the interface of before 2020, nothing calls it, and no scheduler is "
            "wrapped: call context.wrap_lr_scheduler() in __init__()"
        )


def check_callbacks(callbacks: Any, base: Type[Any]) -> Dict[str, Any]:
    if not isinstance(callbacks, dict):
        raise InvalidExperimentException(
            f"build_callbacks() must return a dict of name to callback, not a {type(callbacks).__name__}"
        )
    for name, callback in callbacks.items():
        if not isinstance(callback, base):
            raise InvalidExperimentException(
                f'build_callbacks(): "{name}" is a {type(callback).__name__}: derive it from determined.pytorch.PyTorchCallback'
            )
    return callbacks


_RANKS = (
    "A trial does not call torch.distributed.init_process_group(): determined.launch.torch_distributed (or module:Class as the "
    "entrypoint) starts the ranks and determined.pytorch.init() joins them; rank and size are context.distributed.rank and .size"
)
_NO_GROUP = (
    "One rank has no process group: leave out DistributedDataParallel, which context.wrap_model() adds where there are several, "
    "and the calls of torch.distributed, for which context.distributed has rank, size, allgather() and broadcast()"
)
_NO_GPU = (
    "Use context.device, which is this rank's own, and context.to_device() in place of .cuda(), torch.cuda.set_device() and "
    "fixed GPU numbers"
)
_SAID = {
    "Default process group has not been initialized": _NO_GROUP,
    "invalid device ordinal": _NO_GPU,
    "Cannot access accelerator device": _NO_GPU,  # torch 2 without CUDA
}


def has_process_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def check_process_group(ranks: int, had_one: bool) -> None:
    """A process group of the script's own that the context knows nothing of: every process would train alone."""
    if not has_process_group():
        return
    size = torch.distributed.get_world_size()
    if ranks == 1 and size > 1:
        logger.warning(
            f"torch.distributed was initialized with {size} processes, but the trial's context has one: each trains for "
            "itself. Pass distributed=determined.core.DistributedContext.from_torch_distributed() to determined.pytorch.init()"
        )
    elif not had_one:
        logger.warning(f"a process group was made that nothing uses. {_RANKS}")


def _advice(error: BaseException) -> Optional[str]:
    """On an exception of torch's, by what it says and where it comes from; None: it says enough itself."""
    for text, advice in _SAID.items():
        if text in str(error):
            return advice
    at = error.__traceback__
    while at is not None:
        name = at.tb_frame.f_code.co_name
        if name == "init_process_group":
            return _RANKS
        if name in ("_lazy_init", "set_device") and at.tb_frame.f_globals.get("__name__") == "torch.cuda":
            return _NO_GPU
        at = at.tb_next
    return None


def _denied(error: PermissionError) -> str:
    """Who may not do what: a file is often there, and one of the directories above it is closed."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # an account of a user's tasks alone has no name
        name = "without a name"
    quoted = re.search(r"Permission denied: '(.+?)'", str(error))  # of a loader's worker, whose exception is a text
    path = error.filename or (quoted.group(1) if quoted else None)
    who = f"This process runs as the account {name} (uid {os.geteuid()}), which"
    if not isinstance(path, str):
        return f"{who} lacks the right"
    above = [str(p) for p in reversed(pathlib.Path(path).absolute().parents)]
    closed = next((p for p in above if os.path.isdir(p) and not os.access(p, os.X_OK, effective_ids=True)), None)
    return f"{who} may not enter {closed}" if closed else f"{who} may not use {path} so"


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Around what a trial does: an exception that comes of wrong use gets the advice that it lacks."""
    try:
        yield
    except PermissionError as e:
        raise PermissionError(f"{e}. {_denied(e)}") from e
    except (AssertionError, AttributeError, RuntimeError, ValueError) as e:
        advice = _advice(e)
        if advice is None:
            raise
        raise InvalidExperimentException(f"{str(e).rstrip('.!')}. {advice}") from e


def check_parallel(model: torch.nn.Module) -> None:
    if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        logger.warning(
            f"context.wrap_model() was given a {type(model).__name__}: give it the model itself, which it makes data-parallel "
            "where the trial has several slots"
        )


def trained(model: torch.nn.Module) -> FrozenSet[str]:
    return frozenset(name for name, p in model.named_parameters() if p.requires_grad)


def check_frozen(models: Iterable[Any]) -> None:
    """DistributedDataParallel averages what was trained when it was made: torch says nothing of parameters that are
    unfrozen later, although the ranks' models drift apart by them. Told once for each change."""
    for model in models:
        before, now = model._trained, trained(getattr(model, "module", model))
        model._trained = now
        if now - before:
            logger.warning(
                f"requires_grad was set for {_few(now - before)} after context.wrap_model(): with several slots their gradients "
                "are not averaged, and the slots' models drift apart. Leave it set from the start, and give these parameters' "
                "group a learning rate of 0 until they are to be trained"
            )
        elif before - now:
            logger.warning(
                f"{_few(before - now)} were frozen after context.wrap_model(): with several slots it waits for their gradients. "
                "Freeze them before wrapping the model"
            )


def _few(names: FrozenSet[str]) -> str:
    first, *rest = sorted(names)
    return f"{first} and {len(rest)} other parameters" if rest else f"the parameter {first}"


def check_gradients(optimizer: torch.optim.Optimizer, went_backward: bool) -> None:
    """At the first step: it may be one that trains nothing, or not as it was meant."""
    if all(p.grad is None for group in optimizer.param_groups for p in group["params"]):
        logger.warning(
            "the first context.step_optimizer() found no gradient in any parameter of its optimizer, so nothing is trained: call "
            "context.backward(loss) before it, and give the optimizer the parameters of the model that context.wrap_model() returned"
        )
    elif not went_backward:
        logger.warning(
            "the gradients of the first context.step_optimizer() come from no context.backward(loss): call that instead of "
            "loss.backward(), which does not scale the loss in mixed precision"
        )


def check_stepped(batches: int, stepped: bool) -> None:
    """After so many batches: a trial may step now and then, but one that never does trains nothing, or by itself."""
    if batches == STEP_WITHIN and not stepped:
        logger.warning(
            f"no context.step_optimizer(optimizer) in the first {batches} batches: train_batch() calls it after "
            "context.backward(loss), in place of optimizer.step() and zero_grad(); without it nothing is trained as configured"
        )


def learning_rates(optimizers: Iterable[torch.optim.Optimizer]) -> List[Any]:
    """Of every group of parameters; where a scheduler changes it, that from which it sets out."""
    return [group.get("initial_lr", group.get("lr")) for optimizer in optimizers for group in optimizer.param_groups]


def check_learning_rates(wanted: List[Any], got: List[Any]) -> None:
    """Of a trial that begins with another's checkpoint, which holds the state of its optimizers."""
    for mine, saved in zip(wanted, got):
        if isinstance(mine, float) and isinstance(saved, float) and mine != saved:
            logger.warning(
                f"this trial's code sets a learning rate of {mine:g}, but the checkpoint's optimizer has {saved:g}, which holds: to "
                f"train with {mine:g}, set it in the optimizer's param_groups when training starts (the callback on_training_start())"
            )


def check_pinned_gpus() -> None:
    """The agent gives each task its GPUs by the environment: a script that writes there takes those of others."""
    now = os.environ.get(_VISIBLE)
    if now != _visible_at_start:
        logger.warning(
            f"{_VISIBLE} was changed to {now!r} by the trial. The cluster chooses the GPUs of a task: leave the variable "
            "alone and use context.device, which is this rank's own"
        )


def check_model_device(model: torch.nn.Module, device: torch.device) -> None:
    pinned = {str(p.device) for p in model.parameters() if p.device.type not in ("cpu", "meta") and p.device != device}
    if pinned:
        logger.warning(
            f"the model was pinned to {', '.join(sorted(pinned))}; context.wrap_model() moves it to {device}, which is this "
            "rank's own: build it without .cuda() and .to(), or with .to(context.device)"
        )


def explain_backward(loss: Any, device: torch.device) -> Optional[Exception]:
    """For an exception of loss.backward(); None where it says enough itself."""
    if not isinstance(loss, torch.Tensor):
        return TypeError(
            f"context.backward() takes the loss as a tensor, not a {type(loss).__name__}: call .item() only on what is reported"
        )
    if loss.device != device:
        return RuntimeError(
            f"the loss is on {loss.device}, but this rank's device is {device}: use context.device, or context.to_device(), "
            "instead of .cuda() and fixed GPU numbers"
        )
    return None
