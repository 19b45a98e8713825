"""core.init(): everything a script needs to live on a cluster, without a training loop of ours."""

import faulthandler
import logging
import os
import signal
import sys
import threading
from typing import Any, Dict, Optional, Union

import determined as det
from determined.core._alive import Alive
from determined.core._checkpoint import CheckpointContext, DummyCheckpointContext
from determined.core._distributed import DistributedContext, DummyDistributedContext
from determined.core._preempt import DummyPreemptContext, PreemptContext, PreemptMode
from determined.core._searcher import DummySearcherContext, SearcherContext
from determined.core._session import Session
from determined.core._storage import ended, open_storage
from determined.core._tensorboard import TensorboardFiles, tensorboard_path
from determined.core._train import DummyTrainContext, EarlyExitReason, TensorboardMode, TrainContext

logger = logging.getLogger("determined.core")


class ExperimentalCoreContext:
    """Parts whose interface may still change: none."""


class DummyExperimentalCoreContext(ExperimentalCoreContext):
    pass


class Context:
    """The contexts of a task; also a context manager, which starts and closes them."""

    def __init__(
        self,
        checkpoint: CheckpointContext,
        distributed: Optional[DistributedContext] = None,
        preempt: Optional[PreemptContext] = None,
        train: Optional[TrainContext] = None,
        searcher: Optional[SearcherContext] = None,
        info: Optional[det.ClusterInfo] = None,
        experimental: Optional[ExperimentalCoreContext] = None,
    ) -> None:
        self.checkpoint = checkpoint
        self.distributed = distributed or DummyDistributedContext()
        self.preempt = preempt or DummyPreemptContext(self.distributed)
        self.train = train or DummyTrainContext()
        self.searcher = searcher or DummySearcherContext(self.distributed)
        self.info = info
        self.experimental = experimental or DummyExperimentalCoreContext()

    def start(self) -> None:
        self.preempt.start()

    def close(self, exc_type: Any = None, exc_val: Any = None, exc_tb: Any = None) -> None:
        self.preempt.close()
        self.train._close()
        self.distributed.close()

    def __enter__(self) -> "Context":
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        reported = getattr(exc_val, "_reported", False)
        invalid = isinstance(exc_val, det.InvalidHP)
        try:
            if invalid and not reported:
                self.train._invalid_for = str(exc_val)  # type: ignore
                self.train.report_early_exit(EarlyExitReason.INVALID_HP)
        finally:
            self.close()
        ended(exc_val)
        if invalid:
            logger.info(f"invalid hyperparameters: {exc_val}")
            sys.exit(0)


def _print_stacks_on_signal() -> None:
    """SIGUSR1 prints the stack of every thread."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)


def _managed(
    info: det.ClusterInfo,
    distributed: Optional[DistributedContext],
    checkpoint_storage: Any,
    preempt_mode: PreemptMode,
    tensorboard_mode: TensorboardMode,
) -> Context:
    slots = sum(info.container_slot_counts) if info.task_type == "TRIAL" else len(info.slot_ids)
    if distributed is None:
        if slots > 1:
            raise ValueError("this task has several slots: give core.init() a DistributedContext")
        distributed = DummyDistributedContext()
    master = (info.master_url, info.session_token, info.master_cert_file, info.master_cert_name)
    session = Session(*master)
    if info.task_type != "TRIAL":
        store = open_storage(checkpoint_storage)
        preempt = DummyPreemptContext(distributed, preempt_mode)
        return Context(DummyCheckpointContext(distributed, store), distributed, preempt, info=info)
    trial = info.trial
    if isinstance(checkpoint_storage, dict) and checkpoint_storage.get("type") == "shared_fs":
        raise ValueError("checkpoint_storage of type shared_fs cannot be given here: name its directory")
    configured = trial._config.get("checkpoint_storage")
    alive = Alive(distributed.rank == 0 and (trial._config.get("stall_timeout") or 0) > 0)
    preempt_context = PreemptContext(Session(*master), info.allocation_id, distributed, preempt_mode)  # whose thread shows nothing
    session.waiting = preempt_context.waiting = alive.waiting
    directory = tensorboard_path(configured)
    place = f"{info.cluster_id}/tensorboard/experiment/{trial.experiment_id}/trial/{trial.trial_id}"
    known = os.environ.get("DET_STORE_ID")
    files = TensorboardFiles(directory, open_storage(configured, known), place, distributed.rank)
    train = TrainContext(
        session, trial.trial_id, trial._trial_run_id, trial.experiment_id, tensorboard_mode, directory, files,
        bool(trial._config.get("stop_on_nan")), alive,
    )
    searcher = SearcherContext(
        session, distributed, trial.trial_id, trial._config, preempt_context.acknowledge_preemption_signal
    )
    store = open_storage(checkpoint_storage) if checkpoint_storage else open_storage(configured, known)
    checkpoint = CheckpointContext(
        distributed, store, session, info.task_id, info.allocation_id, info.cluster_id, trial.hparams
    )
    return Context(checkpoint, distributed, preempt_context, train, searcher, info, ExperimentalCoreContext())


def init(
    *,
    distributed: Optional[DistributedContext] = None,
    checkpoint_storage: Optional[Union[str, Dict[str, Any]]] = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """The contexts of this task; outside of a cluster, ones that work locally and log what they would report."""
    for name, given, kind in (("preempt_mode", preempt_mode, PreemptMode), ("tensorboard_mode", tensorboard_mode, TensorboardMode)):
        if not isinstance(given, kind):
            raise TypeError(f"core.init({name}=...) takes a determined.core.{kind.__name__}, not {given!r}")
    _print_stacks_on_signal()
    info = det.get_cluster_info()
    if info is not None:
        return _managed(info, distributed, checkpoint_storage, preempt_mode, tensorboard_mode)
    if isinstance(checkpoint_storage, dict) and checkpoint_storage.get("type") == "shared_fs":
        raise ValueError("checkpoint_storage of type shared_fs cannot be given here: name its directory")
    distributed = distributed or DummyDistributedContext()
    store = open_storage(checkpoint_storage)
    return Context(
        DummyCheckpointContext(distributed, store), distributed, DummyPreemptContext(distributed), DummyTrainContext()
    )
