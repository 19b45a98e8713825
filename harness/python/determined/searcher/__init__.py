"""Custom hyperparameter search: a SearchMethod decides, a runner carries it to the cluster (`searcher: {name: custom}`)."""

from determined.searcher._operations import Close, Create, ExitedReason, Operation, Progress, Shutdown, ValidateAfter
from determined.searcher._remote import RemoteSearchRunner
from determined.searcher._runner import LocalSearchRunner, SearchRunner
from determined.searcher._method import SearcherState, SearchMethod

__all__ = [
    "Close",
    "Create",
    "ExitedReason",
    "LocalSearchRunner",
    "Operation",
    "Progress",
    "RemoteSearchRunner",
    "SearchMethod",
    "SearchRunner",
    "SearcherState",
    "Shutdown",
    "ValidateAfter",
]
