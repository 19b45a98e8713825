"""Being asked to make room."""

import contextlib
import enum
import logging
import threading
import time
from typing import Callable, ContextManager, Optional

from determined.core._distributed import DistributedContext
from determined.core._session import Session

logger = logging.getLogger("determined.core")


class PreemptMode(enum.Enum):
    """Who asks: the chief for all; the chief alone; every rank for itself."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class _Watcher(threading.Thread):
    """Asks the master, at first without waiting, then by long polls, until the answer is yes."""

    POLL_S = 60
    RETRY_S = 10

    def __init__(self, session: Session, allocation_id: str) -> None:
        super().__init__(daemon=True, name="det-preempt")
        self._session = session
        self._path = f"/api/v1/allocations/{allocation_id}/signals/preemption"
        self._wanted = False
        self._first = threading.Event()
        self._end = threading.Event()

    def _ask(self, seconds: int) -> bool:
        return bool(self._session.get(f"{self._path}?timeout_seconds={seconds}", timeout=seconds + 10).get("preempt"))

    def run(self) -> None:
        seconds = 0
        while not self._wanted and not self._end.is_set():
            started = time.monotonic()
            try:
                self._wanted = self._ask(seconds)
            except Exception as e:
                logger.warning(f"asking whether to make room failed: {e}")
                if time.monotonic() - started < seconds:
                    self._end.wait(self.RETRY_S)
            self._first.set()
            seconds = self.POLL_S

    def wanted(self) -> bool:
        self._first.wait()
        return self._wanted

    def stop(self) -> None:
        self._end.set()


class PreemptContext:
    """should_preempt() says when to save a checkpoint and leave."""

    waiting: Optional[Callable[[], ContextManager[None]]] = None

    def __init__(
        self,
        session: Session,
        allocation_id: str,
        distributed: DistributedContext,
        preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    ) -> None:
        self._session = session
        self._allocation_id = allocation_id
        self._distributed = distributed
        self._mode = preempt_mode
        self._watcher: Optional[_Watcher] = None
        self._started = False
        self._acknowledged = False

    def start(self) -> "PreemptContext":
        if self._started:
            raise RuntimeError("PreemptContext.start() was called already")
        self._started = True
        if self._distributed.rank == 0 or self._mode == PreemptMode.WorkersAskMaster:
            self._watcher = _Watcher(self._session, self._allocation_id)
            self._watcher.start()
        return self

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()

    def __enter__(self) -> "PreemptContext":
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def should_preempt(self, auto_ack: bool = True) -> bool:
        if not self._started:
            raise RuntimeError("should_preempt() needs start() first")
        with self._shows_life():
            pass
        chief = self._distributed.rank == 0
        if self._mode == PreemptMode.ChiefOnly and not chief:
            raise RuntimeError("should_preempt() was called from non-chief worker; PreemptMode.ChiefOnly forbids it")
        wanted = self._watcher.wanted() if self._watcher is not None else False
        if self._mode == PreemptMode.WorkersAskChief:
            wanted = self._distributed.broadcast(wanted)
        if wanted and auto_ack and chief and not self._acknowledged:
            self.acknowledge_preemption_signal()
        return wanted

    def _shows_life(self) -> ContextManager[None]:
        """Around each question of the loop."""
        return contextlib.nullcontext() if self.waiting is None else self.waiting()

    def acknowledge_preemption_signal(self) -> None:
        """Tells the master that the end of this process is meant."""
        self._acknowledged = True
        path = f"/api/v1/allocations/{self._allocation_id}/signals/ack_preemption"
        self._session.post(path, {"allocationId": self._allocation_id})


class DummyPreemptContext(PreemptContext):
    """Never asked; ranks still keep in step."""

    def __init__(
        self, distributed: DistributedContext, preempt_mode: PreemptMode = PreemptMode.WorkersAskChief
    ) -> None:
        self._distributed = distributed
        self._mode = preempt_mode
        self._started = False
        self._watcher = None
        self._acknowledged = True

    def start(self) -> "DummyPreemptContext":
        self._started = True
        return self

    def acknowledge_preemption_signal(self) -> None:
        pass
