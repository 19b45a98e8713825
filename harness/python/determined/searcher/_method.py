"""What decides: SearchMethod, and what it knows of its search: SearcherState."""

import dataclasses
import json
import pathlib
import uuid
from typing import Any, Dict, List, Optional, Set, Tuple

from determined.searcher._operations import ExitedReason, Operation

STATE = "state"


@dataclasses.dataclass(init=False)
class SearcherState:
    """Kept by the runner; methods read it."""

    failures: Set[uuid.UUID]
    trial_progress: Dict[uuid.UUID, float]
    trials_closed: Set[uuid.UUID]
    trials_created: Set[uuid.UUID]
    last_event_id: int = 0
    experiment_id: Optional[int] = None
    experiment_completed: bool = False
    experiment_failed: bool = False

    def __init__(self) -> None:
        self.failures = set()
        self.trial_progress = {}
        self.trials_closed = set()
        self.trials_created = set()

    def to_dict(self) -> Dict[str, Any]:
        return {
            "failures": sorted(str(f) for f in self.failures),
            "trialProgress": {str(k): v for k, v in self.trial_progress.items()},
            "trialsClosed": sorted(str(t) for t in self.trials_closed),
            "trialsCreated": sorted(str(t) for t in self.trials_created),
            "lastEventId": self.last_event_id,
            "experimentId": self.experiment_id,
            "experimentCompleted": self.experiment_completed,
            "experimentFailed": self.experiment_failed,
        }

    def from_dict(self, d: Dict[str, Any]) -> None:
        self.failures = {uuid.UUID(f) for f in d.get("failures", [])}
        self.trial_progress = {uuid.UUID(k): v for k, v in d.get("trialProgress", {}).items()}
        self.trials_closed = {uuid.UUID(t) for t in d.get("trialsClosed", [])}
        self.trials_created = {uuid.UUID(t) for t in d.get("trialsCreated", [])}
        self.last_event_id = d.get("lastEventId", 0)
        self.experiment_id = d.get("experimentId")
        self.experiment_completed = d.get("experimentCompleted", False)
        self.experiment_failed = d.get("experimentFailed", False)


class SearchMethod:
    """Override all but the last two; each answers an event with the operations that follow from it."""

    def initial_operations(self, searcher_state: SearcherState) -> List[Operation]:
        raise NotImplementedError(f"{type(self).__name__} has no initial_operations()")

    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> List[Operation]:
        raise NotImplementedError(f"{type(self).__name__} has no on_trial_created()")

    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> List[Operation]:
        """`metric` is what the trial reported: a number, or any value that JSON has."""
        raise NotImplementedError(f"{type(self).__name__} has no on_validation_completed()")

    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> List[Operation]:
        raise NotImplementedError(f"{type(self).__name__} has no on_trial_closed()")

    def progress(self, searcher_state: SearcherState) -> float:
        """0 to 1."""
        raise NotImplementedError(f"{type(self).__name__} has no progress()")

    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> List[Operation]:
        """The trial is closed already."""
        raise NotImplementedError(f"{type(self).__name__} has no on_trial_exited_early()")

    def save_method_state(self, path: pathlib.Path) -> None:
        """What the method itself must know after a restart, as files in this directory."""

    def load_method_state(self, path: pathlib.Path) -> None:
        """From the files that save_method_state() left."""

    def save(self, searcher_state: SearcherState, path: pathlib.Path, *, experiment_id: int) -> None:
        whole = {**searcher_state.to_dict(), "experimentId": experiment_id}
        (path / STATE).write_text(json.dumps(whole), encoding="utf-8")
        self.save_method_state(path)

    def load(self, path: pathlib.Path) -> Tuple[SearcherState, int]:
        whole = json.loads((path / STATE).read_text(encoding="utf-8"))
        experiment_id = int(whole["experimentId"])
        state = SearcherState()
        state.from_dict(whole)
        self.load_method_state(path)
        return state, experiment_id
