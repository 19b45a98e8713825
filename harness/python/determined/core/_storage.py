"""Checkpoint stores: a directory that every rank of the trial can reach."""

import os
import pathlib
import shutil
from typing import Any, Callable, Dict, Iterable, List, Optional, Union
from urllib.parse import urlparse

Selector = Callable[[str], bool]
METADATA = "metadata.json"


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


def sync(path: Union[str, "os.PathLike[str]"]) -> None:
    """A file, or the names in a directory, to the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_tree(root: Union[str, "os.PathLike[str]"]) -> None:
    """What is below root, and that root is there: a checkpoint that the master knows of outlives a loss of power."""
    for where, _, files in os.walk(root):
        for name in files:
            sync(os.path.join(where, name))
        sync(where)
    sync(os.path.dirname(os.path.abspath(root)))


class DirectoryStorage:
    """One directory a checkpoint below a base path."""

    def __init__(self, base: str) -> None:
        self.root = pathlib.Path(base)

    def path_of(self, uuid: str) -> pathlib.Path:
        return self.root / uuid

    def upload(self, src: str, uuid: str, paths: Optional[Iterable[str]] = None) -> None:
        chosen = list_directory(src) if paths is None else paths
        os.makedirs(self.path_of(uuid), exist_ok=True)
        copy_paths(src, str(self.path_of(uuid)), chosen)
        sync_tree(self.path_of(uuid))

    def download(self, uuid: str, dst: str, selector: Optional[Selector] = None) -> None:
        src = self.path_of(uuid)
        if not src.is_dir():
            raise FileNotFoundError(f"there is no checkpoint {uuid} in {self.root}")
        paths = [p for p in list_directory(src) if selector is None or selector(p)]
        os.makedirs(dst, exist_ok=True)
        copy_paths(str(src), dst, with_parents(paths))

    def delete(self, uuid: str) -> None:
        shutil.rmtree(self.path_of(uuid))


def default_directory() -> str:
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(home, "determined")


def open_storage(where: Union[None, str, "os.PathLike[str]", Dict[str, Any]]) -> DirectoryStorage:
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
        return DirectoryStorage(where["container_path"])
    if kind == "shared_fs":
        root = where.get("host_path") or ""
        path = where.get("storage_path")
        return DirectoryStorage(os.path.join(root, path) if path else root)
    raise ValueError(f'checkpoint storage of type "{kind}" is not supported: use directory or shared_fs')
