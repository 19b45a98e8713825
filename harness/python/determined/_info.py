"""What a task knows about itself: the files that det-task writes for it."""

import json
import os
import pathlib
from typing import Any, Dict, List, Optional

DEFAULT_INFO_DIR = "/run/determined/info"


def info_dir() -> pathlib.Path:
    """DET_INFO_DIR comes first: hosts where several tasks run have one directory each."""
    return pathlib.Path(os.environ.get("DET_INFO_DIR") or DEFAULT_INFO_DIR)


def _read(name: str) -> Optional[Dict[str, Any]]:
    try:
        with open(info_dir() / name, encoding="utf-8") as f:
            return dict(json.load(f))
    except FileNotFoundError:
        return None


class RendezvousInfo:
    """Where the containers of a trial are, and which of them this is."""

    def __init__(self, container_addrs: List[str], container_rank: int, container_slot_counts: List[int]) -> None:
        self.container_addrs = container_addrs
        self.container_rank = container_rank
        self.container_slot_counts = container_slot_counts


class ResourcesInfo:
    def __init__(self, gpu_uuids: List[str]) -> None:
        self.gpu_uuids = gpu_uuids


class TrialInfo:
    """The trial that this task runs."""

    def __init__(
        self,
        trial_id: int,
        experiment_id: int,
        trial_seed: int,
        hparams: Dict[str, Any],
        config: Dict[str, Any],
        steps_completed: int,
        trial_run_id: int,
        debug: bool,
        inter_node_network_interface: Optional[str] = None,
    ) -> None:
        self.trial_id = trial_id
        self.experiment_id = experiment_id
        self.trial_seed = trial_seed
        self.hparams = hparams
        self._config = config
        self._steps_completed = steps_completed
        self._trial_run_id = trial_run_id
        self._debug = debug
        self._inter_node_network_interface = inter_node_network_interface


class ClusterInfo:
    """The cluster that this process runs on."""

    def __init__(
        self,
        master_url: str,
        cluster_id: str,
        agent_id: str,
        slot_ids: List[int],
        task_id: str,
        allocation_id: str,
        session_token: str,
        task_type: str,
        master_cert_name: Optional[str] = None,
        master_cert_file: Optional[str] = None,
        latest_checkpoint: Optional[str] = None,
        trial_info: Optional[TrialInfo] = None,
        rendezvous_info: Optional[RendezvousInfo] = None,
        resources_info: Optional[ResourcesInfo] = None,
    ) -> None:
        self.master_url = master_url
        self.cluster_id = cluster_id
        self.agent_id = agent_id
        self.slot_ids = slot_ids
        self.task_id = task_id
        self.allocation_id = allocation_id
        self.session_token = session_token
        self.task_type = task_type
        self.master_cert_name = master_cert_name
        self.master_cert_file = master_cert_file
        self._latest_checkpoint = latest_checkpoint
        self._trial_info = trial_info
        self._rendezvous_info = rendezvous_info
        self._resources_info = resources_info

    @property
    def latest_checkpoint(self) -> Optional[str]:
        return self._latest_checkpoint if self.task_type == "TRIAL" else None

    @property
    def user_data(self) -> Dict[str, Any]:
        if self.task_type != "TRIAL":
            return {}
        return dict(self.trial._config.get("data") or {})

    @property
    def trial(self) -> TrialInfo:
        if self.task_type != "TRIAL" or self._trial_info is None:
            raise RuntimeError(f"ClusterInfo.trial: this task is a {self.task_type}, not a TRIAL")
        return self._trial_info

    @property
    def container_addrs(self) -> List[str]:
        return self._rendezvous().container_addrs if self.task_type == "TRIAL" else ["127.0.0.1"]

    @property
    def container_slot_counts(self) -> List[int]:
        return self._rendezvous().container_slot_counts if self.task_type == "TRIAL" else [len(self.slot_ids)]

    @property
    def container_rank(self) -> int:
        return self._rendezvous().container_rank if self.task_type == "TRIAL" else 0

    @property
    def gpu_uuids(self) -> List[str]:
        assert self._resources_info is not None, "the task has no resources.json"
        return self._resources_info.gpu_uuids

    def _rendezvous(self) -> RendezvousInfo:
        assert self._rendezvous_info is not None, "the task has no rendezvous.json yet"
        return self._rendezvous_info

    @classmethod
    def _from_files(cls) -> Optional["ClusterInfo"]:
        cluster = _read("cluster.json")
        if cluster is None:
            return None
        trial, rendezvous, resources = _read("trial.json"), _read("rendezvous.json"), _read("resources.json")
        return cls(
            **cluster,
            trial_info=TrialInfo(**trial) if trial else None,
            rendezvous_info=RendezvousInfo(**rendezvous) if rendezvous else None,
            resources_info=ResourcesInfo(**resources) if resources else None,
        )


_info: Optional[ClusterInfo] = None
_known = False


def get_cluster_info() -> Optional[ClusterInfo]:
    """The cluster this process runs on; None outside of one. Read once."""
    global _info, _known
    if not _known:
        _info, _known = ClusterInfo._from_files(), True
    return _info
