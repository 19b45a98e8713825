"""A cluster from Python: submit, watch, fetch.

    from determined.experimental import client
    experiment = client.create_experiment("const.yaml", "model_dir")
    experiment.wait()
    experiment.top_checkpoint().download()
"""

import json
import os
import pathlib
import urllib.parse
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from determined._absent import Lacking, absent
from determined.experimental._checkpoint import (
    Checkpoint,
    CheckpointSortBy,
    CheckpointState,
    CheckpointTrainingMetadata,
    DownloadMode,
    OrderBy,
    value_of,
)
from determined.experimental._experiment import (
    Experiment,
    ExperimentSortBy,
    ExperimentState,
    Trial,
    TrialMetrics,
    TrialSortBy,
    TrialState,
    by_name,
    pack,
    pages,
    sorting,
    workspaces,
)
from determined.experimental._master import (
    APIException,
    Master,
    NotFoundException,
    UnauthenticatedException,
    hash_password,
)
from determined.experimental._models import Model, ModelSortBy, ModelVersion, path_of
from determined.experimental._people import Project, ResourcePool, User, Workspace, all_pools

ExperimentReference, TrialReference = Experiment, Trial

# Names that scripts have from before, and what they are now.
_OLDER = {
    "CheckpointOrderBy": OrderBy,
    "ExperimentOrderBy": OrderBy,
    "ModelOrderBy": OrderBy,
    "TrialOrderBy": OrderBy,
    "TrainingMetrics": TrialMetrics,
    "ValidationMetrics": TrialMetrics,
}
_ABSENT = {
    "Session": "client.login() and the functions of this module ask the master; docs/api.md has its routes",
    "Oauth2ScimClient": "people log in with a name and a password: client.login()",
    "add_oauth_client": "people log in with a name and a password: client.login()",
    "list_oauth_clients": "people log in with a name and a password: client.login()",
    "remove_oauth_client": "people log in with a name and a password: client.login()",
    "LogLevel": "iter_logs(min_level=...) takes the level's name, such as \"WARNING\"",
}


def __getattr__(name: str) -> Any:
    if name in _OLDER:
        return _OLDER[name]
    if name in _ABSENT:
        raise absent(f"determined.experimental.client.{name} is not available in this version: {_ABSENT[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")



class Determined(Lacking):
    """One master and one user; the functions of this module use one that login() made."""

    _LACKS = {
        name: _ABSENT[name] for name in ("add_oauth_client", "list_oauth_clients", "remove_oauth_client")
    }

    def __init__(
        self,
        master: Optional[str] = None,
        user: Optional[str] = None,
        password: Optional[str] = None,
        cert_path: Optional[str] = None,
        cert_name: Optional[str] = None,
        noverify: bool = False,
    ) -> None:
        self._master = Master(master, user, password, cert_path, cert_name, noverify)

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
        return self._submit(config, model_dir, includes, parent_id, project_id, template)

    def _submit(
        self,
        config: Union[str, "os.PathLike[str]", Dict[str, Any]],
        model_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
        includes: Optional[Iterable[Union[str, "os.PathLike[str]"]]] = None,
        parent_id: Optional[int] = None,
        project_id: Optional[int] = None,
        template: Optional[str] = None,
        activate: bool = True,
    ) -> Experiment:
        if not isinstance(config, (str, os.PathLike, dict)):
            raise ValueError(f"config must be a path or a dict, not a {type(config).__name__}")
        text = json.dumps(config) if isinstance(config, dict) else pathlib.Path(config).read_text()
        body = {
            "activate": activate,
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
        project_id: Optional[int] = None,
        sort_by: Optional[ExperimentSortBy] = None,
        order_by: Optional[OrderBy] = None,
    ) -> List[Experiment]:
        wanted = {
            **sorting("list_experiments", sort_by, order_by, ExperimentSortBy),
            "labels": labels,
            "users": users,
            "states": [value_of("list_experiments(states=[...])", s, ExperimentState) for s in states or []] or None,
            "name": name,
            "projectId": project_id,
            "experimentIdFilter.incl": experiment_ids,
        }
        raw = pages(lambda offset: self._master.get("/api/v1/experiments", offset=offset, limit=200, **wanted), "experiments")
        return [Experiment._of(self._master, e) for e in raw]

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

    def iter_trials_metrics(self, trial_ids: List[int], group: str) -> Iterable[TrialMetrics]:
        return self.stream_trials_metrics(trial_ids, group)

    # ---- users ----

    def get_session_username(self) -> str:
        return self._master.user

    def whoami(self) -> User:
        return User(self._master, self._master.get("/api/v1/auth/user")["user"])

    def create_user(self, username: str, admin: bool, password: Optional[str] = None, remote: bool = False) -> User:
        """A new user, active at once; only an administrator may."""
        user = {"username": username, "admin": admin, "active": True, "remote": remote}
        body = {"user": user, "password": hash_password(password or ""), "isHashed": True}
        return User(self._master, self._master.post("/api/v1/users", body)["user"])

    def get_user_by_id(self, user_id: int) -> User:
        return User(self._master, self._master.get(f"/api/v1/users/{user_id}")["user"])

    def get_user_by_name(self, user_name: str) -> User:
        path = f"/api/v1/users/{urllib.parse.quote(user_name, safe='')}/by-username"
        return User(self._master, self._master.get(path)["user"])

    def list_users(self, active: Optional[bool] = None) -> List[User]:
        raw = pages(lambda offset: self._master.get("/api/v1/users", offset=offset, limit=200, active=active), "users")
        return [User(self._master, u) for u in raw]

    # ---- workspaces ----

    def create_workspace(self, name: str) -> Workspace:
        return Workspace(self._master, self._master.post("/api/v1/workspaces", {"name": name})["workspace"])

    def list_workspaces(self) -> List[Workspace]:
        return [Workspace(self._master, w) for w in workspaces(self._master)]

    def get_workspace(self, name: str) -> Workspace:
        return Workspace(self._master, by_name(workspaces(self._master), name, "there is no workspace"))

    def delete_workspace(self, name: str) -> None:
        """One that is empty; Workspace.archive() hides one and closes it."""
        self._master.delete(f"/api/v1/workspaces/{self.get_workspace(name).id}")

    # ---- models ----

    def create_model(
        self,
        name: str,
        description: Optional[str] = "",
        metadata: Optional[Dict[str, Any]] = None,
        labels: Optional[List[str]] = None,
        workspace_name: Optional[str] = None,
    ) -> Model:
        body = {
            "name": name,
            "description": description,
            "metadata": metadata,
            "labels": labels,
            "workspaceName": workspace_name,
        }
        return Model(self._master, self._master.post("/api/v1/models", body)["model"])

    def get_model(self, identifier: Union[str, int]) -> Model:
        """By its name or its id."""
        return Model(self._master, self._master.get(path_of(identifier))["model"])

    def list_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: OrderBy = OrderBy.ASCENDING,
        name: Optional[str] = None,
        description: Optional[str] = None,
        model_id: Optional[int] = None,
        workspace_names: Optional[List[str]] = None,
        workspace_ids: Optional[List[int]] = None,
    ) -> List[Model]:
        wanted = {
            **sorting("list_models", sort_by, order_by, ModelSortBy),
            "name": name,
            "description": description,
            "id": model_id,
            "workspaceNames": workspace_names,
            "workspaceIds": workspace_ids,
        }
        raw = pages(lambda offset: self._master.get("/api/v1/models", offset=offset, limit=200, **wanted), "models")
        return [Model(self._master, m) for m in raw]

    get_model_by_id, get_models = get_model, list_models

    def get_model_labels(self) -> List[str]:
        """The most used first."""
        labels: List[str] = self._master.get("/api/v1/model/labels")["labels"]
        return labels

    # ---- the cluster ----

    def list_resource_pools(self) -> List[ResourcePool]:
        return all_pools(self._master)

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


def list_experiments(
    experiment_ids: Optional[List[int]] = None,
    labels: Optional[List[str]] = None,
    users: Optional[List[str]] = None,
    states: Optional[Sequence[ExperimentState]] = None,
    name: Optional[str] = None,
    project_id: Optional[int] = None,
    sort_by: Optional[ExperimentSortBy] = None,
    order_by: Optional[OrderBy] = None,
) -> List[Experiment]:
    return _current().list_experiments(experiment_ids, labels, users, states, name, project_id, sort_by, order_by)


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


def iter_trials_metrics(trial_ids: List[int], group: str) -> Iterable[TrialMetrics]:
    return _current().iter_trials_metrics(trial_ids, group)


def get_session_username() -> str:
    return _current().get_session_username()


def whoami() -> User:
    return _current().whoami()


def create_user(username: str, admin: bool, password: Optional[str] = None, remote: bool = False) -> User:
    return _current().create_user(username, admin, password, remote)


def get_user_by_id(user_id: int) -> User:
    return _current().get_user_by_id(user_id)


def get_user_by_name(user_name: str) -> User:
    return _current().get_user_by_name(user_name)


def list_users(active: Optional[bool] = None) -> List[User]:
    return _current().list_users(active)


def create_workspace(name: str) -> Workspace:
    return _current().create_workspace(name)


def list_workspaces() -> List[Workspace]:
    return _current().list_workspaces()


def get_workspace(name: str) -> Workspace:
    return _current().get_workspace(name)


def delete_workspace(name: str) -> None:
    _current().delete_workspace(name)


def list_resource_pools() -> List[ResourcePool]:
    return _current().list_resource_pools()


def create_model(
    name: str,
    description: Optional[str] = "",
    metadata: Optional[Dict[str, Any]] = None,
    labels: Optional[List[str]] = None,
    workspace_name: Optional[str] = None,
) -> Model:
    return _current().create_model(name, description, metadata, labels, workspace_name)


def get_model(identifier: Union[str, int]) -> Model:
    return _current().get_model(identifier)


def list_models(
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: OrderBy = OrderBy.ASCENDING,
    name: Optional[str] = None,
    description: Optional[str] = None,
    model_id: Optional[int] = None,
    workspace_names: Optional[List[str]] = None,
    workspace_ids: Optional[List[int]] = None,
) -> List[Model]:
    return _current().list_models(sort_by, order_by, name, description, model_id, workspace_names, workspace_ids)


get_model_by_id, get_models = get_model, list_models


def get_model_labels() -> List[str]:
    return _current().get_model_labels()


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
    "ExperimentSortBy",
    "ExperimentState",
    "Model",
    "ModelSortBy",
    "ModelVersion",
    "NotFoundException",
    "OrderBy",
    "Project",
    "ResourcePool",
    "Trial",
    "TrialMetrics",
    "TrialReference",
    "TrialSortBy",
    "TrialState",
    "UnauthenticatedException",
    "User",
    "Workspace",
    "create_experiment",
    "create_model",
    "create_user",
    "create_workspace",
    "delete_workspace",
    "get_checkpoint",
    "get_experiment",
    "get_model",
    "get_model_by_id",
    "get_model_labels",
    "get_models",
    "get_session_username",
    "get_trial",
    "get_user_by_id",
    "get_user_by_name",
    "get_workspace",
    "iter_trials_metrics",
    "list_experiments",
    "list_models",
    "list_resource_pools",
    "list_users",
    "list_workspaces",
    "login",
    "logout",
    "stream_trials_metrics",
    "stream_trials_training_metrics",
    "stream_trials_validation_metrics",
    "whoami",
]
