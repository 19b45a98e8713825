"""A trial of a custom search: what it has learnt is what it was asked to train."""
from determined import core

with core.init() as context:
    for op in context.searcher.operations():
        context.train.report_validation_metrics(op.length, {"loss": 1 / op.length})
        op.report_completed({"loss": 1 / op.length})
