"""Importing the code of a checkpoint beside the code that is running."""

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

_lock = threading.Lock()


class _NoCacheFinder(importlib.abc.MetaPathFinder):
    """Finds modules below one path with a loader that writes no byte code there."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(self, fullname: str, path: Optional[Sequence[Union[bytes, str]]], target: Any = None) -> Any:
        where = [str(p) for p in path] if path is not None else [self._path]
        inside = [p for p in where if p == self._path or p.startswith(self._path + os.sep)]
        if not inside:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, inside)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader._cache_bytecode = lambda *args, **kwargs: None  # type: ignore
        return spec


def _comes_from(module: Any, directory: str) -> bool:
    """Was the module, or one of its namespace package's parts, imported from below the directory?"""
    files = [getattr(module, "__file__", None)]
    with contextlib.suppress(Exception):
        files += list(getattr(module, "__path__", []))
    return any(f and os.path.abspath(f).startswith(directory + os.sep) for f in files)


def _take_out(directory: str, but: Sequence[str] = ()) -> Dict[str, Any]:
    """The modules of the directory, out of sys.modules; not those of the directories `but` below it."""
    modules = [(n, m) for n, m in list(sys.modules.items()) if n != "__main__" and _comes_from(m, directory)]
    names: List[str] = [n for n, m in modules if not any(_comes_from(m, b) for b in but)]
    return {n: sys.modules.pop(n) for n in names}


@contextlib.contextmanager
def import_from_path(path: Union[str, "os.PathLike[str]"]) -> Iterator[None]:
    """Within the context, imports find the modules of `path` before those of the working directory.

    Afterwards everything is as before: what was imported from `path` is gone from sys.modules (objects that were
    taken from it live on), and what the working directory had given is back. Libraries are shared.
    """
    if not _lock.acquire(blocking=False):
        raise RuntimeError("import_from_path() does not support nesting, nor use from two threads at once")
    try:
        directory, cwd = os.path.abspath(path), os.getcwd()
        old_path = list(sys.path)
        libraries = [os.path.abspath(p) for p in old_path if os.path.abspath(p).startswith(cwd + os.sep)]  # a venv in it, say
        hidden = _take_out(cwd, libraries) if "" in sys.path or cwd in sys.path else {}
        finder = _NoCacheFinder(directory)
        sys.path[:] = [directory] + [p for p in old_path if p != ""]
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            sys.path[:] = old_path
            _take_out(directory)
            sys.modules.update(hidden)
    finally:
        _lock.release()
