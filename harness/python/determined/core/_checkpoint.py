"""Checkpoints: stored whole by the chief, or in shards by every rank."""

import contextlib
import datetime
import enum
import hashlib
import json
import logging
import os
import pathlib
import uuid as uuid_module
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple, TypeVar, Union

from determined.core._distributed import DistributedContext
from determined.core._session import Session, as_json
from determined.core._storage import (
    CLUSTER,
    HASHES,
    HPARAMS,
    METADATA,
    TASK,
    DirectoryStorage,
    Selector,
    hash_paths,
    list_directory,
    sync_tree,
    with_parents,
)

logger = logging.getLogger("determined.core")

Path = Union[str, "os.PathLike[str]"]
T = TypeVar("T")


class DownloadMode(enum.Enum):
    """Does each machine download once, or each rank for itself?"""

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


def _md5(path: str) -> str:
    digest = hashlib.md5()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def merge_metadata(parts: List[Dict[str, Any]]) -> Tuple[Dict[str, Any], List[str]]:
    """All ranks' metadata as one, and the keys at which they disagree."""
    merged: Dict[str, Any] = {}
    conflicts: List[str] = []

    def add(into: Dict[str, Any], part: Dict[str, Any], where: str) -> None:
        for key, value in part.items():
            if key not in into:
                into[key] = value
            elif isinstance(into[key], dict) and isinstance(value, dict):
                add(into[key], value, f"{where}{key}/")
            elif into[key] != value:
                conflicts.append(where + key)

    for part in parts:
        add(merged, as_json(part), "")
    return merged, conflicts


def assign_uploads(offers: List[Optional[Dict[str, Optional[str]]]]) -> Tuple[List[List[str]], Dict[str, List[int]]]:
    """Which rank uploads what, from every rank's {path: md5}, and the paths that conflict.

    Equal copies are uploaded by the lowest rank; a path with different contents conflicts, and so does one that is a
    file here and a directory there.
    """
    uploads: List[List[str]] = [[] for _ in offers]
    seen: Dict[str, Tuple[int, Optional[str]]] = {}
    conflicts: Dict[str, List[int]] = {}
    for rank, offer in enumerate(offers):
        for path, digest in (offer or {}).items():
            other = path[:-1] if path.endswith("/") else path + "/"
            if other in seen:
                conflicts.setdefault(path.rstrip("/"), [seen[other][0]]).append(rank)
            elif path not in seen:
                seen[path] = (rank, digest)
                uploads[rank].append(path)
            elif not path.endswith("/") and seen[path][1] != digest:
                conflicts.setdefault(path, [seen[path][0]]).append(rank)
    return uploads, conflicts


def _need_steps(metadata: Optional[Dict[str, Any]]) -> None:
    """Before anything is stored: what could not be reported would stay in the store for ever."""
    if "steps_completed" not in (metadata or {}):
        raise ValueError('the metadata of a checkpoint must contain "steps_completed"')
    steps = (metadata or {})["steps_completed"]
    if isinstance(steps, str) or not hasattr(steps, "__int__"):
        raise ValueError(f'"steps_completed" in the metadata of a checkpoint must be a number of batches, not {steps!r}')


def _need_directory(directory: str) -> None:
    if not os.path.isdir(directory):
        kind = NotADirectoryError if os.path.exists(directory) else FileNotFoundError
        raise kind(f"upload() was given {directory}, which is no directory: it takes the one that holds the checkpoint's files")


def _alone(work: Callable[[], T]) -> List[T]:
    return [work()]


def _offer(directory: Optional[str], selector: Optional[Selector]) -> Optional[Dict[str, Optional[str]]]:
    if directory is None:
        return None
    paths = with_parents(p for p in list_directory(directory) if selector is None or selector(p))
    return {p: None if p.endswith("/") else _md5(os.path.join(directory, p)) for p in paths}


class CheckpointContext:
    """Stores checkpoints of the task, and reads any."""

    _run_id: Optional[int] = None  # of a trial that runs elsewhere; a task's token says it

    def __init__(
        self,
        distributed: DistributedContext,
        storage: DirectoryStorage,
        session: Session,
        task_id: str,
        allocation_id: Optional[str],
        cluster_id: str,
        hparams: Optional[Dict[str, Any]] = None,
    ) -> None:
        self._distributed = distributed
        self._storage = storage
        self._session: Optional[Session] = session
        self._task_id = task_id
        self._allocation_id = allocation_id
        self._writer: Dict[str, Any] = {TASK: task_id, CLUSTER: cluster_id}
        if hparams is not None:
            self._writer[HPARAMS] = hparams

    def _busy(self) -> ContextManager[None]:
        """Around what takes long with large files, and waits for no other rank: it shows that this one lives."""
        return self._session.waiting() if self._session is not None else contextlib.nullcontext()

    # ---- storing ----

    def upload(
        self,
        ckpt_dir: Optional[Path],
        metadata: Optional[Dict[str, Any]] = None,
        *,
        shard: bool = False,
        selector: Optional[Selector] = None,
    ) -> str:
        """Stores a directory; the checkpoint's UUID."""
        directory = os.fspath(ckpt_dir) if ckpt_dir is not None else None
        if shard:
            return self._upload_sharded(directory, metadata, selector)
        self._need_chief("upload")
        if directory is None:
            raise RuntimeError("upload() needs a directory unless shard=True")
        _need_directory(directory)
        _need_steps(metadata)
        uuid = str(uuid_module.uuid4())
        chosen = with_parents(p for p in list_directory(directory) if selector is None or selector(p))
        with self._removed_on_failure(uuid), self._busy():
            self._storage.begin(uuid)
            self._storage.add(directory, uuid, chosen)
            hashes = hash_paths(self._storage.begun(uuid), chosen)
            self._seal(uuid, dict(metadata or {}), hashes)
        self._report(uuid, list_directory(self._storage.path_of(uuid)), hashes, metadata)
        return uuid

    @contextlib.contextmanager
    def store_path(
        self, metadata: Optional[Dict[str, Any]] = None, *, shard: bool = False
    ) -> Iterator[Tuple[pathlib.Path, str]]:
        """A directory to write the checkpoint to, and its UUID; stored and reported at the end.

        With shard=True a rank that raises in it leaves the group: what the others do together next fails and says why.
        """
        uuid = str(uuid_module.uuid4())
        if shard:
            uuid = self._distributed.broadcast(uuid)
        else:
            self._need_chief("store_path")
        with self._removed_on_failure(uuid):
            (self._together if shard else _alone)(self._of_chief(lambda: self._storage.begin(uuid)))
        try:
            yield self._storage.begun(uuid), uuid
        except BaseException as e:
            self._undo(uuid, e)
            if shard:
                self._distributed._leave(f"store_path() of checkpoint {uuid}: {type(e).__name__}: {e}")
            raise
        self._publish(uuid, metadata, shard)

    def _publish(self, uuid: str, metadata: Optional[Dict[str, Any]], shard: bool) -> None:
        together = self._together if shard else _alone
        with self._removed_on_failure(uuid):
            merged = self._merged(metadata) if shard else dict(metadata or {})
            _need_steps(merged)
            hashes = self._hash_together(uuid) if shard else self._hash_all(uuid, 0, 1)
            together(self._of_chief(lambda: self._seal(uuid, merged, hashes)))
        together(self._of_chief(lambda: self._report(uuid, list_directory(self._storage.path_of(uuid)), hashes, merged)))

    def _hash_all(self, uuid: str, first: int, step: int) -> Dict[str, str]:
        begun = self._storage.begun(uuid)
        with self._busy():
            return hash_paths(begun, sorted(list_directory(begun))[first::step])

    def _hash_together(self, uuid: str) -> Dict[str, str]:
        """Once all that the ranks wrote is on the disk, each of them reads its part of the files."""
        self._together(lambda: self._sync_begun(uuid))
        d = self._distributed
        shares = self._together(lambda: self._hash_all(uuid, d.rank, d.size))
        return {path: digest for share in shares for path, digest in share.items()}

    def _sync_begun(self, uuid: str) -> None:
        self._storage.need_begun(uuid)
        with self._busy():
            sync_tree(self._storage.begun(uuid))

    def _seal(self, uuid: str, metadata: Dict[str, Any], hashes: Dict[str, str]) -> None:
        with self._busy():
            self._storage.publish(uuid, as_json(metadata), hashes, self._writer)

    @contextlib.contextmanager
    def _removed_on_failure(self, uuid: str) -> Iterator[None]:
        try:
            yield
        except BaseException as e:
            self._undo(uuid, e)
            raise

    def _undo(self, uuid: str, e: BaseException) -> None:
        if isinstance(e, Exception):
            self._storage.judge(e)
        self._storage.abort(uuid)

    def _need_chief(self, what: str) -> None:
        if self._distributed.rank != 0:
            raise RuntimeError(f"{what}(shard=False) was called from non-chief worker: only rank 0 may")

    def _of_chief(self, work: Callable[[], None]) -> Callable[[], None]:
        return work if self._distributed.rank == 0 else lambda: None

    def _together(self, work: Callable[[], T]) -> List[T]:
        """What it gives on each rank. Where it fails on one all raise: the others would wait for that one."""
        mine: Optional[T] = None
        failure: Optional[Exception] = None
        try:
            mine = work()
        except Exception as e:
            failure = e
        said = f"rank {self._distributed.rank}: {type(failure).__name__}: {failure}"
        everyone = self._distributed.allgather((mine, failure and said))
        if failure is not None:
            raise failure
        failures = [said for _, said in everyone if said is not None]
        if failures:
            raise RuntimeError(f"the checkpoint cannot be stored: {'; '.join(failures)}")
        return [each for each, _ in everyone]

    def _merged(self, metadata: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        merged, conflicts = merge_metadata(self._together(lambda: json.loads(json.dumps(as_json(metadata or {})))))
        if conflicts:
            raise RuntimeError(f"refusing to upload with metadata conflicts: {', '.join(conflicts)}")
        return merged

    def _speaks(self, directory: Optional[str], selector: Optional[Selector]) -> bool:
        """Whether this rank offers files; the lowest rank of a machine speaks for a directory that several name."""

        def identity() -> Optional[Tuple[int, int, int]]:
            if directory is None and selector is not None:
                raise RuntimeError("a selector needs a directory to select from")
            if directory is None:
                return None
            _need_directory(directory)
            s = os.stat(directory)
            return (self._distributed.cross_rank, s.st_dev, s.st_ino)

        everyone = self._together(lambda: (identity(), selector is not None))
        if all(who is None for who, _ in everyone):
            raise RuntimeError("upload(shard=True) needs a directory from at least one rank")
        mine = everyone[self._distributed.rank][0]
        first = next(rank for rank, (who, _) in enumerate(everyone) if who == mine)
        alike = [selects for who, selects in everyone if who == mine]
        return mine is not None and (first == self._distributed.rank or any(alike))

    def _upload_sharded(
        self, directory: Optional[str], metadata: Optional[Dict[str, Any]], selector: Optional[Selector]
    ) -> str:
        uuid = self._distributed.broadcast(str(uuid_module.uuid4()))
        source = directory if self._speaks(directory, selector) else None
        uploads, conflicts = assign_uploads(self._together(lambda: _offer(source, selector)))
        if conflicts:
            listing = ", ".join(f"{path} (ranks {ranks})" for path, ranks in sorted(conflicts.items()))
            raise RuntimeError(f"refusing to upload with files conflicts: {listing}")
        merged = self._merged(metadata)
        _need_steps(merged)
        mine = uploads[self._distributed.rank]
        with self._removed_on_failure(uuid):
            self._together(self._of_chief(lambda: self._storage.begin(uuid)))
            shares = self._together(lambda: self._upload_share(source, uuid, mine))
            hashes = {path: digest for share in shares for path, digest in share.items()}
            self._together(self._of_chief(lambda: self._seal(uuid, merged, hashes)))
        self._together(self._of_chief(lambda: self._report(uuid, list_directory(self._storage.path_of(uuid)), hashes, merged)))
        return uuid

    def _upload_share(self, directory: Optional[str], uuid: str, mine: List[str]) -> Dict[str, str]:
        if directory is None or not mine:
            return {}
        with self._busy():
            self._storage.add(directory, uuid, mine)
            begun = self._storage.begun(uuid)
            sync_tree(begun)
            return hash_paths(begun, mine)

    def _report(self, uuid: str, resources: Dict[str, int], hashes: Dict[str, str], metadata: Optional[Dict[str, Any]]) -> None:
        assert self._session is not None
        body: Dict[str, Any] = {
            "uuid": uuid,
            "taskId": self._task_id,
            "allocationId": self._allocation_id,
            "metadata": metadata,
            "resources": {path: str(size) for path, size in resources.items()},
            "hashes": {path: f"{HASHES}:{digest}" for path, digest in hashes.items()},
            "state": "STATE_COMPLETED",
            "training": {},
            "reportTime": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        }
        if self._run_id is not None:
            body["trialRunId"] = self._run_id
        self._session.post("/api/v1/checkpoints", body)

    # ---- reading ----

    def download(
        self,
        storage_id: str,
        ckpt_dir: Path,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Optional[Selector] = None,
    ) -> None:
        """Copies a checkpoint's files to a directory."""
        self._once_a_machine(download_mode, lambda: self._storage.download(storage_id, os.fspath(ckpt_dir), selector))

    def _once_a_machine(self, mode: DownloadMode, work: Callable[[], None]) -> None:
        """The lowest rank of a machine works for all of it; where it fails the others say so too."""
        if mode == DownloadMode.NoSharedDownload:
            with self._busy():
                return work()
        failure: Optional[Exception] = None
        if self._distributed.local_rank == 0:
            try:
                with self._busy():
                    work()
            except Exception as e:
                failure = e
        absent, said = self._distributed.allgather_local((isinstance(failure, FileNotFoundError), failure and str(failure)))[0]
        if failure is not None:
            raise failure
        if said is not None:
            raise FileNotFoundError(said) if absent else RuntimeError(said)

    @contextlib.contextmanager
    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Optional[Selector] = None,
    ) -> Iterator[pathlib.Path]:
        """The checkpoint's files as they were stored, readable within the context; a store on a file system is read in place."""
        if selector is not None:
            logger.warning("restore_path(): a selector has no effect where the store is a directory")
        self._once_a_machine(download_mode, lambda: self._storage.verify(storage_id))
        path = self._storage.path_of(storage_id)
        yield path
        if download_mode == DownloadMode.LocalWorkersShareDownload:
            self._distributed.allgather_local(None)

    def get_metadata(self, storage_id: str) -> Dict[str, Any]:
        assert self._session is not None
        answer = self._session.get(f"/api/v1/checkpoints/{storage_id}")
        return dict(answer["checkpoint"].get("metadata") or {})

    def delete(self, storage_id: str) -> None:
        """Removes a checkpoint's files."""
        self._storage.delete(storage_id)


class DummyCheckpointContext(CheckpointContext):
    """Outside of a trial: the same in a local directory, reported to nobody."""

    def __init__(self, distributed: DistributedContext, storage: DirectoryStorage) -> None:
        self._distributed = distributed
        self._storage = storage
        self._session = None
        self._task_id = self._allocation_id = ""
        self._writer = {}

    def _report(self, uuid: str, resources: Dict[str, int], hashes: Dict[str, str], metadata: Optional[Dict[str, Any]]) -> None:
        logger.info(f"saved checkpoint {uuid}")

    def get_metadata(self, storage_id: str) -> Dict[str, Any]:
        return self._storage.metadata_of(storage_id)
