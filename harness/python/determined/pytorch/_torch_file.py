"""torch.save() to a disk that may have no room.

Where a write fails, torch tries again as it cleans up, and ends the process by abort(): nobody learns why. Here torch is
told that all went well, and the error is raised once it is done.
"""

import os
from typing import IO, Any, Optional

import torch


class _Sink:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: Optional[OSError] = None

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                self._file.write(data)
            except OSError as e:
                self.error = e
        return memoryview(data).nbytes

    def flush(self) -> None:
        pass


def save(value: Any, file: IO[bytes], **options: Any) -> None:
    """The file must be buffered: others may write less than they are given."""
    sink = _Sink(file)
    torch.save(value, sink, **options)  # type: ignore
    if sink.error is not None:
        raise sink.error
    file.flush()


def culprit(value: Any, **options: Any) -> str:
    """Where in it lies what torch.save() cannot pickle: as ["callbacks"]["mine"]."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        try:
            with open(os.devnull, "wb") as f:
                torch.save(part, f, **options)
        except Exception:
            return f"[{key!r}]" + culprit(part, **options)
    return ""
