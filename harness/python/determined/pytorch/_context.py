"""What a trial is given: hyperparameters, ranks, wrapping, steps."""

import contextlib
import copy
import functools
import logging
import pathlib
import shutil
import socket
import types
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

import torch
from torch import nn

import determined as det
from determined import errors, tensorboard
from determined.pytorch import _apex, _arguments, _buckets, _horovod, _mistakes, _reducer
from determined.pytorch._data import to_device
from determined.pytorch._experimental import PyTorchExperimentalContext
from determined.pytorch._lr import LRScheduler
from determined.pytorch._older import OlderContext
from determined.pytorch._reducer import MetricReducer, WrappedReducer

logger = logging.getLogger("determined.pytorch")


def _to_float32(value: Any) -> Any:
    """Half-precision tensors of a model's output as float32, in whatever they come."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
    if isinstance(value, dict):
        converted = copy.copy(value)
        for k, v in value.items():
            converted[k] = _to_float32(v)
        return converted
    if isinstance(value, (list, tuple)):
        make = getattr(value, "_make", type(value))  # of named tuples
        return make(_to_float32(v) for v in value)
    return value


class _TransparentDDP(nn.parallel.DistributedDataParallel):
    """DistributedDataParallel that gives the inner module's attributes as its own."""

    _trained: FrozenSet[str]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


class PyTorchTrialContext(OlderContext):
    """Made by determined.pytorch.init(), or for a trial of the cluster."""

    def __init__(
        self,
        core_context: Any,
        trial_seed: Optional[int],
        hparams: Optional[Dict[str, Any]],
        slots_per_trial: int,
        num_gpus: int,
        exp_conf: Optional[Dict[str, Any]],
        aggregation_frequency: int,
        steps_completed: int,
        managed_training: bool,
        debug_enabled: bool,
        enable_tensorboard_logging: bool = True,
    ) -> None:
        self._core = core_context
        self.distributed = core_context.distributed
        self._had_group = _mistakes.has_process_group()
        self._trial_seed = trial_seed
        self._hparams = hparams
        self._slots_per_trial = slots_per_trial
        self._num_gpus = num_gpus
        self._exp_conf = exp_conf
        self._aggregation_frequency = aggregation_frequency
        self._steps_completed = steps_completed
        self._managed_training = managed_training
        self._debug_enabled = debug_enabled
        self._average_aggregated_gradients: Dict[int, bool] = {}
        self._default_average, self._default_fp16 = True, False
        self.models: List[nn.Module] = []
        self.optimizers: List[torch.optim.Optimizer] = []
        self.lr_schedulers: List[LRScheduler] = []
        self.profiler: Any = None
        self._profiler_scheduled = self._profiler_started = False
        self.experimental = PyTorchExperimentalContext(self)
        self._reducers: List[WrappedReducer] = []
        self._scaler: Any = None
        self._use_amp = False
        self._went_backward = self._stepped = False
        self._scaler_behind = False  # outside of training, where no loop calls its update(): a step was made since
        self._apex: Optional[_apex.Apex] = None
        self._horovod = _horovod.in_use(self.distributed.get_size())
        self._loop: Any = None  # determined._loop.Loop while training
        self._stop_requested = False
        self._tbd_writer: Any = None
        self.set_enable_tensorboard_logging(enable_tensorboard_logging)
        self._warned_types: Set[type] = set()
        self._per_slot_batch_size, self._global_batch_size = self._batch_sizes()
        self.device = self._init_device()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property that failed so
                return object.__getattribute__(self, name)
            raise _arguments.missing(self, name)

    def _batch_sizes(self) -> Tuple[Optional[int], Optional[int]]:
        wanted = (self._hparams or {}).get("global_batch_size")
        if not wanted:
            return None, None
        slots = max(self._slots_per_trial, 1)
        if not isinstance(wanted, int) or wanted < slots:
            raise errors.InvalidExperimentException(
                f"the hyperparameter global_batch_size must be a whole number of at least the {slots} slots, not {wanted!r}"
            )
        per_slot = wanted // slots
        if per_slot * slots != wanted:
            logger.warning(f"global_batch_size {wanted} is no multiple of {slots} slots: {per_slot * slots} is used")
        return per_slot, per_slot * slots

    def _init_device(self) -> torch.device:
        if self._num_gpus < 1 or not torch.cuda.is_available():
            return torch.device("cpu")
        if self.distributed.get_size() > 1:
            torch.cuda.set_device(self.distributed.get_local_rank())
            return torch.device("cuda", self.distributed.get_local_rank())
        return torch.device("cuda", 0)

    # ---- information ----

    def get_hparams(self) -> Dict[str, Any]:
        if self._hparams is None:
            raise ValueError("there are no hyperparameters: give them to determined.pytorch.init(hparams=...)")
        return self._hparams

    def get_hparam(self, name: str) -> Any:
        hparams = self.get_hparams()
        if name not in hparams:
            raise ValueError(f'there is no hyperparameter "{name}"; there are: {", ".join(sorted(hparams)) or "none"}')
        if name == "global_batch_size":
            logger.warning(
                "use context.get_per_slot_batch_size() or get_global_batch_size(): they follow the number of slots"
            )
        return hparams[name]

    def get_experiment_config(self) -> Dict[str, Any]:
        if self._exp_conf is None:
            raise ValueError("there is no experiment configuration: give it to determined.pytorch.init(exp_conf=...)")
        return self._exp_conf

    def get_data_config(self) -> Dict[str, Any]:
        return self.get_experiment_config().get("data") or {}  # type: ignore

    def get_global_batch_size(self) -> int:
        self._need_batch_size()
        return self._global_batch_size  # type: ignore

    def get_per_slot_batch_size(self) -> int:
        self._need_batch_size()
        return self._per_slot_batch_size  # type: ignore

    def _need_batch_size(self) -> None:
        if self._per_slot_batch_size is None:
            raise ValueError('there is no hyperparameter "global_batch_size", from which batch sizes follow')

    def get_experiment_id(self) -> int:
        return self._of_cluster("get_experiment_id", "_exp_id")

    def get_trial_id(self) -> int:
        return self._of_cluster("get_trial_id", "_trial_id")

    def _of_cluster(self, call: str, name: str) -> int:
        if not hasattr(self._core.train, name):
            raise AttributeError(f"context.{call}(): local training has none; ask determined.get_cluster_info() first, which is None then")
        return int(getattr(self._core.train, name))

    def get_trial_seed(self) -> int:
        if self._trial_seed is None:
            raise errors.InternalException("the trial seed is not set: there is none in local training")
        return self._trial_seed

    def get_initial_batch(self) -> int:
        return self._steps_completed

    def _batch_idx(self) -> int:
        if self._loop is None or self._loop.batch_idx < 0:
            raise errors.InternalException("training has not started yet")
        return int(self._loop.batch_idx)

    def _epoch_len(self) -> int:
        batch = self._batch_idx()
        assert batch >= 0
        return int(self._loop.epoch_len)

    def is_epoch_start(self) -> bool:
        return self._batch_idx() % self._epoch_len() == 0

    def is_epoch_end(self) -> bool:
        return self._batch_idx() % self._epoch_len() == self._epoch_len() - 1

    def current_train_epoch(self) -> int:
        return self._batch_idx() // self._epoch_len()

    def current_train_batch(self) -> int:
        return self._batch_idx()

    def get_tensorboard_path(self) -> Optional[pathlib.Path]:
        return self._core.train.get_tensorboard_path()  # type: ignore

    def get_tensorboard_writer(self) -> Any:
        """One writer for the trial, made on first use: torch's SummaryWriter, or one with its calls where the package
        tensorboard is not installed."""
        if self._tbd_writer is None:
            self._tbd_writer = tensorboard.open_writer(self.get_tensorboard_path())
            kept = self._loop.tensorboard_kept if self._loop is not None else None
            if kept and isinstance(self._tbd_writer, tensorboard.EventWriter):
                self._tbd_writer.remember(kept)
        return self._tbd_writer

    def _close_tensorboard(self) -> None:
        if self._tbd_writer is not None:
            with contextlib.suppress(OSError, RuntimeError):  # what went wrong was said
                self._tbd_writer.close()
        path = self.get_tensorboard_path()
        if path is not None and det.get_cluster_info() is not None:
            shutil.rmtree(path, ignore_errors=True)  # the checkpoint store has what is in it

    def get_enable_tensorboard_logging(self) -> bool:
        return self._enable_tensorboard_logging

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging: bool) -> None:
        assert isinstance(enable_tensorboard_logging, bool), "enable_tensorboard_logging must be a bool"
        self._enable_tensorboard_logging = enable_tensorboard_logging

    def get_stop_requested(self) -> bool:
        return self._stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Training ends at the next boundary, with a checkpoint."""
        assert isinstance(stop_requested, bool), "stop_requested must be a bool"
        logger.info("a stop of the trial was requested" if stop_requested else "the request to stop was withdrawn")
        self._stop_requested = stop_requested
        if self._loop is not None:
            self._loop.stop_requested = stop_requested

    # ---- wrapping ----

    def wrap_model(self, model: nn.Module) -> nn.Module:
        """The model on its device, and data-parallel where there are several ranks."""
        _arguments.check_model(model)
        self._refuse_after_apex("wrap_model")
        _mistakes.check_parallel(model)
        _mistakes.check_model_device(model, self.device)
        model = model.to(self.device)
        if self._use_amp:
            model = self.autocast_forward_pass(model)
        model = self._parallel(model)
        self.models.append(model)
        return model

    def _parallel(self, model: nn.Module) -> nn.Module:
        """The model itself where there is one rank."""
        if self.distributed.get_size() == 1 or self._horovod is not None:
            return model
        assert torch.distributed.is_initialized(), (
            "the context has several ranks, but torch.distributed is not initialized: call "
            "torch.distributed.init_process_group() before determined.pytorch.init(), or start the script by "
            "determined.launch.torch_distributed"
        )
        if not _mistakes.trained(model):  # a teacher: there is nothing to average, and torch refuses to try
            model._trained = frozenset()  # type: ignore
            return model
        ids = [self.device.index] if self.device.type == "cuda" else None
        parallel = _TransparentDDP(model, device_ids=ids)
        parallel._trained = _mistakes.trained(model)
        if self.device.type == "cpu" and self.distributed.get_size() > 2:
            _buckets.settle(parallel)
        return parallel

    def _refuse_after_apex(self, what: str) -> None:
        if self._apex is not None:
            raise errors.InvalidExperimentException(f"call {what}() before configure_apex_amp()")

    def autocast_forward_pass(self, module: nn.Module) -> nn.Module:
        """Its forward pass; that of a copy is the copy's own."""
        given = module.forward
        own = getattr(given, "__self__", None) is module
        forward = given.__func__ if own else lambda _, *args, **kwargs: given(*args, **kwargs)  # type: ignore
        dtype = torch.float16 if self.device.type == "cuda" else torch.bfloat16

        @functools.wraps(given)
        def in_mixed_precision(of: nn.Module, *args: Any, **kwargs: Any) -> Any:
            with torch.autocast(self.device.type, dtype=dtype, enabled=self._scaler.is_enabled()):
                return _to_float32(forward(of, *args, **kwargs))

        module.forward = types.MethodType(in_mixed_precision, module)  # type: ignore
        return module

    def wrap_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        backward_passes_per_step: int = 1,
        fp16_compression: Optional[bool] = None,
        average_aggregated_gradients: Optional[bool] = None,
    ) -> torch.optim.Optimizer:
        _arguments.check_optimizer(optimizer)
        self._refuse_after_apex("wrap_optimizer")
        if backward_passes_per_step < 1:
            raise errors.InvalidExperimentException(
                f"backward_passes_per_step must be at least 1, not {backward_passes_per_step}"
            )
        average = self._default_average if average_aggregated_gradients is None else average_aggregated_gradients
        if self._horovod is not None:
            fp16 = self._default_fp16 if fp16_compression is None else fp16_compression
            passes = backward_passes_per_step * self._aggregation_frequency
            optimizer = _horovod.wrap_optimizer(self._horovod, optimizer, self.models, passes, fp16)
        self._average_aggregated_gradients[id(optimizer)] = average
        self.optimizers.append(optimizer)
        return optimizer

    def wrap_lr_scheduler(
        self, lr_scheduler: Any, step_mode: LRScheduler.StepMode, frequency: int = 1
    ) -> Any:
        _arguments.check_scheduler(lr_scheduler, frequency)
        plateau = isinstance(lr_scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
        if plateau and step_mode != LRScheduler.StepMode.MANUAL_STEP:
            raise errors.InvalidExperimentException(
                "ReduceLROnPlateau steps with a metric, which the loop does not have: wrap it with MANUAL_STEP and call "
                "its step() yourself"
            )
        optimizer = getattr(lr_scheduler, "optimizer", None)
        if optimizer is not None and all(optimizer is not known for known in self.optimizers):
            raise errors.InvalidExperimentException(
                "the scheduler's optimizer is not wrapped: call context.wrap_optimizer() before wrap_lr_scheduler()"
            )
        self.lr_schedulers.append(LRScheduler(lr_scheduler, step_mode, frequency))
        return lr_scheduler

    def wrap_scaler(self, scaler: Any) -> Any:
        if self._scaler is not None:
            raise errors.InvalidExperimentException("a scaler is wrapped already; one serves all optimizers")
        if self._apex is not None:
            raise errors.InvalidExperimentException("apex and a gradient scaler exclude each other")
        if self.models:
            raise errors.InvalidExperimentException("call wrap_scaler() (or use_amp()) before wrap_model()")
        self._scaler = scaler
        return scaler

    def wrap_reducer(
        self,
        reducer: Union[MetricReducer, Callable[[List[Any]], Any]],
        name: Optional[str] = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> MetricReducer:
        return _reducer.wrap(self._reducers, reducer, name, for_training, for_validation)

    def reset_reducers(self) -> None:
        for r in self._reducers:
            r.reset()

    def reduce_metrics(self, for_training: bool) -> Dict[str, Any]:
        """The results of all reducers of training, or of validation; every rank must call it."""
        chosen = [r for r in self._reducers if (r.for_training if for_training else r.for_validation)]
        gathered = self.distributed.allgather([r.reducer.per_slot_reduce() for r in chosen])
        return self.run_cross_slot_reduction(chosen, gathered)

    def run_cross_slot_reduction(
        self, reducables: Sequence[WrappedReducer], gathered: Sequence[Sequence[Any]]
    ) -> Dict[str, Any]:
        metrics: Dict[str, Any] = {}
        for i, reducer in enumerate(reducables):
            metrics.update(reducer.result([rank[i] for rank in gathered]))
        return metrics

    def configure_apex_amp(
        self,
        models: Union[nn.Module, List[nn.Module]],
        optimizers: Union[torch.optim.Optimizer, List[torch.optim.Optimizer]],
        enabled: bool = True,
        opt_level: str = "O1",
        cast_model_type: Optional[torch.dtype] = None,
        patch_torch_functions: Optional[bool] = None,
        keep_batchnorm_fp32: Optional[Union[bool, str]] = None,
        master_weights: Optional[bool] = None,
        loss_scale: Optional[Union[float, str]] = None,
        cast_model_outputs: Optional[torch.dtype] = None,
        num_losses: int = 1,
        verbosity: int = 1,
        min_loss_scale: Optional[float] = None,
        max_loss_scale: float = 2.0**24,
    ) -> Tuple[Any, Any]:
        """Deprecated: use wrap_scaler() or experimental.use_amp()."""
        warnings.warn("configure_apex_amp() is deprecated: use experimental.use_amp()", FutureWarning)
        if not enabled:
            return models, optimizers
        self._check_apex(num_losses)
        amp = _apex.open_amp()
        old_models = models if isinstance(models, list) else [models]
        old_optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        new_models, new_optimizers = amp.initialize(
            models=[m.module if isinstance(m, _TransparentDDP) else m for m in old_models],
            optimizers=old_optimizers,
            enabled=enabled,
            opt_level=opt_level,
            cast_model_type=cast_model_type,
            patch_torch_functions=patch_torch_functions,
            keep_batchnorm_fp32=keep_batchnorm_fp32,
            master_weights=master_weights,
            loss_scale=loss_scale,
            cast_model_outputs=cast_model_outputs,
            num_losses=num_losses,
            verbosity=verbosity,
            min_loss_scale=min_loss_scale,
            max_loss_scale=max_loss_scale,
        )
        new_models = [self._parallel(m) for m in new_models]
        _apex.replace(self.models, old_models, new_models)
        _apex.replace(self.optimizers, old_optimizers, new_optimizers)
        for old, new in zip(old_optimizers, new_optimizers):
            self._average_aggregated_gradients[id(new)] = self._average_aggregated_gradients.get(id(old), self._default_average)
        self._apex = _apex.Apex(amp)
        return (
            new_models if isinstance(models, list) else new_models[0],
            new_optimizers if isinstance(optimizers, list) else new_optimizers[0],
        )

    def _check_apex(self, num_losses: int) -> None:
        ranks, often = self.distributed.get_size(), self._aggregation_frequency
        if self._scaler is not None and self._scaler.is_enabled():
            raise errors.InvalidExperimentException("apex and a gradient scaler exclude each other")
        if self._apex is not None:
            raise errors.InvalidExperimentException("configure_apex_amp() was called twice: give it all models and optimizers at once")
        if self._horovod is not None:
            raise errors.InvalidExperimentException("apex excludes Horovod: start the ranks by determined.launch.torch_distributed")
        if ranks > 1 and num_losses != 1:
            raise errors.InvalidExperimentException(f"apex with {ranks} ranks takes one loss, not num_losses={num_losses}")
        if ranks > 1 and often > 1:
            raise errors.InvalidExperimentException(f"apex with {ranks} ranks excludes an aggregation_frequency of {often}")
        if self.device.type != "cuda":
            raise errors.InvalidExperimentException("apex needs a GPU: on a CPU leave configure_apex_amp() out, or pass enabled=False")

    # ---- steps ----

    def backward(
        self,
        loss: torch.Tensor,
        gradient: Optional[torch.Tensor] = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """loss.backward(), of the scaled loss in mixed precision. Ranks meet on update batches only (see _client)."""
        self._went_backward = True
        if self._scaler_behind:  # not after the step: another optimizer's gradients may have the scale still
            self._scaler.update()
            self._scaler_behind = False
        if self._use_amp and self._scaler.is_enabled():
            loss = self._scaler.scale(loss)

        def run(scaled: torch.Tensor) -> None:
            scaled.backward(gradient=gradient, retain_graph=retain_graph, create_graph=create_graph)

        try:
            if self._apex is None:
                run(loss)
            else:
                self._apex.backward(loss, self.optimizers, self._batch_idx(), run)
        except Exception as e:
            clearer = _mistakes.explain_backward(loss, self.device)
            if clearer is None:
                raise
            raise clearer from e

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: Optional[Callable[[Iterable[torch.nn.Parameter]], None]] = None,
        auto_zero_grads: bool = True,
        scaler: Optional[Any] = None,
    ) -> None:
        """Steps on update batches; between them gradients add up."""
        _arguments.check_clip(clip_grads)
        average = self._average_aggregated_gradients.get(id(optimizer))
        if average is None:
            raise errors.InvalidExperimentException(
                "step_optimizer() was given an optimizer that is not wrapped: use what context.wrap_optimizer() returned"
            )
        if not auto_zero_grads and self._aggregation_frequency > 1:
            raise errors.InvalidExperimentException(
                "step_optimizer(auto_zero_grads=False) excludes an aggregation_frequency above 1: gradients add up between steps"
            )
        if self._loop is None and self._managed_training:
            raise errors.InternalException("training has not started yet")
        if not self._stepped and self._loop is not None and self.distributed.get_rank() == 0:
            _mistakes.check_gradients(optimizer, self._went_backward)
        self._stepped = True
        if self._use_amp and scaler is None:
            scaler = self._scaler

        def clip() -> None:
            if self._use_amp:
                scaler.unscale_(optimizer)  # type: ignore
            clip_grads(_params(optimizer) if self._apex is None else self._apex.parameters(optimizer))  # type: ignore

        step = functools.partial(scaler.step, optimizer) if scaler is not None else optimizer.step
        if self._loop is None:  # a context for use outside of training: every batch is an update
            if clip_grads is not None:
                clip()
            step()
            self._scaler_behind = self._use_amp
            if auto_zero_grads:
                optimizer.zero_grad()
            return
        synchronize = None
        if self._horovod is not None:
            synchronize, step = optimizer.synchronize, _horovod.without_synchronizing(optimizer, step)  # type: ignore
        self._loop.step_optimizer(
            synchronize,
            functools.partial(_scale_grads, optimizer) if average else None,
            clip if clip_grads is not None else None,
            step,
            optimizer.zero_grad,
            not auto_zero_grads,
        )

    def to_device(self, data: Any) -> Any:
        return to_device(data, self.device, self._warned_types)

    # ---- torch's profiler ----

    def set_profiler(self, *args: Any, **kwargs: Any) -> None:
        """torch.profiler.profile(...) whose traces go to the trial's TensorBoard directory.

        With a schedule, its steps are batches; without one, every batch is a trace of its own.
        """
        path = self.get_tensorboard_path()
        worker = f"{socket.gethostname()}#{self.distributed.get_rank()}"
        kwargs["on_trace_ready"] = torch.profiler.tensorboard_trace_handler(str(path or "runs"), worker)
        try:
            self.profiler = torch.profiler.profile(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"context.set_profiler() takes the arguments of torch.profiler.profile(), by name: {e}") from e
        self._profiler_scheduled = kwargs.get("schedule") is not None
        self._profiler_started = False

    @contextlib.contextmanager
    def _profiled(self) -> Iterator[None]:
        """Around every train_batch()."""
        if self.profiler is None:
            yield
            return
        if not self._profiler_started:
            self.profiler.start()
            self._profiler_started = True
        yield
        self.profiler.step()
        if not self._profiler_scheduled:
            self._stop_profiler()

    def _stop_profiler(self) -> None:
        if self.profiler is not None and self._profiler_started:
            self.profiler.stop()
            self._profiler_started = False


def _params(optimizer: torch.optim.Optimizer) -> Iterable[torch.nn.Parameter]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _scale_grads(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Gradients are divided, not multiplied by the rounded factor: as the reference arithmetic does."""
    divisor = round(1 / factor)
    for p in _params(optimizer):
        if p.grad is not None:
            p.grad.data.div_(divisor)

