"""The sign of life of a script over the Core API, for its agent (proto/progress.h): what it reports.

Begun by the first report of training, and only where its configuration has a stall_timeout: how long a script may be
silent is nobody else's to know. From then on each call shows that it lives, and one that waits for the master does so
for as long as it waits. One process writes, the chief.
"""

import contextlib
import mmap
import os
import struct
import threading
import time
from typing import Iterator, Optional

MAGIC = 0x31474F5250544544
BYTES = 64
STARTING, TRAINING = 0, 1
TICK_S = 0.2


def begin() -> None:
    """The first sign of life of a rank that the loop will keep alive: what it does until then counts, too."""
    path = os.environ.get("DET_PROGRESS_FILE")
    if path is not None:
        with contextlib.suppress(OSError), open(path, "r+b") as f:  # a task may remove its own
            f.write(struct.pack("<QQqI", MAGIC, 0, time.monotonic_ns() // 10**6, STARTING))


class Alive:
    def __init__(self, wanted: bool) -> None:
        self._path = os.environ.get("DET_PROGRESS_FILE") if wanted else None
        self._map: Optional[mmap.mmap] = None
        self._batches = 0
        self._calls = 0
        self._lock = threading.Lock()
        self._waits = threading.Event()

    def trained(self, batches: int) -> None:
        """To that batch; the watch begins."""
        if self._path is None:
            return
        with self._lock:
            self._batches = max(0, min(int(batches), 2**63 - 1))
            if self._map is None:
                self._open(self._path)
            self._touch()

    def _open(self, path: str) -> None:
        try:
            with open(path, "r+b") as f:
                self._map = mmap.mmap(f.fileno(), BYTES)
        except (OSError, ValueError):  # a task may remove its own
            self._path = None
            return
        threading.Thread(target=self._beat, daemon=True, name="det-alive").start()

    def _touch(self) -> None:
        if self._map is not None:
            self._map[8:28] = struct.pack("<QqI", self._batches, time.monotonic_ns() // 10**6, TRAINING)
            self._map[0:8] = struct.pack("<Q", MAGIC)

    def _beat(self) -> None:
        while self._waits.wait():
            time.sleep(TICK_S)
            with self._lock:
                if self._calls:
                    self._touch()

    def _add(self, n: int) -> None:
        with self._lock:
            self._calls += n
            (self._waits.set if self._calls else self._waits.clear)()
            self._touch()

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While the master is asked, which may be away."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def end(self) -> None:
        """No more is reported: what the script does from here on is not watched."""
        with self._lock:
            if self._map is not None:
                self._map[0:8] = bytes(8)
            self._map = self._path = None
