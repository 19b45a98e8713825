"""A search method that runs as an experiment of its own."""

import logging
import pathlib
import pickle
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

import determined as det
from determined.experimental import client
from determined.searcher._method import SearchMethod
from determined.searcher._operations import Operation
from determined.searcher._runner import Includes, SearchRunner, submit

if TYPE_CHECKING:
    from determined import core

logger = logging.getLogger("determined.searcher")

POLL_S = 5.0  # between two looks whether to make room


class RemoteSearchRunner(SearchRunner):
    """Keeps its state in checkpoints of the trial it runs in, whose restarts and pauses go on from there.

    A task's own token speaks for that task only: log in by client.login() as the user who owns the search.
    """

    def __init__(self, search_method: SearchMethod, context: "core.Context") -> None:
        super().__init__(search_method)
        self.context = context
        info = det.get_cluster_info()
        assert info is not None, "RemoteSearchRunner only runs on-cluster"
        self.info = info

    def run(self, exp_config: Union[Dict[str, Any], str], model_dir: Optional[str] = None, includes: Includes = None) -> int:
        """The searched experiment's id, once it has ended, or this trial was asked to make room."""
        logger.info("RemoteSearchRunner.run")
        self._log_in()
        operations: Optional[List[Operation]] = None
        if self.info.latest_checkpoint is not None:
            experiment_id, operations = self.load_state(self.info.latest_checkpoint)
            logger.info(f"Resuming HP searcher for experiment {experiment_id}")
        else:
            logger.info("No latest checkpoint. Starting new experiment.")
            experiment_id = submit(exp_config, model_dir, includes)
            self.state.experiment_id = experiment_id
            self.save_state(experiment_id, [])
            logger.info(f"Created experiment {experiment_id}")
        if self.state.last_event_id == 0:
            client.get_experiment(experiment_id).activate()
        self.run_experiment(experiment_id, client._current()._master, operations)
        return experiment_id

    @staticmethod
    def _log_in() -> None:
        try:
            client._current()
        except client.APIException as e:
            raise RuntimeError(
                "the search has no user who may submit experiments, as a task's own token does nothing else than its task: "
                f"call client.login(user=..., password=...) first ({e})"
            ) from e

    def get_events(self, session: Any, experiment_id: int) -> List[Dict[str, Any]]:
        answer = session.poll(f"/api/v1/experiments/{experiment_id}/searcher_events", POLL_S)
        return list((answer or {}).get("searcherEvents") or [])

    def _should_stop(self) -> bool:
        return self.context.preempt.should_preempt()

    def save_state(self, experiment_id: int, operations: List[Operation]) -> None:
        with self.context.checkpoint.store_path({"steps_completed": self.state.last_event_id}) as (path, _):
            self.search_method.save(self.state, pathlib.Path(path), experiment_id=experiment_id)
            (pathlib.Path(path) / "ops").write_bytes(pickle.dumps(operations))

    def load_state(self, storage_id: str) -> Any:
        """The experiment's id and the operations that answer its last event."""
        with self.context.checkpoint.restore_path(storage_id) as path:
            self.state, experiment_id = self.search_method.load(pathlib.Path(path))
            return experiment_id, pickle.loads((pathlib.Path(path) / "ops").read_bytes())

    def _show_experiment_paused_msg(self) -> None:
        logger.warning(
            f"Experiment {self.state.experiment_id} has been paused. If you leave searcher experiment running, your search "
            "method will automatically resume when the experiment becomes active again."
        )
