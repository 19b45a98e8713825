"""Reporting metrics and status."""

import enum
import logging
import pathlib
from typing import Any, Callable, Dict, List, Optional

from determined import errors
from determined.core._alive import Alive
from determined.core._session import NotFound, Session, as_json
from determined.core._tensorboard import Mangler, Selector, TensorboardFiles

logger = logging.getLogger("determined.core")


class TensorboardMode(enum.Enum):
    """Who uploads TensorBoard's files: the context by itself, or the script when it says so."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


class EarlyExitReason(enum.Enum):
    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


def _check_reason(reason: Any) -> None:
    if not isinstance(reason, EarlyExitReason):
        raise TypeError(f"report_early_exit() takes a determined.core.EarlyExitReason, such as EarlyExitReason.INVALID_HP, not {reason!r}")


def _check(call: str, steps_completed: Any, metrics: Any) -> None:
    if isinstance(steps_completed, str) or not hasattr(steps_completed, "__int__"):
        raise TypeError(f"{call}(steps_completed=...) takes a number of batches, not {steps_completed!r}")
    if not isinstance(metrics, dict):
        raise TypeError(f'{call}(metrics=...) takes a dict of numbers by name, such as {{"loss": 0.5}}, not {metrics!r}')


def _not_finite(metrics: Dict[str, Any]) -> Optional[str]:
    """What is said of the first number that is none any more."""
    for name, value in metrics.items():
        if as_json(value) in ("NaN", "Infinity", "-Infinity") and not isinstance(value, str):
            return f'metric "{name}" is {"NaN" if as_json(value) == "NaN" else "infinite"}'
    return None


class TrainContext:
    """What a trial of the cluster tells the master."""

    _said_nan = False
    _stop_on_nan = False
    _invalid_for = ""  # what is said with an early exit

    def __init__(
        self,
        session: Session,
        trial_id: int,
        run_id: int,
        exp_id: int,
        tensorboard_mode: TensorboardMode,
        tensorboard_dir: pathlib.Path,
        tensorboard_files: TensorboardFiles,
        stop_on_nan: bool = False,
        alive: Optional[Alive] = None,
    ) -> None:
        self._session = session
        self._trial_id = trial_id
        self._run_id = run_id
        self._exp_id = exp_id
        self._tensorboard_mode = tensorboard_mode
        self._tensorboard_dir = tensorboard_dir
        self._tensorboard_files = tensorboard_files
        self._stop_on_nan = stop_on_nan
        self._alive = alive or Alive(False)

    def set_status(self, status: str) -> None:
        self._session.post(f"/api/v1/trials/{self._trial_id}/runner/metadata", {"state": status})

    def report_training_metrics(
        self, steps_completed: int, metrics: Dict[str, Any], batch_metrics: Optional[List[Dict[str, Any]]] = None
    ) -> None:
        _check("report_training_metrics", steps_completed, metrics)
        self._alive.trained(steps_completed)
        self._report("training", steps_completed, metrics, batch_metrics)
        self._check_finite("training", steps_completed, metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: Dict[str, Any]) -> None:
        _check("report_validation_metrics", steps_completed, metrics)
        usable = {}
        for name, value in metrics.items():
            if isinstance(value, bytes):
                logger.warning(f'validation metric "{name}" is bytes: it is left out')
                continue
            if value is None:
                raise RuntimeError(f'validation metric "{name}" is None')
            usable[name] = value
        self._report("validation", steps_completed, usable)
        self._check_finite("validation", steps_completed, usable)

    def report_metrics(self, group: str, steps_completed: int, metrics: Dict[str, Any]) -> None:
        _check("report_metrics", steps_completed, metrics)
        self._report(group, steps_completed, metrics)

    def _report(
        self,
        group: str,
        steps_completed: int,
        metrics: Dict[str, Any],
        batch_metrics: Optional[List[Dict[str, Any]]] = None,
    ) -> None:
        body = {
            "group": group,
            "metrics": {
                "metrics": {"avgMetrics": metrics, "batchMetrics": batch_metrics},
                "stepsCompleted": steps_completed,
                "trialId": self._trial_id,
                "trialRunId": self._run_id,
            },
        }
        self._session.post(f"/api/v1/trials/{self._trial_id}/metrics", body)
        if self._tensorboard_mode == TensorboardMode.AUTO:
            self._keep(self._tensorboard_files.upload_now_and_then)

    def _check_finite(self, group: str, steps_completed: int, metrics: Dict[str, Any]) -> None:
        """Said at the first report of one, and once: nothing is learned from there on."""
        found = None if self._said_nan else _not_finite(metrics)
        if found is None:
            return
        self._said_nan = True
        said = f"{group} {found} at batch {int(steps_completed)}"
        if not self._stop_on_nan:
            logger.warning(f"{said}, for the first time in this run; stop_on_nan: true in the configuration would end the trial here")
            return
        logger.error(f"{said}: the trial ends here, as stop_on_nan: true in the configuration says")
        self._invalid_for = said
        self.report_early_exit(EarlyExitReason.INVALID_HP)
        stop = errors.InvalidHP(said)
        stop._reported = True  # type: ignore
        raise stop

    def _keep(self, upload: Callable[[], None]) -> None:
        """TensorBoard's files are a view of the training, not a part of it: it goes on without them."""
        try:
            upload()
        except OSError as e:
            logger.warning(f"TensorBoard's files are not kept: {e}")

    def get_tensorboard_path(self) -> Optional[pathlib.Path]:
        """Where this rank writes them; in AUTO mode they get to the checkpoint store after reports, and at the end."""
        return self._tensorboard_dir

    def upload_tensorboard_files(
        self, selector: Selector = lambda _: True, mangler: Mangler = lambda path, _: path
    ) -> None:
        """Copies what is new below get_tensorboard_path() to the trial's place in the checkpoint store.

        selector(path) chooses files; mangler(path, rank) gives a file's path in the store from that in the directory.
        """
        if self._tensorboard_mode != TensorboardMode.MANUAL:
            raise RuntimeError("upload_tensorboard_files() needs tensorboard_mode=MANUAL: AUTO uploads by itself")
        self._tensorboard_files.upload(selector, mangler)

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        _check_reason(reason)
        self._session.post(f"/api/v1/trials/{self._trial_id}/early_exit", {"reason": reason.value, "text": self._invalid_for})

    def get_experiment_best_validation(self) -> Optional[float]:
        path = f"/api/v1/experiments/{self._exp_id}/searcher/best_searcher_validation_metric"
        try:
            metric = self._session.get(path).get("metric")
        except NotFound:
            return None
        return None if metric is None else float(metric)

    def _close(self) -> None:
        self._alive.end()
        if self._tensorboard_mode == TensorboardMode.AUTO:
            self._keep(self._tensorboard_files.upload_all)


class DummyTrainContext(TrainContext):
    """Outside of a cluster: says what it would report."""

    def __init__(self) -> None:
        pass

    def set_status(self, status: str) -> None:
        logger.info(f"status: {status}")

    def report_training_metrics(
        self, steps_completed: int, metrics: Dict[str, Any], batch_metrics: Optional[List[Dict[str, Any]]] = None
    ) -> None:
        _check("report_training_metrics", steps_completed, metrics)
        logger.info(f"report_training_metrics(steps_completed={steps_completed}, metrics={metrics})")
        self._check_finite("training", steps_completed, metrics)
        if batch_metrics is not None and logger.isEnabledFor(logging.DEBUG):
            logger.debug(f"report_training_metrics(steps_completed={steps_completed}, batch_metrics={batch_metrics})")

    def report_validation_metrics(self, steps_completed: int, metrics: Dict[str, Any]) -> None:
        _check("report_validation_metrics", steps_completed, metrics)
        logger.info(f"report_validation_metrics(steps_completed={steps_completed}, metrics={metrics})")
        self._check_finite("validation", steps_completed, metrics)

    def report_metrics(self, group: str, steps_completed: int, metrics: Dict[str, Any]) -> None:
        _check("report_metrics", steps_completed, metrics)
        logger.info(f"report_metrics(group={group}, steps_completed={steps_completed}, metrics={metrics})")

    def _report_checkpoint(self, steps_completed: int, uuid: str) -> None:
        logger.info(f"saved checkpoint {uuid} (steps_completed={steps_completed})")

    def get_tensorboard_path(self) -> Optional[pathlib.Path]:
        return None

    def upload_tensorboard_files(
        self, selector: Selector = lambda _: True, mangler: Mangler = lambda path, _: path
    ) -> None:
        logger.info("upload_tensorboard_files()")

    def report_early_exit(self, reason: EarlyExitReason) -> None:
        _check_reason(reason)
        logger.info(f"report_early_exit({reason})")

    def get_experiment_best_validation(self) -> Optional[float]:
        return None

    def _close(self) -> None:
        pass
