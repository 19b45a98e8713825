"""The registry of models, whose versions are checkpoints."""

import datetime
import enum
import json
import urllib.parse
from typing import Any, Dict, Iterable, List, Optional, Union

from determined.experimental._checkpoint import Checkpoint, OrderBy
from determined.experimental._experiment import pages, sorting
from determined.experimental._master import Master
from determined.experimental._told import Told


class ModelSortBy(enum.Enum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED"
    NAME = "SORT_BY_NAME"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    CREATION_TIME = "SORT_BY_CREATION_TIME"
    LAST_UPDATED_TIME = "SORT_BY_LAST_UPDATED_TIME"
    NUM_VERSIONS = "SORT_BY_NUM_VERSIONS"
    WORKSPACE = "SORT_BY_WORKSPACE"


def path_of(identifier: Union[str, int]) -> str:
    """By its name, whatever the case, or by its id."""
    return f"/api/v1/models/{urllib.parse.quote(str(identifier), safe='')}"


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def _without(metadata: Dict[str, Any], keys: Iterable[str]) -> Dict[str, Any]:
    if not isinstance(keys, (list, tuple, set)) or not all(isinstance(k, str) for k in keys):
        raise ValueError(f"remove_metadata() requires a list of strings as input but got: {keys!r}")
    return {k: v for k, v in metadata.items() if k not in keys}


_METRICS = "what loads it reports to a trial of its own: Trial.iter_metrics(); checkpoint.training.validation_metrics has its own"


class ModelVersion(Told):
    """A checkpoint under a number of its model; nothing removes the checkpoint while it is one."""

    _LACKS = {"iter_metrics": _METRICS, "get_metrics": _METRICS}

    def _take(self, raw: Dict[str, Any]) -> None:
        self.model_version: int = raw["version"]
        self.model_id: int = raw["model"]["id"]
        self.model_name: str = raw["model"]["name"]
        self.checkpoint = Checkpoint._of(self._master, raw["checkpoint"])
        self.name: str = raw.get("name") or ""
        self.comment: str = raw.get("comment") or ""
        self.notes: str = raw.get("notes") or ""
        self.labels: List[str] = raw.get("labels") or []
        self.metadata: Dict[str, Any] = raw.get("metadata") or {}

    def __repr__(self) -> str:
        return f"ModelVersion(model_name={self.model_name!r}, model_version={self.model_version})"

    @property
    def _path(self) -> str:
        return f"{path_of(self.model_id)}/versions/{self.model_version}"

    def reload(self) -> None:
        self._take(self._master.get(self._path)["modelVersion"])

    def _patch(self, **changes: Any) -> None:
        self._take(self._master.patch(self._path, changes)["modelVersion"])

    def set_name(self, name: str) -> None:
        self._patch(name=name)

    def set_notes(self, notes: str) -> None:
        self._patch(notes=notes)

    def delete(self) -> None:
        """The checkpoint stays, and may be removed again."""
        self._master.delete(self._path)


class Model(Told):
    def _take(self, raw: Dict[str, Any]) -> None:
        self.model_id: int = raw["id"]
        self.name: str = raw["name"]
        self.description: str = raw.get("description") or ""
        self.creation_time = _time(raw["creationTime"])
        self.last_updated_time = _time(raw["lastUpdatedTime"])
        self.metadata: Dict[str, Any] = raw.get("metadata") or {}
        self.labels: List[str] = raw.get("labels") or []
        self.notes: str = raw.get("notes") or ""
        self.username: str = raw.get("username") or ""
        self.workspace_id: int = raw["workspaceId"]
        self.archived: bool = raw["archived"]

    def __repr__(self) -> str:
        return f"Model(id={self.model_id}, name={self.name}, metadata={json.dumps(self.metadata)})"

    @property
    def _path(self) -> str:
        return path_of(self.model_id)

    def reload(self) -> None:
        self._take(self._master.get(self._path)["model"])

    def _patch(self, **changes: Any) -> None:
        self._take(self._master.patch(self._path, changes)["model"])

    # ---- versions ----

    def get_version(self, version: int = -1) -> Optional[ModelVersion]:
        """-1: the newest, or None where there are none."""
        if version != -1:
            return ModelVersion(self._master, self._master.get(f"{self._path}/versions/{version}")["modelVersion"])
        found = self._master.get(f"{self._path}/versions", limit=1, sortBy="SORT_BY_VERSION", orderBy=OrderBy.DESC.value)
        return ModelVersion(self._master, found["modelVersions"][0]) if found["modelVersions"] else None

    def list_versions(self, order_by: OrderBy = OrderBy.DESC) -> List[ModelVersion]:
        query = {**sorting("list_versions", None, order_by, ModelSortBy), "sortBy": "SORT_BY_VERSION"}
        raw = pages(lambda o: self._master.get(f"{self._path}/versions", offset=o, limit=200, **query), "modelVersions")
        return [ModelVersion(self._master, v) for v in raw]

    get_versions = list_versions

    def register_version(self, checkpoint_uuid: str) -> ModelVersion:
        """The next version: a COMPLETED checkpoint."""
        body = {"modelName": self.name, "checkpointUuid": checkpoint_uuid}
        return ModelVersion(self._master, self._master.post(f"{self._path}/versions", body)["modelVersion"])

    # ---- words ----

    def add_metadata(self, metadata: Dict[str, Any]) -> None:
        """Adds keys, or changes them."""
        self._patch(metadata={**self.metadata, **metadata})

    def remove_metadata(self, keys: List[str]) -> None:
        self._patch(metadata=_without(self.metadata, keys))

    def set_labels(self, labels: List[str]) -> None:
        if isinstance(labels, str) or not isinstance(labels, (list, tuple, set)):
            raise ValueError(f"set_labels() requires a list of strings as input but got: {labels!r}")
        self._patch(labels=list(labels))

    def set_description(self, description: str) -> None:
        self._patch(description=description)

    def move_to_workspace(self, workspace_name: str) -> None:
        self._patch(workspaceName=workspace_name)

    def archive(self) -> None:
        self._master.post(f"{self._path}/archive", None)
        self.archived = True

    def unarchive(self) -> None:
        self._master.post(f"{self._path}/unarchive", None)
        self.archived = False

    def delete(self) -> None:
        """With its versions; their checkpoints stay."""
        self._master.delete(self._path)
