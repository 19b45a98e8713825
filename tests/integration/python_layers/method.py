"""Three trials, each validated at 2 and at 4; the runner dies once, when an answer is kept and not yet posted."""
import os
import signal
import uuid

from determined import searcher


class Method(searcher.SearchMethod):
    def initial_operations(self, state):
        return [searcher.Create(uuid.uuid4(), {"x": x}) for x in (1, 2, 3)]

    def on_trial_created(self, state, request_id):
        return [searcher.ValidateAfter(request_id, 2)]

    def on_validation_completed(self, state, request_id, metric, train_length):
        assert metric == {"loss": 1 / train_length}, metric
        return [searcher.ValidateAfter(request_id, 4)] if train_length == 2 else [searcher.Close(request_id)]

    def on_trial_closed(self, state, request_id):
        return [searcher.Shutdown()] if len(state.trials_closed) == 3 else []

    def on_trial_exited_early(self, state, request_id, exited_reason):
        return [searcher.Shutdown(failure=True)]

    def progress(self, state):
        return len(state.trials_closed) / 3


def die_once(runner, resumed):
    """At the first validation of a run that nothing went before."""
    post = runner.post_operations

    def struck(session, experiment_id, event, operations):
        if not resumed and "validationCompleted" in event:
            os.kill(os.getpid(), signal.SIGKILL)
        post(session, experiment_id, event, operations)

    runner.post_operations = struck
    return runner
