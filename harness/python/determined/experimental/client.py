"""A cluster from Python: submit, watch, fetch.

    from determined.experimental import client
    experiment = client.create_experiment("const.yaml", "model_dir")
    experiment.wait()
    experiment.top_checkpoint().download()
"""

import json
import os
import pathlib
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from determined.experimental._checkpoint import (
    Checkpoint,
    CheckpointSortBy,
    CheckpointState,
    CheckpointTrainingMetadata,
    DownloadMode,
    OrderBy,
)
from determined.experimental._experiment import Experiment, ExperimentState, Trial, TrialMetrics, TrialState, pack, pages
from determined.experimental._master import APIException, Master, NotFoundException, UnauthenticatedException

ExperimentReference, TrialReference = Experiment, Trial


class Determined:
    """One master and one user; the functions of this module use one that login() made."""

    def __init__(
        self,
        master: Optional[str] = None,
        user: Optional[str] = None,
        password: Optional[str] = None,
        cert_path: Optional[str] = None,
        cert_name: Optional[str] = None,
        noverify: bool = False,
    ) -> None:
        self._master = Master(master, user, password, cert_path, noverify)

    def create_experiment(
        self,
        config: Union[str, "os.PathLike[str]", Dict[str, Any]],
        model_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
        includes: Optional[Iterable[Union[str, "os.PathLike[str]"]]] = None,
        parent_id: Optional[int] = None,
        project_id: Optional[int] = None,
        template: Optional[str] = None,
    ) -> Experiment:
        """Submits the files of `model_dir` under a configuration: a dict, or the path of a YAML file."""
        if not isinstance(config, (str, os.PathLike, dict)):
            raise ValueError(f"config must be a path or a dict, not a {type(config).__name__}")
        text = json.dumps(config) if isinstance(config, dict) else pathlib.Path(config).read_text()
        body = {
            "activate": True,
            "config": text,
            "modelDefinition": pack(model_dir, includes) if model_dir is not None else [],
            "parentId": parent_id,
            "projectId": project_id,
            "template": template,
        }
        answer = self._master.post("/api/v1/experiments", body)
        return Experiment(self._master, answer["experiment"]["id"])

    def get_experiment(self, experiment_id: int) -> Experiment:
        return Experiment(self._master, experiment_id)

    def list_experiments(
        self,
        experiment_ids: Optional[List[int]] = None,
        labels: Optional[List[str]] = None,
        users: Optional[List[str]] = None,
        states: Optional[Sequence[ExperimentState]] = None,
        name: Optional[str] = None,
    ) -> List[Experiment]:
        wanted = {
            "labels": labels,
            "users": users,
            "states": [s.value for s in states] if states else None,
            "name": name,
        }
        raw = pages(lambda offset: self._master.get("/api/v1/experiments", offset=offset, limit=200, **wanted), "experiments")
        ids = [e["id"] for e in raw if experiment_ids is None or e["id"] in experiment_ids]
        return [Experiment(self._master, i) for i in ids]

    def get_trial(self, trial_id: int) -> Trial:
        return Trial(self._master, trial_id)

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        return Checkpoint(self._master, uuid)

    def stream_trials_metrics(self, trial_ids: List[int], group: str) -> Iterable[TrialMetrics]:
        for chunk in self._master.stream("/api/v1/trials/metrics/trial_metrics", trialIds=trial_ids, group=group):
            for report in chunk["metrics"]:
                yield TrialMetrics(report)

    def stream_trials_training_metrics(self, trial_ids: List[int]) -> Iterable[TrialMetrics]:
        return self.stream_trials_metrics(trial_ids, "training")

    def stream_trials_validation_metrics(self, trial_ids: List[int]) -> Iterable[TrialMetrics]:
        return self.stream_trials_metrics(trial_ids, "validation")

    def get_session_username(self) -> str:
        return self._master.user

    def logout(self) -> None:
        self._master.log_out()


_determined: Optional[Determined] = None


def login(
    master: Optional[str] = None,
    user: Optional[str] = None,
    password: Optional[str] = None,
    cert_path: Optional[str] = None,
    cert_name: Optional[str] = None,
    noverify: bool = False,
) -> None:
    """Which master and user the functions below speak for; without it, what the environment and `det` say."""
    global _determined
    _determined = Determined(master, user, password, cert_path, cert_name, noverify)


def _current() -> Determined:
    if _determined is None:
        login()
    assert _determined is not None
    return _determined


def logout() -> None:
    global _determined
    _current().logout()
    _determined = None


def create_experiment(
    config: Union[str, "os.PathLike[str]", Dict[str, Any]],
    model_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    includes: Optional[Iterable[Union[str, "os.PathLike[str]"]]] = None,
    parent_id: Optional[int] = None,
    project_id: Optional[int] = None,
    template: Optional[str] = None,
) -> Experiment:
    return _current().create_experiment(config, model_dir, includes, parent_id, project_id, template)


def get_experiment(experiment_id: int) -> Experiment:
    return _current().get_experiment(experiment_id)


def list_experiments(**filters: Any) -> List[Experiment]:
    return _current().list_experiments(**filters)


def get_trial(trial_id: int) -> Trial:
    return _current().get_trial(trial_id)


def get_checkpoint(uuid: str) -> Checkpoint:
    return _current().get_checkpoint(uuid)


def stream_trials_metrics(trial_ids: List[int], group: str) -> Iterable[TrialMetrics]:
    return _current().stream_trials_metrics(trial_ids, group)


def stream_trials_training_metrics(trial_ids: List[int]) -> Iterable[TrialMetrics]:
    return _current().stream_trials_training_metrics(trial_ids)


def stream_trials_validation_metrics(trial_ids: List[int]) -> Iterable[TrialMetrics]:
    return _current().stream_trials_validation_metrics(trial_ids)


__all__ = [
    "APIException",
    "Checkpoint",
    "CheckpointSortBy",
    "CheckpointState",
    "CheckpointTrainingMetadata",
    "Determined",
    "DownloadMode",
    "Experiment",
    "ExperimentReference",
    "ExperimentState",
    "NotFoundException",
    "OrderBy",
    "Trial",
    "TrialMetrics",
    "TrialReference",
    "TrialState",
    "UnauthenticatedException",
    "create_experiment",
    "get_checkpoint",
    "get_experiment",
    "get_trial",
    "list_experiments",
    "login",
    "logout",
    "stream_trials_metrics",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
]
