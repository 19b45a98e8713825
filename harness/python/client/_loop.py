"""determined._loop of the client's wheel: a checkpoint store in Python alone, for core_v2 in trainings that run elsewhere.

Its hashes are SHA-256, which a cluster checks as well as its own kind. What else the real one has is not in the wheel.
"""

import hashlib
import logging
import os
import shutil
from typing import Any, Dict, Optional, Union

HASHES = "sha256"
_CHUNK = 1 << 20
logger = logging.getLogger("determined.core")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        "this is the client of a det cluster alone (determined-*-py3-none-any.whl): what trains under det's loop, or on several "
        "ranks, is in the whole package, which `pip install .` builds from a checkout and tasks of a cluster have"
    )


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_tree(root: str) -> None:
    for where, _, names in os.walk(root, topdown=False):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                _sync(path)
        _sync(where)


def _begun(root: str, uuid: str) -> str:
    return os.path.join(root, f".{uuid}.tmp")


def store_begin(root: str, _: Optional[str], uuid: str) -> str:
    """The directory to write to; what a crash left there goes."""
    if os.path.lexists(os.path.join(root, uuid)):
        raise FileExistsError(f"checkpoint {uuid} is in {root} already")
    os.makedirs(root, exist_ok=True)
    begun = _begun(root, uuid)
    if os.path.isdir(begun):
        shutil.rmtree(begun)
    os.mkdir(begun)
    return begun


def store_publish(root: str, _: Optional[str], uuid: str) -> None:
    """Whole on the disk first, then under its name."""
    _sync_tree(_begun(root, uuid))
    os.rename(_begun(root, uuid), os.path.join(root, uuid))
    _sync(root)


def store_delete(root: str, _: Optional[str], uuid: str) -> None:
    """Out of sight first."""
    hidden = os.path.join(root, f".{uuid}.del")
    if os.path.isdir(hidden):
        shutil.rmtree(hidden)
    if not os.path.isdir(os.path.join(root, uuid)):
        raise FileNotFoundError(f"there is no checkpoint {uuid} in {root}")
    os.rename(os.path.join(root, uuid), hidden)
    _sync(root)
    shutil.rmtree(hidden)


def store_hash(path: Union[str, "os.PathLike[str]"]) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for chunk in iter(lambda: f.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def store_verify(directory: "os.PathLike[str]", recorded: Dict[str, Dict[str, str]]) -> None:
    """A damaged or missing file is a RuntimeError that names it."""
    for kind, hashes in recorded.items():
        for path, wanted in hashes.items():
            whole = os.path.join(directory, path)
            if not os.path.isfile(whole):
                raise RuntimeError(f"checkpoint {directory} is damaged: {path} is missing")
            if kind == HASHES and store_hash(whole) != wanted:
                raise RuntimeError(f"checkpoint {directory} is damaged: {path} is not as it was written")
    for kind in (k for k, hashes in recorded.items() if hashes and k != HASHES):
        logger.info(f"checkpoint {directory}: all files are there; the client's wheel cannot check their {kind}")
