"""TensorBoard's files of a task: where they are written, and how they get to the checkpoint store."""

import os
import pathlib
import shutil
import stat
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

from determined.core._storage import DirectoryStorage

Selector = Callable[[pathlib.Path], bool]
Mangler = Callable[[pathlib.Path, int], pathlib.Path]


def tensorboard_path(storage: Optional[Dict[str, Any]]) -> pathlib.Path:
    """This rank's directory: in the task's own, which goes with the task, unless the store's configuration says where."""
    base = (storage or {}).get("base_path") or os.environ.get("DET_RUN_DIR") or "/tmp"
    rank = os.environ.get("HOROVOD_RANK") or os.environ.get("RANK") or 0
    return pathlib.Path(base) / f"tensorboard-{os.environ.get('DET_ALLOCATION_ID', '')}-{rank}"


def all_but_events(path: pathlib.Path) -> bool:
    """What ranks other than the chief keep: their event files would double the chief's."""
    return "tfevents" not in path.name


class TensorboardFiles:
    """Copies what is new in a rank's directory to the trial's place in the store; the training loop does so by itself."""

    PERIOD_S = 10.0

    def __init__(self, directory: pathlib.Path, store: DirectoryStorage, place: str, rank: int) -> None:
        self._directory = directory
        self._store = store
        self._place = store.root / place
        self._rank = rank
        self._seen: Dict[pathlib.Path, Tuple[int, int]] = {}
        self._last = -self.PERIOD_S
        self._lock = threading.Lock()

    def upload(self, selector: Selector, mangler: Mangler) -> None:
        """Copies the selected files that changed since they were copied last."""
        with self._lock:
            self._last = time.monotonic()
            if not self._store.is_there():  # a view of the training, not a part of it: later, when it is back
                return
            for path in sorted(self._directory.rglob("*")):
                if path.is_file() and selector(path):
                    self._copy(path, self._place / mangler(path.relative_to(self._directory), self._rank))

    def upload_now_and_then(self) -> None:
        if time.monotonic() - self._last >= self.PERIOD_S:
            self.upload_all()

    def upload_all(self) -> None:
        """The chief's files; of other ranks all but events, by names that say the rank."""
        if self._rank == 0:
            self.upload(lambda _: True, lambda path, _: path)
        else:
            self.upload(all_but_events, lambda path, rank: path.with_name(f"{path.stem}#{rank}{path.suffix}"))

    def _make_shared(self) -> None:
        """The folders above the place are not this account's alone, where several write to the root: sticky, as that is."""
        mode = stat.S_IMODE(self._store.root.stat().st_mode)
        if not mode & stat.S_ISVTX or self._place.exists():
            return
        for folder in reversed(self._place.relative_to(self._store.root).parents[:-1]):
            try:
                (self._store.root / folder).mkdir()
            except FileExistsError:
                continue
            (self._store.root / folder).chmod(mode & 0o3777)

    def _copy(self, source: pathlib.Path, target: pathlib.Path) -> None:
        found = source.stat()
        version = (found.st_mtime_ns, found.st_size)
        if self._seen.get(source) == version:
            return
        self._make_shared()
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        shutil.copyfile(source, part)
        os.replace(part, target)  # readers see a whole file, or the one before
        self._seen[source] = version
