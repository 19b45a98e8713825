"""What the searcher asks of a trial."""

import enum
import logging
from typing import Any, Dict, Iterator, Optional

from determined.core._distributed import DistributedContext
from determined.core._session import Session

logger = logging.getLogger("determined.core")


class Unit(enum.Enum):
    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherMode(enum.Enum):
    """Do workers hear of operations from the chief, or does the chief work alone?"""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHEIF_ONLY"


class SearcherOperation:
    """Train until `length` (counted from the trial's beginning), validate, report."""

    def __init__(self, session: Optional[Session], trial_id: int, length: int, is_chief: bool) -> None:
        self._session = session
        self._trial_id = trial_id
        self._length = length
        self._is_chief = is_chief
        self._completed = False

    @property
    def length(self) -> int:
        return self._length

    def _need_chief(self, what: str) -> None:
        if not self._is_chief:
            raise RuntimeError(f"{what}() must only be called by the chief (rank 0)")

    def report_progress(self, length: float) -> None:
        self._need_chief("report_progress")
        if self._completed and length != self._length:
            raise RuntimeError("report_progress() was called after report_completed()")
        self._progress(length)

    def report_completed(self, searcher_metric: Any) -> None:
        self._need_chief("report_completed")
        if self._completed:
            raise RuntimeError("report_completed() was called twice for one operation")
        self._completed = True
        self._complete(searcher_metric)

    def _progress(self, length: float) -> None:
        assert self._session is not None
        self._session.post(f"/api/v1/trials/{self._trial_id}/progress", float(length))

    def _complete(self, metric: Any) -> None:
        assert self._session is not None
        body = {"op": {"length": self._length}, "searcherMetric": metric}
        self._session.post(f"/api/v1/trials/{self._trial_id}/searcher/completed_operation", body)


class DummySearcherOperation(SearcherOperation):
    def __init__(self, length: int, is_chief: bool) -> None:
        super().__init__(None, 0, length, is_chief)

    def _progress(self, length: float) -> None:
        logger.info(f"progress: {length} of {self._length}")

    def _complete(self, metric: Any) -> None:
        logger.info(f"operation completed: length {self._length}, metric {metric}")


class SearcherContext:
    def __init__(
        self,
        session: Optional[Session],
        distributed: DistributedContext,
        trial_id: int,
        config: Dict[str, Any],
        acknowledge: Any = None,
    ) -> None:
        self._session = session
        self._distributed = distributed
        self._trial_id = trial_id
        self._config = config
        self._acknowledge = acknowledge

    def _next(self) -> Optional[int]:
        assert self._session is not None
        answer = self._session.get(f"/api/v1/trials/{self._trial_id}/searcher/operation")
        if answer.get("completed") or not answer.get("op"):
            return None
        return int(answer["op"]["validateAfter"]["length"])

    def _operation(self, length: int) -> SearcherOperation:
        return SearcherOperation(self._session, self._trial_id, length, self._distributed.rank == 0)

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """The operations of the searcher, until there are no more; complete each before the next."""
        chief = self._distributed.rank == 0
        if not isinstance(searcher_mode, SearcherMode):
            raise TypeError(f"operations(searcher_mode=...) takes a determined.core.SearcherMode, not {searcher_mode!r}")
        if searcher_mode == SearcherMode.ChiefOnly and not chief:
            raise RuntimeError("operations() was called from non-chief worker; SearcherMode.ChiefOnly forbids it")
        while True:
            length = self._next() if chief else None
            if searcher_mode == SearcherMode.WorkersAskChief:
                length = self._distributed.broadcast(length)
            if length is None:
                break
            op = self._operation(length)
            yield op
            if chief and not op._completed:
                raise RuntimeError("you must call op.report_completed() on each operation")
        if chief and auto_ack:
            self.acknowledge_out_of_ops()

    def acknowledge_out_of_ops(self) -> None:
        """Tells the master that the end of this process is meant."""
        if self._acknowledge is not None:
            self._acknowledge()

    def get_configured_units(self) -> Optional[Unit]:
        searcher = self._config.get("searcher") or {}
        unit = searcher.get("unit")
        length = searcher.get("max_length")
        if unit is None and isinstance(length, dict) and len(length) == 1:
            unit = next(iter(length))
        return Unit[unit.upper()] if unit else None


class DummySearcherContext(SearcherContext):
    """Outside of a cluster: one operation."""

    def __init__(self, distributed: DistributedContext, length: int = 1) -> None:
        super().__init__(None, distributed, 0, {})
        self._whole = length
        self._length: Optional[int] = None

    def _next(self) -> Optional[int]:
        length, self._length = self._length, None
        return length

    def _operation(self, length: int) -> SearcherOperation:
        return DummySearcherOperation(length, self._distributed.rank == 0)

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        self._length = self._whole
        return super().operations(searcher_mode, auto_ack)

    def get_configured_units(self) -> Optional[Unit]:
        return Unit.EPOCHS
