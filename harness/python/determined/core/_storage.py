"""Checkpoint stores: a directory that every rank of the trial can reach."""

import errno
import json
import os
import pathlib
import re
import shutil
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union
from urllib.parse import urlparse

from determined import _loop

Selector = Callable[[str], bool]
METADATA = "metadata.json"
MARKER = ".det-store"
HASHES: str = _loop.HASHES  # the kind that is written; the client's wheel has another than a cluster
KINDS = ("xxh128", "sha256")
TASK = "det_task"
CLUSTER = "det_cluster"
HPARAMS = "hparams"  # the trial's, unless its own metadata has the key
ADDED = "det_added"  # the keys that are not the trial's own
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_ROOM_BYTES = 64 << 10  # less is none: what fills a disk writes in blocks


def list_directory(root: Union[str, "os.PathLike[str]"]) -> Dict[str, int]:
    """Every file and directory below root (directories end in "/" and count 0 bytes), relative."""
    found: Dict[str, int] = {}
    for where, directories, files in os.walk(root):
        base = os.path.relpath(where, root)
        at = "" if base == "." else base + "/"
        for name in sorted(directories):
            found[at + name + "/"] = 0
        for name in sorted(files):
            found[at + name] = os.path.getsize(os.path.join(where, name))
    return found


def with_parents(paths: Iterable[str]) -> List[str]:
    """The paths and the directories that lead to them."""
    wanted = set(paths)
    for path in list(wanted):
        parent = os.path.dirname(path.rstrip("/"))
        while parent:
            wanted.add(parent + "/")
            parent = os.path.dirname(parent)
    return sorted(wanted)


def copy_paths(src: str, dst: str, paths: Iterable[str]) -> None:
    """metadata.json comes last: where it is, all is."""
    for path in sorted(paths, key=lambda p: (p == METADATA, p)):
        target = os.path.join(dst, path)
        if path.endswith("/"):
            os.makedirs(target, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(src, path), target)


def sync_tree(root: Union[str, "os.PathLike[str]"]) -> None:
    """What this host wrote below root, to the disk: another host's publishing does not reach it."""
    for where, _, files in os.walk(root):
        for name in [*files, "."]:
            path = os.path.join(where, name)
            if os.path.islink(path) or not (os.path.isdir(path) or os.path.isfile(path)):
                continue
            fd = os.open(path, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def hash_paths(root: Union[str, "os.PathLike[str]"], paths: Iterable[str]) -> Dict[str, str]:
    """Of the plain files among the paths."""
    whole = {p: os.path.join(root, p) for p in paths if not p.endswith("/") and p != METADATA}
    return {p: _loop.store_hash(where) for p, where in whole.items() if os.path.isfile(where) and not os.path.islink(where)}


class DirectoryStorage:
    """One directory a checkpoint below a base path; there whole, with the hash of each file, or not at all.

    `store_id`: of a store that the master knows. Where it is not at its place, nothing is made there.
    """

    def __init__(self, base: str, store_id: Optional[str] = None) -> None:
        self.root = pathlib.Path(base)
        self._id = store_id

    def path_of(self, uuid: str) -> pathlib.Path:
        """Of a name, not of a path: "" would be the whole store, and ".." what is beside it."""
        if not re.fullmatch("[A-Za-z0-9_-]{1,64}", uuid):
            raise ValueError(f"checkpoint uuid {uuid!r}: letters, digits, '-' and '_' only: the name of its folder, not a path")
        return self.root / uuid

    def is_there(self) -> bool:
        """Whether the store is at its place; one that nobody knows by an id is where its directory is."""
        if not self._id:
            return True
        try:
            return bool(json.loads((self.root / MARKER).read_text(encoding="utf-8"))["id"] == self._id)
        except (OSError, ValueError, TypeError, KeyError):
            return False

    def _need(self) -> None:
        """A store that is away is not one whose checkpoints are lost: the run ends, and the next one waits for the store."""
        if not self.is_there():
            _loop.store_ready(os.path.realpath(self.root), self._id)

    def _place(self, uuid: str) -> Tuple[str, Optional[str], str]:
        """A store's root is absolute."""
        return os.path.realpath(self.root), self._id, uuid

    def begun(self, uuid: str) -> pathlib.Path:
        """Where a begun checkpoint is written, by every rank."""
        return self.root / f".{uuid}.tmp"

    def need_begun(self, uuid: str) -> None:
        """On each host that writes: where another directory is at the store's place, its files would be left out."""
        self._need()
        if not self.begun(uuid).is_dir():
            raise FileNotFoundError(f"{self.begun(uuid)}, which rank 0 has made, is not on this host: another file system is mounted there")

    def begin(self, uuid: str) -> None:
        _loop.store_begin(*self._place(uuid))

    def add(self, src: str, uuid: str, paths: Iterable[str]) -> None:
        """Copies files of a directory into a begun checkpoint."""
        self.need_begun(uuid)
        copy_paths(src, str(self.begun(uuid)), paths)

    def publish(self, uuid: str, metadata: Dict[str, Any], hashes: Dict[str, str], writer: Optional[Dict[str, Any]] = None) -> None:
        """metadata.json holds the hashes of all other files, whose they are, and who wrote them: its TASK, CLUSTER and HPARAMS."""
        writer = {k: v for k, v in (writer or {}).items() if k != HPARAMS or k not in metadata}
        added = {ADDED: [HPARAMS]} if HPARAMS in writer else {}
        whole = {**metadata, "uuid": uuid, HASHES: hashes, **writer, **added}
        with open(self.begun(uuid) / METADATA, "w", encoding="utf-8") as f:
            json.dump(whole, f, indent=2)
        _loop.store_publish(*self._place(uuid))

    def abort(self, uuid: str) -> None:
        """Nobody knows of a part of a checkpoint: it would take its room in the store for ever."""
        for directory in (self.begun(uuid), self.path_of(uuid)):
            shutil.rmtree(directory, ignore_errors=True)

    def judge(self, e: Exception) -> None:
        """Before abort() makes room again: whether a checkpoint failed for want of it here, which ended() asks for.

        Not all that write say so (torch.save does not): what fails while there is none is taken to fail for it.
        """
        named = isinstance(e, OSError) and e.errno in _NO_ROOM and str(e.filename or "").startswith(f"{self.root}{os.sep}")
        if self._id and (named or self._is_full()):
            e._store_full = f"{self.root} has no room for a checkpoint: {e}"  # type: ignore[attr-defined]

    def _is_full(self) -> bool:
        try:
            now = os.statvfs(self.root)
        except OSError:
            return False
        blocks = now.f_bavail if os.geteuid() else now.f_bfree
        return blocks * now.f_frsize < _ROOM_BYTES or (now.f_files > 0 and now.f_ffree == 0)

    def verify(self, uuid: str, selector: Optional[Selector] = None) -> None:
        """RuntimeError names the first file that is not as it was written; those without hashes are taken as they are."""
        self._need()
        path = self.path_of(uuid)
        if not path.is_dir():
            raise FileNotFoundError(f"there is no checkpoint {uuid} in {self.root}")
        metadata = _read_metadata(path)
        if metadata.get("uuid", uuid) != uuid and _kind(metadata):
            raise RuntimeError(f"{path} holds the files of checkpoint {metadata['uuid']}")
        _loop.store_verify(path, {kind: _selected(metadata, kind, selector) for kind in KINDS})

    def metadata_of(self, uuid: str) -> Dict[str, Any]:
        """What was given when it was stored."""
        self._need()
        metadata = _read_metadata(self.path_of(uuid))
        kind = _kind(metadata)
        added = (HPARAMS,) if metadata.get(ADDED) == [HPARAMS] else ()
        return {k: v for k, v in metadata.items() if not kind or k not in ("uuid", kind, TASK, CLUSTER, ADDED, *added)}

    def download(self, uuid: str, dst: str, selector: Optional[Selector] = None) -> None:
        self.verify(uuid, selector)
        src = self.path_of(uuid)
        paths = [p for p in list_directory(src) if selector is None or selector(p)]
        os.makedirs(dst, exist_ok=True)
        copy_paths(str(src), dst, with_parents(paths))

    def delete(self, uuid: str) -> None:
        """Out of sight first: a half-deleted one is never under its name."""
        self.path_of(uuid)
        _loop.store_delete(*self._place(uuid))


def ended(e: Optional[BaseException]) -> None:
    """The run ends with this: where it is for want of room in its store, that is no failure of the trial's."""
    while e is not None and not hasattr(e, "_store_full"):
        e = e.__cause__
    if e is not None:
        _loop.store_note(e._store_full)


def _read_metadata(path: pathlib.Path) -> Dict[str, Any]:
    """Of a checkpoint from elsewhere that has none: nothing."""
    try:
        metadata = json.loads((path / METADATA).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as e:
        raise RuntimeError(f"checkpoint {path} is damaged: {METADATA}: {e}") from e
    if not isinstance(metadata, dict):
        raise RuntimeError(f"checkpoint {path} is damaged: {METADATA} holds no object")
    return metadata


def _kind(metadata: Dict[str, Any]) -> Optional[str]:
    """Of the hashes with which it was written; None: from elsewhere, and all keys are its user's."""
    if KINDS[0] in metadata:
        return KINDS[0]
    return KINDS[1] if KINDS[1] in metadata and ("uuid" in metadata or TASK in metadata) else None


def _selected(metadata: Dict[str, Any], kind: str, selector: Optional[Selector]) -> Dict[str, Any]:
    hashes = metadata.get(kind)
    if not isinstance(hashes, dict):  # a key of the user's own
        return {}
    return {p: h for p, h in hashes.items() if selector is None or selector(p)}


def default_directory() -> str:
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(home, "determined")


def open_storage(where: Union[None, str, "os.PathLike[str]", Dict[str, Any]], store_id: Optional[str] = None) -> DirectoryStorage:
    """From a path, a file: URI or a checkpoint_storage section; None: the user's data directory."""
    if where is None:
        return DirectoryStorage(default_directory())
    if isinstance(where, (str, os.PathLike)):
        uri = urlparse(os.fspath(where))
        if uri.scheme not in ("", "file"):
            raise ValueError(f"checkpoint storage {where}: only paths and file: URIs are supported")
        return DirectoryStorage(uri.path)
    if not isinstance(where, dict):
        raise TypeError(f"checkpoint_storage must be a path, a URI or a dict, not a {type(where).__name__}")
    kind = where.get("type")
    if kind == "directory":
        return DirectoryStorage(where["container_path"], store_id)
    if kind == "shared_fs":
        root = where.get("host_path") or ""
        path = where.get("storage_path")
        return DirectoryStorage(os.path.join(root, path) if path else root, store_id)
    raise ValueError(f'checkpoint storage of type "{kind}" is not supported: use directory or shared_fs')
