"""What contexts of 0.19 offered beyond today's: `context.env` and `from_config()`."""

from typing import Any, Dict, Optional, Type, TypeVar

import torch

import determined as det
from determined import core, errors, util
from determined._legacy import EnvContext

C = TypeVar("C", bound="OlderContext")


class OlderContext:
    """Base of PyTorchTrialContext."""

    _hparams: Optional[Dict[str, Any]]
    _exp_conf: Optional[Dict[str, Any]]
    _managed_training: bool
    _debug_enabled: bool
    _steps_completed: int
    _trial_seed: Optional[int]

    @property
    def env(self) -> EnvContext:
        """The facts of the trial; outside of a cluster those that a cluster gives are empty."""
        info = det.get_cluster_info()
        trial = info.trial if info is not None and info.task_type == "TRIAL" else None
        gpus = info.gpu_uuids if info is not None and info._resources_info is not None else []
        return EnvContext(
            experiment_config=self._exp_conf,
            hparams=self._hparams or {},
            latest_checkpoint=info.latest_checkpoint if info else None,
            steps_completed=self._steps_completed,
            use_gpu=bool(gpus) or torch.cuda.is_available(),
            container_gpus=gpus,
            slot_ids=info.slot_ids if info else [],
            debug=self._debug_enabled,
            det_trial_id=str(trial.trial_id) if trial else "",
            det_experiment_id=str(trial.experiment_id) if trial else "",
            det_agent_id=info.agent_id if info else "",
            det_cluster_id=info.cluster_id if info else "",
            trial_seed=self._trial_seed or 0,
            trial_run_id=trial._trial_run_id if trial else 1,
            allocation_id=info.allocation_id if info else "",
            managed_training=self._managed_training,
            test_mode=False,
            on_cluster=trial is not None,
        )

    def _gone(self, name: str, wrap: str) -> Any:
        raise errors.InvalidExperimentException(f"context.{name}() is of the interface of before 2020: keep what context.{wrap}() returns")

    def get_model(self) -> Any:
        self._gone("get_model", "wrap_model")

    def get_optimizer(self) -> Any:
        self._gone("get_optimizer", "wrap_optimizer")

    def get_lr_scheduler(self) -> Any:
        self._gone("get_lr_scheduler", "wrap_lr_scheduler")

    @classmethod
    def from_config(cls: Type[C], config: Dict[str, Any]) -> C:
        """A context outside of training: one process, ranges of hyperparameters sampled, checkpoints in /tmp."""
        optimizations = config.get("optimizations") or {}
        return cls(  # type: ignore
            core_context=core.init(checkpoint_storage="/tmp"),
            trial_seed=int((config.get("reproducibility") or {}).get("experiment_seed") or 0),
            hparams=util.sample_hparams(config.get("hyperparameters") or {}),
            slots_per_trial=1,
            num_gpus=min(torch.cuda.device_count(), 1),
            exp_conf=config,
            aggregation_frequency=optimizations.get("aggregation_frequency", 1),
            steps_completed=0,
            managed_training=False,
            debug_enabled=bool(config.get("debug")),
        )
