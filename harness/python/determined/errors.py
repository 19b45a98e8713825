"""The exceptions that a trial or a script may meet."""

from typing import Any


class InvalidHP(Exception):
    """These hyperparameters cannot work: the trial ends well, and the searcher learns of it."""

    def __init__(self, msg: str = "...") -> None:
        if not isinstance(msg, str):
            raise TypeError(
                f"InvalidHP takes a text that says what is wrong with the hyperparameters, not a {type(msg).__name__}"
            )
        super().__init__(msg)
        self.msg = msg


class InvalidExperimentException(BaseException):
    """The trial is built wrongly. Not an Exception, so that user code does not swallow it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"Invalid experiment: {self.message}"


class InvalidDataTypeException(InvalidExperimentException):
    def __init__(self, typ: type, message: str) -> None:
        super().__init__(f"unsupported data type {typ}: {message}")


class InvalidConfigurationException(InvalidExperimentException):
    def __init__(self, config: Any, message: str) -> None:
        super().__init__(f"invalid configuration {config}: {message}")


class InvalidModelException(InvalidExperimentException):
    pass


class InternalException(Exception):
    """Something that should not be possible."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"Internal error: {self.message}. Please reach out to the Determined AI team for help."


class InvalidCheckpointException(Exception):
    def __init__(self) -> None:
        super().__init__("the checkpoint does not hold what is expected of it")


class CheckpointNotFound(Exception):
    pass


class CheckpointStateException(Exception):
    """The checkpoint was deleted, or is being deleted."""


class WorkerError(Exception):
    """Another rank failed."""


class WorkerFinishedGracefully(Exception):
    """Another rank ended in order."""


class SkipWorkloadException(Exception):
    pass


class StopLoadingImplementation(Exception):
    pass


class EnterpriseOnlyError(Exception):
    pass


class NoDirectStorageAccess(Exception):
    """This machine cannot reach the checkpoint store."""


class ProxiedDownloadFailed(Exception):
    pass


class MultipleDownloadsFailed(Exception):
    pass
