"""Where this process is, for whoever asks: its agent, when a rank gives no sign of life."""

import contextlib
import faulthandler
import os

SIGNAL = 63  # PROGRESS_STACKS_SIGNAL of proto/progress.h


def answer() -> None:
    """In a task, the signal has the stacks of all threads written to standard error, whatever holds the interpreter."""
    if "DET_PROGRESS_FILE" in os.environ and hasattr(faulthandler, "register"):
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # no standard error, or no such signal
            faulthandler.register(SIGNAL, file=2, all_threads=True)  # type: ignore  # 2: sys.stderr may be another by then
