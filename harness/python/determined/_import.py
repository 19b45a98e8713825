"""Importing the code of a checkpoint beside the code that is running."""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Union

_in_use = threading.Lock()  # by import_from_path()
_lock = threading.RLock()
_kept: Set[str] = set()  # directories whose modules stayed


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


def _names(directory: str) -> Set[str]:
    """What `import` finds in a directory before it looks elsewhere."""
    with contextlib.suppress(OSError):
        names = {e.name if e.is_dir() else e.name[:-3] for e in os.scandir(directory) if _is_module(e)}
        return names - {"__main__", "determined"}
    return set()


def _is_module(entry: "os.DirEntry[str]") -> bool:
    return os.path.exists(os.path.join(entry.path, "__init__.py")) if entry.is_dir() else entry.name.endswith(".py")


def _hide(directory: str) -> Dict[str, Any]:
    """Takes out what imports from the directory would meet in place of its own modules."""
    cwd, names = os.getcwd(), _names(directory)
    libraries = [os.path.abspath(p) for p in sys.path if os.path.abspath(p).startswith(cwd + os.sep)]  # a venv in it, say
    hidden = _take_out(cwd, libraries) if "" in sys.path or cwd in sys.path else {}
    for other in _kept:
        hidden.update(_take_out(other))
    equal = [n for n in sys.modules if n.partition(".")[0] in names]
    hidden.update({n: sys.modules.pop(n) for n in equal})
    return hidden


@contextlib.contextmanager
def importing(path: Union[str, "os.PathLike[str]"], keep: bool = False) -> Iterator[None]:
    """As import_from_path(), but one may stand within another. With `keep` modules stay where their names are free."""
    with _lock:
        directory, old_path = os.path.abspath(path), list(sys.path)
        hidden = _hide(directory)
        finder = _NoCacheFinder(directory)
        sys.path[:] = [directory] + [p for p in old_path if p != ""]
        sys.meta_path.insert(0, finder)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            sys.path[:] = old_path
            own = _take_out(directory)
            sys.modules.update(hidden)
            if keep:
                _kept.add(directory)
                for name, module in own.items():
                    sys.modules.setdefault(name, module)


@contextlib.contextmanager
def import_from_path(path: Union[str, "os.PathLike[str]"]) -> Iterator[None]:
    """Within the context, imports find the modules of `path` before those of the working directory.

    Afterwards everything is as before: what was imported from `path` is gone from sys.modules (objects that were
    taken from it live on), and what its names had stood for is back. Libraries are shared.
    """
    if not _in_use.acquire(blocking=False):
        raise RuntimeError("import_from_path() does not support nesting, nor use from two threads at once")
    try:
        with importing(path):
            yield
    finally:
        _in_use.release()
