"""What a search wants done. Runners keep operations by pickle: the names of attributes are a file format."""

import abc
import enum
import json
import uuid
from typing import Any, Dict, Optional


class ExitedReason(enum.Enum):
    """Why a trial ended by itself."""

    ERRORED = "ERRORED"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"

    @classmethod
    def _of(cls, text: str) -> "ExitedReason":
        known = {
            "EXITED_REASON_INVALID_HP": cls.INVALID_HP,
            "EXITED_REASON_USER_REQUESTED_STOP": cls.USER_CANCELED,
            "EXITED_REASON_USER_CANCELED": cls.USER_CANCELED,
            "EXITED_REASON_UNSPECIFIED": cls.ERRORED,
        }
        if text not in known:
            raise RuntimeError(f"Invalid exited reason: {text}")
        return known[text]


class Operation(abc.ABC):
    @abc.abstractmethod
    def _to_searcher_operation(self) -> Dict[str, Any]:
        """As the master takes it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class ValidateAfter(Operation):
    """Train until `length`, counted from the trial's beginning, then validate."""

    def __init__(self, request_id: uuid.UUID, length: int) -> None:
        self.request_id = request_id
        self.length = length

    def _to_searcher_operation(self) -> Dict[str, Any]:
        return {"trialOperation": {"validateAfter": {"length": str(self.length), "requestId": str(self.request_id)}}}


class Create(Operation):
    """A new trial; `request_id` is its name from then on."""

    def __init__(self, request_id: uuid.UUID, hparams: Dict[str, Any], checkpoint: Optional[Any] = None) -> None:
        if checkpoint is not None:
            raise ValueError(
                "Create(checkpoint=...) is not available: a trial of a custom search starts from the experiment's "
                "searcher.source_checkpoint_uuid, or anew"
            )
        self.request_id = request_id
        self.hparams = json.dumps(hparams)
        self.checkpoint = checkpoint

    def _to_searcher_operation(self) -> Dict[str, Any]:
        return {"createTrial": {"hyperparams": self.hparams, "requestId": str(self.request_id)}}


class Close(Operation):
    """No more operations for this trial. `reason` (ours) ends the trial's log and is what `det why` says of it; the
    master keeps its first 500 bytes."""

    reason: Optional[str] = None  # of those that were kept before there were reasons

    def __init__(self, request_id: uuid.UUID, reason: Optional[str] = None) -> None:
        if reason is not None and not isinstance(reason, str):
            raise TypeError(f"Close(reason=...): expected text, got {type(reason).__name__}")
        self.request_id = request_id
        self.reason = reason

    def _to_searcher_operation(self) -> Dict[str, Any]:
        close = {"requestId": str(self.request_id)}
        if self.reason:
            close["reason"] = self.reason
        return {"closeTrial": close}


class Progress(Operation):
    """How far the search is, 0 to 1."""

    def __init__(self, progress: float) -> None:
        self.progress = progress

    def _to_searcher_operation(self) -> Dict[str, Any]:
        return {"setSearcherProgress": {"progress": self.progress}}


class Shutdown(Operation):
    """The search is over."""

    def __init__(self, cancel: bool = False, failure: bool = False) -> None:
        self.cancel = cancel
        self.failure = failure

    def _to_searcher_operation(self) -> Dict[str, Any]:
        return {"shutDown": {"cancel": self.cancel, "failure": self.failure}}
