"""The loop between a search method and the master, and the runner that keeps its state in a directory.

Operations are kept before they are posted: after a crash between the two the same event comes again, and the very same
operations, with their UUIDs, answer it.
"""

import json
import logging
import os
import pathlib
import pickle
import shutil
import time
import uuid
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from determined.experimental import client
from determined.experimental._experiment import UNREACHED_MAX
from determined.searcher._method import SearcherState, SearchMethod
from determined.searcher._operations import ExitedReason, Operation, Progress

logger = logging.getLogger("determined.searcher")

POLL_S = 90.0  # more than the master lets an event wait
_AWAY = (502, 503, 504)
Includes = Optional[Iterable[Union[str, pathlib.Path]]]


class SearchRunner:
    """Calls the method for each event of an experiment, until it ends."""

    def __init__(self, search_method: SearchMethod) -> None:
        self.search_method = search_method
        self.state = SearcherState()
        self._prior: Optional[List[Operation]] = None  # the answer to the state's last event
        self._is_paused = False

    # ---- what a runner of one's own may override ----

    def get_events(self, session: Any, experiment_id: int) -> List[Dict[str, Any]]:
        """The events that wait for an answer; none after a while without any."""
        answer = session.poll(f"/api/v1/experiments/{experiment_id}/searcher_events", POLL_S)
        return list((answer or {}).get("searcherEvents") or [])

    def post_operations(
        self, session: Any, experiment_id: int, event: Dict[str, Any], operations: List[Operation]
    ) -> None:
        body = {
            "experimentId": experiment_id,
            "searcherOperations": [op._to_searcher_operation() for op in operations],
            "triggeredByEvent": event,
        }
        session.post(f"/api/v1/experiments/{experiment_id}/searcher_operations", body)

    def save_state(self, experiment_id: int, operations: List[Operation]) -> None:
        """The state and the answer to its last event, before the latter is posted."""

    def _show_experiment_paused_msg(self) -> None:
        pass

    def _should_stop(self) -> bool:
        """Between two polls."""
        return False

    # ---- the loop ----

    def run_experiment(
        self,
        experiment_id: int,
        session: Any,
        prior_operations: Optional[List[Operation]],
        sleep_time: float = 1.0,
    ) -> None:
        """`prior_operations` answer the state's last event, and may not have reached the master."""
        self._prior = prior_operations
        self._unreached = 0
        try:
            while not self._should_stop():
                active, heard = self._patient_turn(session, experiment_id)
                if not active:
                    return
                if not heard:
                    time.sleep(sleep_time)
        except KeyboardInterrupt:
            print("Runner interrupted")

    def _patient_turn(self, session: Any, experiment_id: int) -> Tuple[bool, bool]:
        """A master that is being started anew is waited for."""
        try:
            turn = self._turn(session, experiment_id)
            self._unreached = 0
            return turn
        except (ConnectionError, client.APIException) as e:
            away = not isinstance(e, client.APIException) or e.status in _AWAY
            if not away or self._unreached == UNREACHED_MAX:
                raise
            self._unreached += 1
            logger.warning(f"the master is away; asking again: {e}")
            return True, False

    def _turn(self, session: Any, experiment_id: int) -> Tuple[bool, bool]:
        """One poll: whether the experiment goes on, and whether there was anything to answer."""
        events = self.get_events(session, experiment_id)
        if events:
            logger.info(json.dumps(events))
        for event in events:
            if event.get("experimentInactive") is not None:
                return self._inactive(experiment_id, event["experimentInactive"]), False
            self._answer(session, experiment_id, event)
        return True, bool(events)

    def _inactive(self, experiment_id: int, inactive: Dict[str, Any]) -> bool:
        """Whether it may go on later."""
        state = str(inactive.get("experimentState")).replace("STATE_", "", 1)
        logger.info(f"experiment {experiment_id} is inactive; state={state}")
        self.state.experiment_completed = state == "COMPLETED"
        self.state.experiment_failed = state == "ERROR"
        if state == "PAUSED" and not self._is_paused:
            self._show_experiment_paused_msg()
        self._is_paused = state == "PAUSED"
        return self._is_paused

    def _answer(self, session: Any, experiment_id: int, event: Dict[str, Any]) -> None:
        """A report of progress draws nothing and need not be kept: it is answered anew as well."""
        known, self._is_paused = self.state.last_event_id, False
        if self._prior is not None and known != 0 and known >= int(event["id"]) >= 0:
            logger.info(f"Resubmitting operations for event.id={event['id']}")
            operations = self._prior
        else:
            operations = self._get_operations(event)
            self.state.last_event_id = int(event["id"])
            if event.get("trialProgress") is None:
                self.save_state(experiment_id, operations)
            self._prior = operations
        try:
            self.post_operations(session, experiment_id, event, operations)
        except client.APIException as e:
            if e.status in _AWAY:
                raise
            logger.warning(f"Catching errors.APIException: {e}")
            logger.warning(f"operations: {operations}")
            raise

    def _get_operations(self, event: Dict[str, Any]) -> List[Operation]:
        """The method's answer to one event, and its progress where that may have changed."""
        state, method = self.state, self.search_method
        if event.get("initialOperations") is not None:
            logger.info("initial operations")
            return self._list("initial_operations", method.initial_operations(state))
        if event.get("trialCreated") is not None:
            request_id = uuid.UUID(event["trialCreated"]["requestId"])
            logger.info(f"trialCreated({request_id})")
            state.trials_created.add(request_id)
            state.trial_progress[request_id] = 0.0
            return self._list("on_trial_created", method.on_trial_created(state, request_id))
        if event.get("trialProgress") is not None:
            progress = event["trialProgress"]
            logger.debug(f"trialProgress({progress['requestId']}, {progress['partialUnits']})")
            state.trial_progress[uuid.UUID(progress["requestId"])] = float(progress["partialUnits"])
            return [Progress(method.progress(state))]
        operations = self._after_training(event)
        return [*operations, Progress(method.progress(state))]

    def _after_training(self, event: Dict[str, Any]) -> List[Operation]:
        state, method = self.state, self.search_method
        if event.get("trialClosed") is not None:
            request_id = uuid.UUID(event["trialClosed"]["requestId"])
            logger.info(f"trialClosed({request_id})")
            state.trials_closed.add(request_id)
            return self._list("on_trial_closed", method.on_trial_closed(state, request_id))
        if event.get("trialExitedEarly") is not None:
            return self._exited_early(event["trialExitedEarly"])
        if event.get("validationCompleted") is not None:
            validated = event["validationCompleted"]
            request_id, metric = uuid.UUID(validated["requestId"]), validated.get("metric")
            if metric is None:
                raise RuntimeError("validationCompleted event is invalid without a metric")
            logger.info(f"validationCompleted({request_id}, {metric})")
            length = int(validated["validateAfterLength"])
            return self._list("on_validation_completed", method.on_validation_completed(state, request_id, metric, length))
        raise RuntimeError(f"Unsupported event {event}")

    def _exited_early(self, exited: Dict[str, Any]) -> List[Operation]:
        state = self.state
        request_id, reason = uuid.UUID(exited["requestId"]), ExitedReason._of(exited.get("exitedReason", "EXITED_REASON_UNSPECIFIED"))
        logger.info(f"trialExitedEarly({request_id}, {reason})")
        if reason == ExitedReason.INVALID_HP:
            state.trial_progress.pop(request_id, None)
        elif reason == ExitedReason.ERRORED:
            state.failures.add(request_id)
        found = self.search_method.on_trial_exited_early(state, request_id, exited_reason=reason)
        return self._list("on_trial_exited_early", found)

    def _list(self, call: str, operations: Any) -> List[Operation]:
        if not isinstance(operations, list) or not all(isinstance(op, Operation) for op in operations):
            raise TypeError(f"{type(self.search_method).__name__}.{call}() must return a list of operations, not {operations!r}")
        return operations


def submit(config: Union[Dict[str, Any], str], model_dir: Optional[str], includes: Includes) -> int:
    """A new experiment, paused: what searches for it must know it before it starts."""
    made = client._current()._submit(config, model_dir or os.getcwd(), includes, activate=False)
    searcher = made.config.get("searcher") or {}
    if searcher.get("name") != "custom":
        made.kill()
        raise ValueError(f"searcher.name must be custom for a search method to decide, not {searcher.get('name')}")
    return made.id


class LocalSearchRunner(SearchRunner):
    """Runs the method in this process, and keeps its state in a directory: started again, it goes on."""

    def __init__(self, search_method: SearchMethod, searcher_dir: Optional[pathlib.Path] = None) -> None:
        super().__init__(search_method)
        self.searcher_dir = pathlib.Path(searcher_dir or os.getcwd())
        if self.searcher_dir.exists() and not self.searcher_dir.is_dir():
            raise FileExistsError(f"searcher_dir={self.searcher_dir} already exists and is not a directory")
        self.searcher_dir.mkdir(parents=True, exist_ok=True)

    def run(self, exp_config: Union[Dict[str, Any], str], model_dir: Optional[str] = None, includes: Includes = None) -> int:
        """The experiment's id, once it has ended."""
        logger.info("LocalSearchRunner.run")
        known = self.searcher_dir / "experiment_id.txt"
        operations: Optional[List[Operation]] = None
        if known.exists():
            experiment_id = int(known.read_text(encoding="utf-8"))
            logger.info(f"Resuming HP searcher for experiment {experiment_id}")
            operations = self.load_state(experiment_id)
        else:
            experiment_id = submit(exp_config, model_dir, includes)
            self.state.experiment_id = experiment_id
            self._get_state_path(experiment_id).mkdir(parents=True, exist_ok=True)
            self.save_state(experiment_id, [])
            _replace(known, str(experiment_id))
            logger.info(f"Created experiment {experiment_id}")
        if self.state.last_event_id == 0:
            client.get_experiment(experiment_id).activate()
        self.run_experiment(experiment_id, client._current()._master, operations)
        return experiment_id

    def _get_state_path(self, experiment_id: int) -> pathlib.Path:
        return self.searcher_dir / f"exp_{experiment_id}"

    def save_state(self, experiment_id: int, operations: List[Operation]) -> None:
        """A directory for each event, which counts once event_id names it; those before the last are removed."""
        where = self._get_state_path(experiment_id)
        event = where / f"event_{self.state.last_event_id}"
        event.mkdir(parents=True, exist_ok=True)
        self.search_method.save(self.state, event, experiment_id=experiment_id)
        (event / "ops").write_bytes(pickle.dumps(operations))
        _replace(where / "event_id", str(self.state.last_event_id))
        for old in where.glob("event_*"):
            if old.is_dir() and old != event:
                shutil.rmtree(old, ignore_errors=True)

    def load_state(self, experiment_id: int) -> List[Operation]:
        where = self._get_state_path(experiment_id)
        event = where / f"event_{int((where / 'event_id').read_text(encoding='utf-8'))}"
        self.state, found = self.search_method.load(event)
        assert experiment_id == found, f"Experiment id mismatch. Expected {experiment_id}. Found {found}"
        operations: List[Operation] = pickle.loads((event / "ops").read_bytes())
        return operations

    def _show_experiment_paused_msg(self) -> None:
        logger.warning(
            f"Experiment {self.state.experiment_id} has been paused. If you leave searcher process running, your search "
            "method will automatically resume when the experiment becomes active again. Otherwise, you can terminate this "
            "process and restart it manually to continue the search."
        )


def _replace(path: pathlib.Path, text: str) -> None:
    """Whole, or as it was."""
    new = path.with_name(f"{path.name}_new")
    with open(new, "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(new, path)
