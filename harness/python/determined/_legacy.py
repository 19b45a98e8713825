"""Base classes of the older interface, which trials and their tests still name."""

import abc
from typing import Any, Dict, List, Optional


class EnvContext:
    """The facts of a trial, as trials of 0.19 read them from `context.env`."""

    def __init__(
        self,
        experiment_config: Optional[Dict[str, Any]],
        hparams: Dict[str, Any],
        latest_checkpoint: Optional[str] = None,
        steps_completed: int = 0,
        use_gpu: bool = False,
        container_gpus: Optional[List[str]] = None,
        slot_ids: Optional[List[int]] = None,
        debug: bool = False,
        det_trial_id: str = "",
        det_experiment_id: str = "",
        det_agent_id: str = "",
        det_cluster_id: str = "",
        trial_seed: int = 0,
        trial_run_id: int = 1,
        allocation_id: str = "",
        managed_training: bool = False,
        test_mode: bool = False,
        on_cluster: bool = False,
    ) -> None:
        self.experiment_config = ExperimentConfig(experiment_config or {})
        self.hparams = hparams
        self.latest_checkpoint = latest_checkpoint
        self.steps_completed = steps_completed
        self.use_gpu = use_gpu
        self.container_gpus = container_gpus or []
        self.slot_ids = slot_ids or []
        self.debug = debug
        self.det_trial_id = det_trial_id
        self.det_experiment_id = det_experiment_id
        self.det_agent_id = det_agent_id
        self.det_cluster_id = det_cluster_id
        self.trial_seed = trial_seed
        self.trial_run_id = trial_run_id
        self.allocation_id = allocation_id
        self.managed_training = managed_training
        self.test_mode = test_mode
        self.on_cluster = on_cluster


class ExperimentConfig(dict):  # type: ignore
    """An experiment's configuration, with the questions that trials ask of it."""

    def slots_per_trial(self) -> int:
        return int((self.get("resources") or {}).get("slots_per_trial", 1))

    def scheduling_unit(self) -> int:
        return int(self.get("scheduling_unit", 100))

    def experiment_seed(self) -> int:
        return int((self.get("reproducibility") or {}).get("experiment_seed", 0))

    def get_data_layer_type(self) -> str:
        return str(((self.get("data_layer") or {}).get("type")) or "shared_fs")

    def get_searcher_metric(self) -> Optional[str]:
        return (self.get("searcher") or {}).get("metric")

    def get_entrypoint(self) -> Any:
        return self.get("entrypoint")


class TrialContext:
    """Base of the contexts that 0.19 gave to trials."""


class TrialController:
    """Base of what drove a trial; the loop of this package drives them all."""


class LegacyTrial(abc.ABC):
    """Base of PyTorchTrial."""

    trial_controller_class: Any = None
    trial_context_class: Any = TrialContext

    def __init__(self, context: Any) -> None:
        self.context = context
