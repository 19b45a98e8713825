"""Trainer and init(): training from a script, the same on a cluster and without one."""

import contextlib
import logging
import os
import random
from typing import Any, ContextManager, Dict, Iterator, Optional, Type

import numpy as np
import torch

import determined as det
from determined import _libuv, core
from determined.common.check import CheckFailedError
from determined.pytorch import _arguments, _mistakes
from determined.pytorch._client import Client
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._trial import PyTorchTrial
from determined.pytorch._units import Batch, TrainUnit, as_loop_unit

logger = logging.getLogger("determined.pytorch")


class Trainer:
    """Runs the training loop for a trial."""

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        if not isinstance(context, PyTorchTrialContext):
            raise TypeError(
                f"Trainer(trial, context) takes the context that determined.pytorch.init() gave, not a {type(context).__name__}"
            )
        self._trial = trial
        self._context = context
        self._info = det.get_cluster_info()
        self._local = self._info is None or self._info.task_type != "TRIAL"
        self._spec: Optional[str] = None
        self._legacy = False
        self._profiling: Optional[Dict[str, Any]] = None

    def configure_profiler(
        self,
        sync_timings: bool = True,
        enabled: bool = False,
        begin_on_batch: int = 0,
        end_after_batch: Optional[int] = None,
    ) -> None:
        """Determined's own profiler, on the cluster; nothing in local training. Call it before fit()."""
        self._profiling = {
            "enabled": enabled,
            "sync_timings": sync_timings,
            "begin_on_batch": begin_on_batch,
            "end_after_batch": end_after_batch,
        }

    def fit(
        self,
        checkpoint_period: Optional[TrainUnit] = None,
        validation_period: Optional[TrainUnit] = None,
        max_length: Optional[TrainUnit] = None,
        reporting_period: TrainUnit = Batch(100),
        checkpoint_policy: str = "best",
        latest_checkpoint: Optional[str] = None,
        step_zero_validation: bool = False,
        test_mode: bool = False,
    ) -> None:
        """Trains for `max_length`, or on the cluster for what the searcher asks."""
        from determined import _loop

        _need_units(max_length=max_length, checkpoint_period=checkpoint_period, validation_period=validation_period, reporting_period=reporting_period)
        config = self._local_config(max_length, checkpoint_policy) if self._local else self._managed_config(
            max_length, test_mode, latest_checkpoint
        )
        if not isinstance(self._trial, PyTorchTrial):
            what = f"the class {self._trial.__name__}" if isinstance(self._trial, type) else f"a {type(self._trial).__name__}"
            raise TypeError(f"the Trainer takes a PyTorchTrial that was made with the context, not {what}")
        config.update(
            checkpoint_period=as_loop_unit(checkpoint_period),
            validation_period=as_loop_unit(validation_period),
            reporting_period=as_loop_unit(reporting_period),
            latest_checkpoint=latest_checkpoint,
            step_zero_validation=step_zero_validation,
            test_mode=test_mode,
            aggregation_frequency=self._context._aggregation_frequency,
            average_aggregated_gradients=True,
            trial_cls_spec=self._spec or f"{type(self._trial).__module__}:{type(self._trial).__qualname__}",
            is_trainer=not self._legacy,
            framework=f"torch-{torch.__version__}",
            code_dir=os.environ.get("DET_MODEL_DIR") or os.getcwd(),
        )
        if self._context._hparams is not None and self._context._exp_conf is not None:
            config.update(hparams=self._context._hparams, experiment_config=self._context._exp_conf)
        if self._profiling is not None and not self._local:
            config["experiment_config"] = {**self._context.get_experiment_config(), "profiling": self._profiling}
        client = Client(self._trial, self._context)
        try:
            invalid = _loop.run(config, client)
        except RuntimeError as e:
            kind = _kind(e)
            if kind is None:
                raise
            raise kind(str(e)) from None
        finally:
            client.stop_loaders()
            self._context._loop = None
            torch.set_grad_enabled(True)
        if invalid is not None:
            raise _Reported(invalid)

    def _ranks(self) -> Dict[str, Any]:
        d = self._context.distributed
        return {
            "rank": d.rank,
            "size": d.size,
            "local_rank": d.local_rank,
            "local_size": d.local_size,
            **d._loop_address(),
        }

    def _local_config(self, max_length: Optional[TrainUnit], checkpoint_policy: str) -> Dict[str, Any]:
        if max_length is None:
            raise ValueError("fit() needs max_length in local training, e.g. Batch(100) or Epoch(2)")
        _arguments.check_length(max_length)
        if checkpoint_policy not in ("best", "all", "none"):
            logger.warning(f'fit(checkpoint_policy={checkpoint_policy!r}) is none of "best", "all" and "none": taken as "none"')
        if checkpoint_policy == "best":
            logger.warning('checkpoint_policy "best" needs a searcher metric: local training keeps all checkpoints')
            checkpoint_policy = "all"
        return {
            "managed": False,
            "max_length": (max_length._kind, max_length.value),
            "checkpoint_policy": checkpoint_policy,
            **self._ranks(),
        }

    def _managed_config(
        self, max_length: Optional[TrainUnit], test_mode: bool, latest_checkpoint: Optional[str]
    ) -> Dict[str, Any]:
        if test_mode:
            raise ValueError("test_mode is for local training")
        if max_length is not None:
            logger.warning("max_length is ignored on the cluster: the searcher of the configuration decides")
        if latest_checkpoint is None and self._info is not None and self._info.latest_checkpoint is not None:
            logger.warning(
                "fit() was given no latest_checkpoint although this trial has one: training starts from the beginning. "
                "Pass latest_checkpoint=determined.get_cluster_info().latest_checkpoint to go on from it"
            )
        return {"managed": True, **self._ranks()}


def _need_units(**given: Any) -> None:
    for name, unit in given.items():
        if unit is not None and not isinstance(unit, TrainUnit):
            raise TypeError(f"fit({name}=...) takes a determined.pytorch.Batch or Epoch, such as Batch(100), not {unit!r}")


#: What the loop itself finds wrong is a RuntimeError, but for these, by what it says.
_KINDS = {"inconsistent training metrics": CheckFailedError, "Validation metric names must match": ValueError}


def _kind(e: RuntimeError) -> Optional[Type[Exception]]:
    return next((kind for text, kind in _KINDS.items() if text in str(e)), None)


class _Reported(det.InvalidHP):
    """An InvalidHP that the loop has told the master already."""

    _reported = True


def _gpu_count(info: Optional[det.ClusterInfo]) -> int:
    if info is not None and info._resources_info is not None:
        return len(info.gpu_uuids)
    return torch.cuda.device_count()


def _by_torch() -> core.DistributedContext:
    if not torch.distributed.is_initialized():
        _libuv.spare()
        torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return core.DistributedContext.from_torch_distributed()


def _local_ranks() -> core.DistributedContext:
    """Processes that torchrun started train together: apart, each would train the same."""
    set_by_torchrun = {"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"}
    if int(os.environ.get("WORLD_SIZE") or 1) > 1 and set_by_torchrun <= os.environ.keys():
        return _by_torch()
    return core.DummyDistributedContext()


def _distributed(managed: bool, given: Optional[core.DistributedContext]) -> core.DistributedContext:
    if not managed:
        return given or _local_ranks()
    if os.environ.get("USE_HOROVOD"):
        import horovod.torch as hvd

        hvd.init()
        return core.DistributedContext.from_horovod(hvd)
    if os.environ.get("USE_TORCH_DISTRIBUTED"):
        return _by_torch()
    info = det.get_cluster_info()
    assert info is not None
    if len(info.container_addrs) > 1 or len(info.slot_ids) > 1:
        raise ValueError(
            "this trial has several slots, but its processes were not started as ranks: use the entrypoint "
            '"python3 -m determined.launch.torch_distributed python3 train.py"'
        )
    return core.DummyDistributedContext()


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.random.manual_seed(seed)


def init(
    *,
    hparams: Optional[Dict[str, Any]] = None,
    exp_conf: Optional[Dict[str, Any]] = None,
    distributed: Optional[core.DistributedContext] = None,
    aggregation_frequency: int = 1,
    enable_tensorboard_logging: bool = True,
) -> ContextManager[PyTorchTrialContext]:
    """The context of a trial, for as long as it trains.

    `distributed` is for local training, where ranks were started by other means than torchrun.
    """
    opened = _open(hparams, exp_conf, distributed, aggregation_frequency, enable_tensorboard_logging)
    return _arguments.Entered(opened, "determined.pytorch.init")


@contextlib.contextmanager
def _open(
    hparams: Optional[Dict[str, Any]],
    exp_conf: Optional[Dict[str, Any]],
    distributed: Optional[core.DistributedContext],
    aggregation_frequency: int,
    enable_tensorboard_logging: bool,
) -> Iterator[PyTorchTrialContext]:
    info = det.get_cluster_info()
    managed = info is not None and info.task_type == "TRIAL"
    _arguments.check_init(hparams, None if managed else exp_conf, None if managed else distributed, aggregation_frequency)
    trial = info.trial if managed and info is not None else None
    if trial is not None:
        _seed(trial.trial_seed)
        exp_conf = trial._config
    group = _distributed(managed, distributed)
    with core.init(
        distributed=group,
        preempt_mode=core.PreemptMode.WorkersAskChief,
        tensorboard_mode=core.TensorboardMode.MANUAL,
    ) as core_context:
        context = PyTorchTrialContext(
            core_context=core_context,
            trial_seed=trial.trial_seed if trial else None,
            hparams=hparams,
            slots_per_trial=group.get_size(),
            num_gpus=_gpu_count(info),
            exp_conf=exp_conf,
            aggregation_frequency=aggregation_frequency,
            steps_completed=trial._steps_completed if trial else 0,
            managed_training=True,
            debug_enabled=trial._debug if trial else False,
            enable_tensorboard_logging=enable_tensorboard_logging,
        )
        try:
            with _mistakes.explained():
                yield context
        finally:
            context._close_tensorboard()
