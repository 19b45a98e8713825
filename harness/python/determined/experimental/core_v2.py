"""The Core API as one set of module variables: core_v2.init(), then core_v2.train.report_training_metrics(...).

In a trial of the cluster, or anywhere else: a training that runs elsewhere has an experiment and a trial here to which it
reports its metrics, checkpoints and log lines. With external ids of both it is the same trial each time, and
core_v2.info.latest_checkpoint is where it may go on from.
"""

import atexit
import dataclasses
import uuid
from typing import Any, Dict, List, Optional, Union

import determined as det
from determined import core
from determined.core import DistributedContext, PreemptMode, TensorboardMode
from determined.experimental import _unmanaged
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


def _names(defaults: DefaultConfig, unmanaged: UnmanagedConfig) -> _unmanaged.Names:
    ids = (unmanaged.external_experiment_id, unmanaged.external_trial_id)
    if not all(i is None or isinstance(i, str) for i in ids):
        raise NotImplementedError("external ids are strings: ids that the master gave cannot be taken up from elsewhere")
    if ids[0] is None and ids[1] is not None:
        raise NotImplementedError("external_trial_id needs external_experiment_id: the trial belongs to an experiment")
    config = {
        "name": defaults.name or f"unmanaged-{uuid.uuid4().hex[:8]}",
        "data": defaults.data,
        "description": defaults.description,
        "labels": defaults.labels,
        "searcher": defaults.searcher or {"name": "single", "metric": "unmanaged", "max_length": 100000000},
        "workspace": unmanaged.workspace,
        "project": unmanaged.project,
    }
    return _unmanaged.Names(config, defaults.hparams or {}, ids[0], ids[1])


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
    """The contexts of this trial, not yet started: use `with`. Leaves the module's variables alone.

    In a trial of the cluster `defaults`, `unmanaged` and `client` have no effect: its configuration says all that.
    """
    here = det.get_cluster_info()
    if here is None or here.task_type != "TRIAL":
        if defaults is None:
            raise NotImplementedError(
                "either specify `defaults`, or run as a managed determined experiment (`det experiment create` submits this script)"
            )
        where = checkpoint_storage if checkpoint_storage is not None else defaults.checkpoint_storage
        names = _names(defaults, unmanaged or UnmanagedConfig())
        return _unmanaged.begin(names, client, distributed, where, preempt_mode, tensorboard_mode)
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
