"""Checkpoints of the cluster."""

import datetime
import enum
import json
import os
import pathlib
import shutil
import tarfile
from typing import Any, Dict, List, Optional, Type

from determined._absent import Lacking
from determined.errors import CheckpointNotFound, CheckpointStateException, NoDirectStorageAccess
from determined.experimental._master import Master

METADATA = "metadata.json"


class CheckpointState(enum.Enum):
    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    COMPLETED = "STATE_COMPLETED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    PARTIALLY_DELETED = "STATE_PARTIALLY_DELETED"


class CheckpointSortBy(enum.Enum):
    UUID = "SORT_BY_UUID"
    TRIAL_ID = "SORT_BY_TRIAL_ID"
    BATCH_NUMBER = "SORT_BY_BATCH_NUMBER"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    SEARCHER_METRIC = "SORT_BY_SEARCHER_METRIC"


class OrderBy(enum.Enum):
    ASCENDING = "ORDER_BY_ASC"
    ASC = "ORDER_BY_ASC"
    DESCENDING = "ORDER_BY_DESC"
    DESC = "ORDER_BY_DESC"


def value_of(call: str, given: Optional[enum.Enum], kind: Type[enum.Enum]) -> Any:
    """What the master calls it; None: nothing was given."""
    if given is not None and not isinstance(given, kind):
        example = f"{kind.__name__}.{list(kind.__members__)[0]}"
        raise TypeError(f"{call} takes a determined.experimental.client.{kind.__name__}, such as {example}, not {given!r}")
    return None if given is None else given.value


class DownloadMode(enum.Enum):
    """From the store itself, through the master, or whichever works."""

    DIRECT = "direct"
    MASTER = "master"
    AUTO = "auto"


class CheckpointTrainingMetadata:
    def __init__(self, raw: Dict[str, Any]) -> None:
        self.experiment_config: Dict[str, Any] = raw.get("experimentConfig") or {}
        self.experiment_id: Optional[int] = raw.get("experimentId")
        self.trial_id: Optional[int] = raw.get("trialId")
        self.hparams: Dict[str, Any] = raw.get("hparams") or {}
        self.validation_metrics: Dict[str, Any] = raw.get("validationMetrics") or {}

    def __repr__(self) -> str:
        return f"CheckpointTrainingMetadata(experiment_id={self.experiment_id}, trial_id={self.trial_id})"


class Checkpoint(Lacking):
    _LACKS = {"get_metrics": "what loads it reports to a trial of its own: Trial.iter_metrics(); training.validation_metrics has its own"}

    def __init__(self, master: Master, uuid: str) -> None:
        self._master = master
        self.uuid = uuid
        self.reload()

    @classmethod
    def _of(cls, master: Master, raw: Dict[str, Any]) -> "Checkpoint":
        self = cls.__new__(cls)
        self._master, self.uuid = master, raw["uuid"]
        self._take(raw)
        return self

    def _take(self, raw: Dict[str, Any]) -> None:
        self.task_id: Optional[str] = raw.get("taskId")
        self.allocation_id: Optional[str] = raw.get("allocationId")
        time = raw.get("reportTime")
        self.report_time = datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) if time else None
        self.resources: Dict[str, int] = {k: int(v) for k, v in (raw.get("resources") or {}).items()}
        self.metadata: Dict[str, Any] = raw.get("metadata") or {}
        self.state = CheckpointState(raw.get("state", "STATE_UNSPECIFIED"))
        self.training = CheckpointTrainingMetadata(raw.get("training") or {})

    def __repr__(self) -> str:
        trial = "" if self.training.trial_id is None else f", trial_id={self.training.trial_id}"
        return f"Checkpoint(uuid={self.uuid}, task_id={self.task_id}{trial})"

    def reload(self) -> None:
        self._take(self._master.get(f"/api/v1/checkpoints/{self.uuid}")["checkpoint"])

    # ---- files ----

    def download(self, path: Optional[str] = None, mode: DownloadMode = DownloadMode.AUTO) -> str:
        """Copies the files to `path` (default: checkpoints/UUID); what is there already is kept. The path."""
        if self.state == CheckpointState.DELETED:
            raise CheckpointStateException(f"checkpoint {self.uuid} was deleted")
        target = pathlib.Path(path) if path is not None else pathlib.Path("checkpoints") / self.uuid
        target.mkdir(parents=True, exist_ok=True)
        if (target / METADATA).exists():
            return str(target)
        if mode == DownloadMode.MASTER:
            self._through_master(target)
            return str(target)
        try:
            self._directly(target)
        except NoDirectStorageAccess:
            if mode == DownloadMode.DIRECT:
                raise
            self._through_master(target)
        return str(target)

    def _directly(self, target: pathlib.Path) -> None:
        config = self.training.experiment_config.get("checkpoint_storage")
        try:
            from determined.core._storage import open_storage  # which the client alone does not have

            open_storage(config).download(self.uuid, str(target))
        except (ImportError, FileNotFoundError, PermissionError, ValueError, KeyError) as e:
            raise NoDirectStorageAccess(f"checkpoint {self.uuid} cannot be read from its store here: {e}") from e

    def _through_master(self, target: pathlib.Path) -> None:
        with self._master.download(f"/checkpoints/{self.uuid}", "application/gzip") as answer:
            with tarfile.open(fileobj=answer, mode="r|gz") as archive:
                for member in archive:
                    _extract(archive, member, target)
        if (target / _PART).exists():
            os.replace(target / _PART, target / METADATA)

    def delete(self) -> None:
        self._master.delete("/api/v1/checkpoints", {"checkpointUuids": [self.uuid]})

    def remove_files(self, globs: List[str]) -> None:
        self._master.post("/api/v1/checkpoints/rm", {"checkpointUuids": [self.uuid], "checkpointGlobs": globs})

    # ---- metadata ----

    def get_metadata(self) -> Dict[str, Any]:
        return self.metadata

    def write_metadata_file(self, path: str) -> None:
        pathlib.Path(path).write_text(json.dumps(self.metadata, indent=2))

    def add_metadata(self, metadata: Dict[str, Any]) -> None:
        """Adds keys, or changes them."""
        self._replace({**self.metadata, **metadata})

    def remove_metadata(self, keys: List[str]) -> None:
        self._replace({k: v for k, v in self.metadata.items() if k not in keys})

    def _replace(self, metadata: Dict[str, Any]) -> None:
        body = {"checkpoint": {"uuid": self.uuid, "metadata": metadata, "resources": {}, "state": self.state.value, "training": {}}}
        self._master.post(f"/api/v1/checkpoints/{self.uuid}/metadata", body)
        self.metadata = metadata


#: What says that a download is whole has this name until it is.
_PART = f".{METADATA}.part"


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, target: pathlib.Path) -> None:
    """Files and directories only, and only below the target: an archive may name anything."""
    path = pathlib.PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"the archive of the checkpoint names {member.name}, outside of its directory")
    where = target / (_PART if str(path) == METADATA else path)
    if member.isdir():
        where.mkdir(parents=True, exist_ok=True)
    elif member.isfile():
        where.parent.mkdir(parents=True, exist_ok=True)
        source = archive.extractfile(member)
        assert source is not None
        with source, open(where, "wb") as out:
            shutil.copyfileobj(source, out)


def choose(
    checkpoints: List[Checkpoint], smaller_is_better: bool, metric: Optional[str], limit: int
) -> List[Checkpoint]:
    """The best by a validation metric; those without it are left out."""

    def value(c: Checkpoint) -> Any:
        return (c.training.validation_metrics.get("avgMetrics") or {}).get(metric)

    usable = [c for c in checkpoints if c.state == CheckpointState.COMPLETED and isinstance(value(c), (int, float))]
    if not usable:
        raise CheckpointNotFound(f'there is no checkpoint with the validation metric "{metric}"')
    return sorted(usable, key=value, reverse=not smaller_is_better)[:limit]
