"""A PyTorchTrial as the loop's client: each method is one hook of the loop, which alone knows the order."""

import contextlib
import inspect
import json
import logging
import os
import pickle
import random
import warnings
from typing import IO, Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.utils.data

from determined import errors
from determined.pytorch import _arguments, _buffers, _horovod, _mistakes, _open_grads, _reducer, _torch_file
from determined.pytorch._callback import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._data import DataLoader, Feed
from determined.pytorch._lr import saved_state
from determined.pytorch._reducer import Reducer
from determined.pytorch._trial import PyTorchTrial

logger = logging.getLogger("determined.pytorch")

STATE_FILES = ("state_dict.pth", "state-dict.pth", "determined/state_dict.pth", "pedl/state_dict.pth", "checkpoint.pt")
STATE_NAMES = ("trial_id", "last_ckpt", "step_id", "last_val", "batches_trained", "epochs_trained")
PASSED_ON = (
    "on_trial_startup",
    "on_trial_shutdown",
    "on_training_start",
    "on_training_epoch_start",
    "on_training_epoch_end",
    "on_training_workload_end",
    "on_validation_start",
    "on_validation_epoch_start",
    "on_validation_epoch_end",
    "on_validation_end",
    "on_checkpoint_upload_end",
)


def is_overridden(method: Any, base: type) -> bool:
    """Is the method another class's than the base's?"""
    return callable(method) and method.__qualname__.split(".")[0] != base.__name__


def _named(value: Any) -> Any:
    """JSON has no NaN: the loop reads these texts as the numbers they name."""
    if isinstance(value, float) and not np.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {k: _named(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named(v) for v in value]
    return value


def plain(value: Any) -> Any:
    """A metric as the loop takes it: a number, None, a list of numbers, or a text of JSON."""
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            return value.item()
        value = _reducer.to_numpy(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        value = _as_array(value)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return value.item()
        numbers = value.dtype.kind in "fiub"
        if numbers and (value.ndim == 1 or not np.isfinite(value).all()):
            return value.ravel().tolist()  # JSON has no NaN; averages do not ask for the shape
        value = value.tolist()
    return json.dumps(_named(value), default=str)


def _as_numpy(value: Any) -> Any:
    """A metric that went through the loop, as callbacks expect it: with item(), mean() and shape."""
    if isinstance(value, list):
        return _as_array(value)
    return np.float64(value) if isinstance(value, float) else value


def _as_array(value: List[Any]) -> Any:
    """Nested lists of numbers as an array; other lists as they are."""
    try:
        array = np.asarray(value)
    except ValueError:
        return value
    return array if array.dtype.kind in "fiub" else value


class Client:
    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        self.trial = trial
        self.context = context
        self.plain = plain
        self._callbacks: Dict[str, PyTorchCallback] = {}
        self._training: Optional[Feed] = None
        self._validating: Optional[Feed] = None
        self._validation: Any = None
        self._loop: Any = None
        self._batches = 0  # of this process
        self._names: List[str] = []  # of the validation metrics
        self._outputs: Optional[List[Dict[str, Any]]] = None  # of a validation's batches, where a callback asks for them
        self._reduced: Dict[str, Any] = {}  # of this workload or validation, as the trial's reducers gave it
        self._grads: List[IO[bytes]] = []  # of every rank, for the next save(); and so:
        self._rng_states: List[Dict[str, Any]] = []
        self._parallel = [m for m in context.models if isinstance(m, torch.nn.parallel.DistributedDataParallel)]
        whole = is_overridden(trial.evaluate_full_dataset, PyTorchTrial)
        if whole == is_overridden(trial.evaluate_batch, PyTorchTrial):
            raise _mistakes.no_evaluation(type(trial), whole)
        self.evaluate_batch = None if whole else self._evaluate_batch
        self._with_index = not whole and _takes_index(trial.evaluate_batch)
        self._check()

    def _check(self) -> None:
        _mistakes.refuse_old_interface(type(self.trial))
        if not self.context.models:
            raise _mistakes.no_model(type(self.trial))
        if not self.context.optimizers:
            raise _mistakes.no_optimizer(type(self.trial))
        _arguments.check_methods(self.trial, None if self.evaluate_batch is None else self._with_index)
        _mistakes.check_scheduler(type(self.trial), len(self.context.lr_schedulers))
        _mistakes.check_process_group(self.context.distributed.size, self.context._had_group)
        _mistakes.check_pinned_gpus()

    # ---- life ----

    def create(self, loop: Any) -> None:
        self._loop = self.context._loop = loop
        loop.stop_requested = self.context.get_stop_requested()
        if self.context._apex is not None:
            self.context._apex.begin()

    def callbacks(self) -> List[Dict[str, Callable[..., Any]]]:
        self._callbacks = _mistakes.check_callbacks(self.trial.build_callbacks(), PyTorchCallback)
        for callback in self._callbacks.values():
            _arguments.check_hooks(callback, PyTorchCallback)
        own: Dict[str, Callable[..., Any]] = {"on_trial_shutdown": self._end_trace}  # shutdown hooks run in reverse order
        if self.context._horovod is not None:
            own["on_training_start"] = self._broadcast
        return [own, *(self._hooks(cb) for cb in self._callbacks.values())]

    def _broadcast(self) -> None:
        _horovod.broadcast(self.context._horovod, self.context.models, self.context.optimizers)

    def _hooks(self, cb: PyTorchCallback) -> Dict[str, Callable[..., Any]]:
        """Only the hooks that are overridden: for the others the loop need not make arguments."""
        hooks = {n: getattr(cb, n) for n in PASSED_ON if is_overridden(getattr(cb, n, None), PyTorchCallback)}
        if "on_training_epoch_start" in hooks and not inspect.signature(cb.on_training_epoch_start).parameters:
            logger.warning("on_training_epoch_start() without epoch_idx is deprecated: add the parameter")
            hooks["on_training_epoch_start"] = lambda epoch_idx: cb.on_training_epoch_start()  # type: ignore
        if "on_training_workload_end" in hooks:
            hooks["on_training_workload_end"] = lambda avg, batches: cb.on_training_workload_end(
                avg_metrics=self._as_given(avg), batch_metrics=[{k: _as_numpy(v) for k, v in b.items()} for b in batches]
            )
        if "on_validation_end" in hooks:
            hooks["on_validation_end"] = lambda metrics: cb.on_validation_end(self._as_given(metrics))
        if "on_validation_epoch_end" in hooks:
            self._outputs = []
            hooks["on_validation_epoch_end"] = lambda outputs: cb.on_validation_epoch_end(self._outputs)  # type: ignore
        if "on_checkpoint_upload_end" in hooks:
            hooks["on_checkpoint_upload_end"] = lambda uuid: cb.on_checkpoint_upload_end(uuid=uuid)
        written = [
            getattr(cb, n)
            for n in ("on_checkpoint_end", "on_checkpoint_write_end")
            if is_overridden(getattr(cb, n, None), PyTorchCallback)
        ]
        if is_overridden(getattr(cb, "on_checkpoint_end", None), PyTorchCallback):
            warnings.warn("on_checkpoint_end() is deprecated: use on_checkpoint_write_end()", FutureWarning)
        if written:
            hooks["on_checkpoint_write_end"] = lambda directory: [hook(directory) for hook in written]
        return hooks

    def _as_given(self, metrics: Dict[str, Any]) -> Dict[str, Any]:
        """For callbacks: what the loop made ready for reports, with arrays again, and the reducers' own results."""
        own = {k: _reducer.to_numpy(v) for k, v in self._reduced.items() if k in metrics}
        return {**{k: _as_array(v) if isinstance(v, list) else v for k, v in metrics.items()}, **own}

    def _keep_reduced(self, reduce: Callable[..., Dict[str, Any]]) -> Callable[..., Dict[str, Any]]:
        def run(blobs: Any) -> Dict[str, Any]:
            result = reduce(blobs)
            self._reduced.update(result)
            return result

        return run

    def reducers(self) -> List[Dict[str, Any]]:
        return [
            {
                "name": r.name,
                "for_training": int(r.for_training),
                "for_validation": int(r.for_validation),
                "reset": r.reset,
                "per_slot_reduce": r.per_slot_reduce,
                "cross_slot_reduce": self._keep_reduced(r.cross_slot_reduce),
            }
            for r in self.context._reducers
        ]

    def lr_schedulers(self) -> List[Dict[str, Any]]:
        return [
            {"mode": lr._step_mode.value, "frequency": lr._frequency, "step": lr.step}
            for lr in self.context.lr_schedulers
        ]

    # ---- TensorBoard ----

    def _end_trace(self) -> None:
        """A window of the profiler that is open at the end: written before the loop keeps the files a last time."""
        try:
            self.context._stop_profiler()
        except (OSError, RuntimeError) as e:
            self._tensorboard_failed(e)

    def wants_metrics(self) -> bool:
        return self.context.get_enable_tensorboard_logging()

    def write_metrics(self, steps: int, metrics: Dict[str, Any], rows: Optional[List[Dict[str, Any]]]) -> None:
        """What is being reported: of training, every batch's metrics, and of the averages what no batch has."""
        try:
            self._write_metrics(self.context.get_tensorboard_writer(), steps, metrics, rows)
        except (OSError, RuntimeError) as e:
            self._tensorboard_failed(e)

    def _tensorboard_failed(self, error: Exception) -> None:
        """It is a view of the training, not a part of it: this is said once, and training goes on."""
        if self.context.get_enable_tensorboard_logging():
            logger.warning(f"TensorBoard: no more metrics are written: {error}")
            self.context.set_enable_tensorboard_logging(False)

    def _write_metrics(
        self, writer: Any, steps: int, metrics: Dict[str, Any], rows: Optional[List[Dict[str, Any]]]
    ) -> None:
        def write(name: str, value: Any, step: int) -> None:
            if isinstance(value, (int, float)):
                writer.add_scalar("Determined/" + name, value, step)

        for i, row in enumerate(rows or []):
            for name, value in row.items():
                write(name, value, steps - len(rows or []) + i)
        of_batches = rows[0] if rows else {}
        for name, value in metrics.items():
            if rows is None and not name.startswith("val"):
                name = "val_" + name
            if name not in of_batches:
                write(name, value, steps)

    def tensorboard_dir(self) -> Optional[str]:
        """After every boundary: whose files the loop keeps in the checkpoint store."""
        if self.context._tbd_writer is not None:
            try:
                self.context._tbd_writer.flush()
            except (OSError, RuntimeError) as e:
                self._tensorboard_failed(e)
        path = self.context.get_tensorboard_path()
        return str(path) if path is not None and path.is_dir() else None

    # ---- data ----

    def _move(self) -> Callable[[Any], Any]:
        return self.context.to_device if self.context.experimental._auto_to_device else lambda batch: batch

    def _build(self, method: str) -> Any:
        loader = getattr(self.trial, method)()
        if not isinstance(loader, DataLoader) and self.context.experimental._dataset_checks:
            raise RuntimeError(
                f"{method}() returned a {type(loader).__name__}, not a determined.pytorch.DataLoader, so it can be neither "
                "sharded nor resumed. Use determined.pytorch.DataLoader; or, if the loader does both itself, you can disable this "
                "check by calling context.experimental.disable_dataset_reproducibility_checks()"
            )
        return loader

    def build_training_loader(self) -> Feed:
        loader = self._build("build_training_data_loader")
        self._training = Feed(loader, self._move(), self.context.get_initial_batch())
        if self.context.distributed.size > 1:
            self._training.order_seed = self.context.distributed.broadcast(torch.initial_seed())
        return self._training

    def build_validation_loader(self) -> Feed:
        self._validation = self._build("build_validation_data_loader")
        if self.evaluate_batch is not None:
            loader = self._validation
            torch_like = isinstance(loader, (DataLoader, torch.utils.data.DataLoader))
            assert torch_like or not self.context.experimental._dataset_checks, "the validation loader is no DataLoader"
        self._validating = Feed(self._validation, self._move())
        self._validating.order_seed = self._training.order_seed if self._training is not None else None
        return self._validating

    def stop_loaders(self) -> None:
        for feed in (self._training, self._validating):
            if feed is not None:
                feed.stop()

    def batch_records(self, batch: Any) -> int:
        return self.trial.get_batch_length(batch)

    # ---- steps ----

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Dict[str, Any]:
        for model in self._parallel:
            model.require_backward_grad_sync = self._loop.is_update_batch
            model.require_forward_param_sync = True
        with self.context._profiled():
            metrics = self.trial.train_batch(batch=batch, epoch_idx=epoch_idx, batch_idx=batch_idx)
        self._batches += 1
        if self._batches <= _mistakes.STEP_WITHIN and self.context.distributed.get_rank() == 0:
            _mistakes.check_stepped(self._batches, self.context._stepped)
        if isinstance(metrics, torch.Tensor):
            return {"loss": metrics}
        if not isinstance(metrics, dict):
            raise TypeError(
                f"train_batch() must return a dict of metrics or a loss tensor, not {type(metrics).__name__}"
            )
        return metrics

    def _evaluate_batch(self, batch: Any, batch_idx: int) -> Dict[str, Any]:
        if self._with_index:
            metrics = self.trial.evaluate_batch(batch=batch, batch_idx=batch_idx)
        else:
            metrics = self.trial.evaluate_batch(batch=batch)  # type: ignore
        if not isinstance(metrics, dict):
            raise TypeError(f"evaluate_batch() must return a dict of metrics, not {type(metrics).__name__}")
        self._names = list(metrics)
        if self._outputs is not None:
            # A copy: the trial may go on to change a tensor in place.
            self._outputs.append({k: _reducer.to_numpy(v.clone() if isinstance(v, torch.Tensor) else v) for k, v in metrics.items()})
        return metrics

    def evaluate_full_dataset(self) -> Dict[str, Any]:
        loader = self._validation
        if isinstance(loader, DataLoader):
            loader = loader.get_data_loader()
        metrics = self.trial.evaluate_full_dataset(data_loader=loader)
        if not isinstance(metrics, dict):
            raise TypeError(f"evaluate_full_dataset() must return a dict of metrics, not {type(metrics).__name__}")
        for name in [name for name, value in metrics.items() if isinstance(value, bytes)]:
            logger.warning(f'the validation metric "{name}" is bytes, which no report can hold: it is left out')
            metrics = {k: v for k, v in metrics.items() if k != name}
        self._reduced.update(metrics)
        return metrics

    def reduction(self, metric: str) -> int:
        reducer = self.trial.evaluation_reducer()
        if isinstance(reducer, dict):
            if metric not in reducer:
                raise errors.InvalidExperimentException(
                    f'evaluation_reducer() gives no reducer for the metric "{metric}"; it names {sorted(reducer)}'
                )
            unknown = sorted(set(reducer) - set(self._names)) if self._names else []
            if unknown:
                raise errors.InvalidExperimentException(
                    f"evaluation_reducer() names {unknown}, which evaluate_batch() does not return; it returns {sorted(self._names)}"
                )
            reducer = reducer[metric]
        if not isinstance(reducer, Reducer):
            raise errors.InvalidExperimentException(
                f'evaluation_reducer() gives {reducer!r} for the metric "{metric}", which is no determined.pytorch.Reducer'
            )
        return reducer.value

    def set_training(self, training: bool) -> None:
        torch.set_grad_enabled(training)
        self._reduced = {}
        self._outputs = None if self._outputs is None else []
        for model in self.context.models:
            model.train(training)
        if not training:
            _buffers.share(self._parallel)
        elif self.context.distributed.rank == 0:
            _mistakes.check_frozen([m for m in self.context.models if hasattr(m, "_trained")])

    def scaler_update(self) -> None:
        if self.context._use_amp:
            self.context._scaler.update()

    # ---- local runs ----

    def reported(self, what: str, steps: int, value: Any) -> None:
        """The loop has nobody to report to: the context says what it would have reported."""
        train = self.context._core.train
        if what == "training":
            train.report_training_metrics(steps, value)
        elif what == "validation":
            train.report_validation_metrics(steps, value)
        else:
            train._report_checkpoint(steps, value)

    # ---- state ----

    def before_save(self) -> None:
        """On every rank. Horovod keeps what it has added up where nobody can reach it."""
        ranks = self.context.distributed
        self._rng_states = (ranks.gather(self._rng_state()) or []) if ranks.size > 1 else []
        if not self._loop.is_update_batch and self.context._horovod is None:
            self._grads = _open_grads.gather(self.context.models, self._trial_id(), ranks)

    def _trial_id(self) -> int:
        return getattr(self.context._core.train, "_trial_id", 0)

    def save(self, directory: str) -> None:
        checkpoint: Dict[str, Any] = {
            "models_state_dict": [m.state_dict() for m in self.context.models],
            "optimizers_state_dict": [o.state_dict() for o in self.context.optimizers],
            "lr_schedulers_state_dict": [saved_state(lr) for lr in self.context.lr_schedulers],
            "callbacks": {name: cb.state_dict() for name, cb in self._callbacks.items()},
            "rng_state": self._rng_state(),
        }
        if self.context._scaler is not None:
            checkpoint["scaler_state_dict"] = self.context._scaler.state_dict()
        if self.context._apex is not None:
            checkpoint["amp_state"] = self.context._apex.state_dict()
        if self._rng_states:
            checkpoint["rng_state"]["of_ranks"] = self._rng_states
        for cb in self._callbacks.values():
            cb.on_checkpoint_save_start(checkpoint)
        by = _pickle()
        try:
            with open(os.path.join(directory, STATE_FILES[0]), "wb") as f:
                _torch_file.save(checkpoint, f, pickle_module=by)
        except (AttributeError, TypeError, pickle.PicklingError) as e:
            raise pickle.PicklingError(
                f"{e}: the checkpoint's {_torch_file.culprit(checkpoint, pickle_module=by)} must be picklable; "
                "functions and classes that are defined within others are, where the package cloudpickle is installed"
            ) from e
        _open_grads.save(self._grads, directory)
        self._grads, self._rng_states = [], []

    def _rng_state(self) -> Dict[str, Any]:
        state: Dict[str, Any] = {
            "cpu_rng_state": torch.random.get_rng_state(),
            "np_rng_state": _numpy_state(),
            "random_rng_state": random.getstate(),
        }
        if self.context.device.type == "cuda":
            state["gpu_rng_state"] = torch.cuda.get_rng_state(self.context.device)
        if self._training is not None:
            state["shuffle_state"] = self._training.state_dict()
        if self._validating is not None:
            state["validation_generators"] = self._validating.generator_states()
            state["validation_dataset"] = self._validating.dataset_generators()
        return state

    def load(self, directory: str) -> None:
        found = [f for f in STATE_FILES if os.path.exists(os.path.join(directory, f))]
        if not found:
            raise FileNotFoundError(f"the checkpoint in {directory} has no {STATE_FILES[0]}")
        checkpoint = torch.load(os.path.join(directory, found[0]), map_location="cpu", weights_only=False)
        if not isinstance(checkpoint, dict):
            raise TypeError(f"{found[0]} holds a {type(checkpoint).__name__}, not a dict of states")
        for cb in self._callbacks.values():
            cb.on_checkpoint_load_start(checkpoint)
        self._load_models(checkpoint)
        rates = _mistakes.learning_rates(self.context.optimizers)
        self._load_many(checkpoint, "optimizers_state_dict", "optimizer_state_dict", self.context.optimizers)
        self._check_rates(directory, rates)
        self._load_many(checkpoint, "lr_schedulers_state_dict", "lr_scheduler", self.context.lr_schedulers)
        self._load_scaler(checkpoint)
        self._load_rng(checkpoint.get("rng_state"))
        _open_grads.warn_of_others(checkpoint, self._trial_id())
        _open_grads.restore(self.context.models, directory, self._trial_id(), self.context.distributed)
        self._load_callbacks(checkpoint.get("callbacks") or {})

    def _states(self, checkpoint: Dict[str, Any], many: str, one: str, targets: List[Any]) -> List[Any]:
        """The states of a checkpoint, under the name of today or of single-model trials."""
        if many in checkpoint and one in checkpoint:
            raise RuntimeError(f"the checkpoint has both {many} and {one}")
        if one in checkpoint:
            if len(targets) != 1:
                raise RuntimeError(f"the checkpoint has one {one}, the trial has {len(targets)}")
            return [checkpoint[one]]
        states = checkpoint.get(many, [])
        if len(states) < len(targets):
            raise RuntimeError(f"{many} of the checkpoint has {len(states)} entries, the trial needs {len(targets)}")
        return list(states)

    def _load_models(self, checkpoint: Dict[str, Any]) -> None:
        for model, state in zip(
            self.context.models,
            self._states(checkpoint, "models_state_dict", "model_state_dict", self.context.models),
        ):
            load_model(model, state)

    def _load_many(self, checkpoint: Dict[str, Any], many: str, one: str, targets: List[Any]) -> None:
        for target, state in zip(targets, self._states(checkpoint, many, one, targets)):
            target.load_state_dict(state)

    def _check_rates(self, directory: str, wanted: List[Any]) -> None:
        """A trial that goes on has the rates it had come to."""
        state = self.load_state(directory)
        is_others = state is not None and state[0] != self._trial_id()
        if is_others and self.context.distributed.get_rank() == 0:
            _mistakes.check_learning_rates(wanted, _mistakes.learning_rates(self.context.optimizers))

    def _load_scaler(self, checkpoint: Dict[str, Any]) -> None:
        for key, target, what in (
            ("scaler_state_dict", self.context._scaler, "a gradient scaler"),
            ("amp_state", self.context._apex, "apex's mixed precision"),
        ):
            saved = checkpoint.get(key)
            if saved is not None and target is not None:
                target.load_state_dict(saved)
            elif (saved is None) != (target is None):
                side = "checkpoint" if saved is not None else "trial"
                logger.warning(f"only the {side} has {what}; its state is not restored")

    def _load_rng(self, saved: Optional[Dict[str, Any]]) -> None:
        if not saved:
            logger.warning("the checkpoint has no random state: what is drawn from now on differs")
            return
        ranks = self.context.distributed
        own = saved.get("of_ranks") or []
        state: Dict[str, Any] = own[ranks.rank] if len(own) == ranks.size else saved  # the chief's, for all
        np.random.set_state(state["np_rng_state"])
        random.setstate(state["random_rng_state"])
        torch.random.set_rng_state(state["cpu_rng_state"])
        if self.context.device.type == "cuda":
            if "gpu_rng_state" in state:
                torch.cuda.set_rng_state(state["gpu_rng_state"], device=self.context.device)
            else:
                logger.warning("the checkpoint was made without a GPU: the GPU's random state is not restored")
        if self._training is not None:
            self._training.load_state_dict(state.get("shuffle_state") or {})
        if self._validating is not None:
            self._validating.set_generators(state.get("validation_generators", []))
            self._validating.set_dataset_generators(state.get("validation_dataset", []))
            self._validating.order_seed = self._training.order_seed if self._training is not None else None

    def _load_callbacks(self, states: Dict[str, Any]) -> None:
        for name, cb in self._callbacks.items():
            if name in states:
                cb.load_state_dict(states[name])
            elif is_overridden(cb.load_state_dict, PyTorchCallback):
                logger.warning(f'the checkpoint has no state of the callback "{name}"')

    def save_state(self, directory: str, state: Dict[str, int]) -> None:
        with open(os.path.join(directory, "trial_state.pkl"), "wb") as f:
            pickle.dump(state, f)

    def load_state(self, directory: str) -> Optional[Tuple[int, ...]]:
        for name in ("trial_state.pkl", "workload_sequencer.pkl"):
            with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, name), "rb") as f:
                state = pickle.load(f)
                state.setdefault("batches_trained", state.get("steps_completed", 0))
                return tuple(int(state.get(n) or 0) for n in STATE_NAMES)
        return None


def load_model(model: torch.nn.Module, state: Dict[str, Any]) -> None:
    """Loads the state, with or without the prefix that data parallelism gives every name."""
    try:
        model.load_state_dict(state)
    except RuntimeError:
        prefix = "module."
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            other = {prefix + k: v for k, v in state.items()}
        else:
            other = {k[len(prefix) :] if k.startswith(prefix) else k: v for k, v in state.items()}
        if other.keys() == state.keys():
            raise
        model.load_state_dict(other)


def _numpy_state() -> Tuple[Any, ...]:
    """Of numbers alone: a pickled array binds the file to one generation of numpy, and torch.load(weights_only=True) refuses it."""
    state: Any = np.random.get_state()
    return (state[0], state[1].tolist(), *state[2:])


def _takes_index(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters
    return "batch_idx" in parameters or len(parameters) > 1


def _pickle() -> Any:
    """cloudpickle where it is installed, so that callbacks' states may hold local classes."""
    try:
        import cloudpickle

        return cloudpickle
    except ImportError:
        return pickle
