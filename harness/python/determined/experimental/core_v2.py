"""The Core API as one set of module variables: core_v2.init(), then core_v2.train.report_training_metrics(...).

In a trial of the cluster. What Determined calls detached mode, a training that runs elsewhere and reports here, needs
routes that this master does not have; init() says so.
"""

import atexit
import dataclasses
from typing import Any, Dict, List, Optional, Union

import determined as det
from determined import core
from determined.core import DistributedContext, PreemptMode, TensorboardMode
from determined.experimental.client import Determined

train: Optional[core.TrainContext] = None
distributed: Optional[core.DistributedContext] = None
preempt: Optional[core.PreemptContext] = None
checkpoint: Optional[core.CheckpointContext] = None
searcher: Optional[core.SearcherContext] = None
info: Optional[det.ClusterInfo] = None

_context: Optional[core.Context] = None
_at_exit = False


@dataclasses.dataclass
class DefaultConfig:
    """Of a training that runs elsewhere; a trial of the cluster has its own configuration."""

    name: Optional[str] = None
    hparams: Optional[Dict[str, Any]] = None
    data: Optional[Dict[str, Any]] = None
    description: Optional[str] = None
    labels: Optional[List[str]] = None
    checkpoint_storage: Optional[Union[str, Dict[str, Any]]] = None
    searcher: Optional[Dict[str, Any]] = None


@dataclasses.dataclass
class UnmanagedConfig:
    """Where a training that runs elsewhere is kept."""

    workspace: Optional[str] = None
    project: Optional[str] = None
    external_experiment_id: Optional[str] = None
    external_trial_id: Optional[str] = None


def init_context(
    *,
    defaults: Optional[DefaultConfig] = None,
    unmanaged: Optional[UnmanagedConfig] = None,
    client: Optional[Determined] = None,
    distributed: Optional[core.DistributedContext] = None,
    checkpoint_storage: Optional[Union[str, Dict[str, Any]]] = None,
    preempt_mode: core.PreemptMode = core.PreemptMode.WorkersAskChief,
    tensorboard_mode: core.TensorboardMode = core.TensorboardMode.AUTO,
) -> core.Context:
    """The contexts of this trial, not yet started: use `with`. Leaves the module's variables alone."""
    here = det.get_cluster_info()
    if here is None or here.task_type != "TRIAL":
        raise NotImplementedError(
            "core_v2 works in trials of the cluster; reporting from elsewhere (unmanaged experiments) is not available in "
            "this version: submit the script by `det experiment create`, or use determined.core.init(), which logs what it "
            "would report"
        )
    return core.init(
        distributed=distributed,
        checkpoint_storage=checkpoint_storage,
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )


def init(
    *,
    defaults: Optional[DefaultConfig] = None,
    unmanaged: Optional[UnmanagedConfig] = None,
    client: Optional[Determined] = None,
    distributed: Optional[core.DistributedContext] = None,
    checkpoint_storage: Optional[Union[str, Dict[str, Any]]] = None,
    preempt_mode: core.PreemptMode = core.PreemptMode.WorkersAskChief,
    tensorboard_mode: core.TensorboardMode = core.TensorboardMode.AUTO,
) -> None:
    """Starts the contexts of this trial and sets the module's variables; closes those of an earlier call."""
    global _context, _at_exit
    close()
    context = init_context(
        defaults=defaults,
        unmanaged=unmanaged,
        client=client,
        distributed=distributed,
        checkpoint_storage=checkpoint_storage,
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )
    context.start()
    _context = context
    _set(context)
    if not _at_exit:
        atexit.register(close)
        _at_exit = True


def _set(context: Optional[core.Context]) -> None:
    global train, distributed, preempt, checkpoint, searcher, info
    train = context.train if context is not None else None
    distributed = context.distributed if context is not None else None
    preempt = context.preempt if context is not None else None
    checkpoint = context.checkpoint if context is not None else None
    searcher = context.searcher if context is not None else None
    info = context.info if context is not None else None


def close() -> None:
    """Ends what init() started; called at the end of the process too."""
    global _context
    context, _context = _context, None
    _set(None)
    if context is not None:
        context.close()


def url_reverse_webui_exp_view() -> str:
    """The page of this trial's experiment."""
    if info is None:
        raise RuntimeError("core_v2.init() comes first")
    return f"{info.master_url.rstrip('/')}/det/experiments/{info.trial.experiment_id}"


__all__ = [
    "DefaultConfig",
    "DistributedContext",
    "PreemptMode",
    "TensorboardMode",
    "UnmanagedConfig",
    "close",
    "init",
    "init_context",
    "url_reverse_webui_exp_view",
]
