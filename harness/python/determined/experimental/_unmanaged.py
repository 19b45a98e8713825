"""A training that runs elsewhere and reports here: its experiment and trial on the master, its heartbeat, its log lines."""

import dataclasses
import json
import logging
import os
import pathlib
import sys
import tempfile
import threading
import time
import urllib.error
from typing import Any, Callable, Dict, Optional, Tuple, Union
from urllib.parse import quote

import determined as det
from determined import core
from determined._info import RendezvousInfo, TrialInfo
from determined.core._session import MasterError, NotFound, Session
from determined.core._storage import default_directory, open_storage
from determined.core._tensorboard import TensorboardFiles
from determined.experimental._shipping import LogShipper
from determined.experimental.client import Determined

logger = logging.getLogger("determined.unmanaged")

HEARTBEAT_S = 60.0
RETRY_S = 10.0
QUICK_S = 3.0  # for an answer that nothing waits for
END_S = 6.0  # to say how the trial ended: a script that fails is not to hang


@dataclasses.dataclass
class Names:
    """What the experiment is called and where it belongs; see core_v2."""

    config: Dict[str, Any]
    hparams: Dict[str, Any]
    experiment: Optional[str]
    trial: Optional[str]


class UserSession(Session):
    """With a person's token instead of a task's; one that has ended is renewed where the client has the password.

    `quick`: what nothing waits for is asked once, for a short time.
    """

    _header = "Authorization"

    def __init__(self, client: Determined, quick: bool = False) -> None:
        self._master = client._master
        super().__init__(self._master.url, self._master._token or "", None)
        self._urls = self._master._urls
        self._context = self._master._context
        self._quick = quick
        if quick:
            self._retries = 0

    def _once(self, method: str, path: str, body: Any, timeout: Optional[float], headers: Dict[str, str]) -> Any:
        limit = QUICK_S if self._quick else timeout
        try:
            return super()._once(method, path, body, limit, headers)
        except urllib.error.HTTPError as e:
            if e.code != 401 or self._master._password is None:
                raise
        self._master.log_in()
        self._token = self._master._token or ""
        return super()._once(method, path, body, limit, headers)


def _create(session: Session, names: Names) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The experiment's answer, and the trial."""
    body = {"config": json.dumps(names.config), "unmanaged": True}
    if names.experiment is None:
        made = session.post("/api/v1/experiments", body)
    else:
        made = session.put(f"/api/v1/experiments/by-external-id/{quote(names.experiment, safe='')}", body)
    wanted = {"experimentId": made["experiment"]["id"], "hparams": names.hparams, "unmanaged": True}
    if names.trial is None:
        return made, session.post("/api/v1/trials", wanted)["trial"]
    return made, session.put("/api/v1/trials", {"createTrialRequest": wanted, "externalTrialId": names.trial})["trial"]


def _begin_trial(session: Session, client: Determined, names: Names) -> Dict[str, Any]:
    """Of the chief: what every rank has to know."""
    made, trial = _create(session, names)
    started = session.post(f"/api/v1/trials/{trial['id']}/start", {"trialId": trial["id"], "resume": True})
    return {
        "cluster": session.get("/api/v1/master")["clusterId"],
        "master": client._master.url,
        "task": trial["taskId"],
        "trial": trial["id"],
        "experiment": made["experiment"]["id"],
        "config": made["config"],
        "run": started["trialRunId"],
        "steps": started["stepsCompleted"],
        "checkpoint": started.get("latestCheckpoint"),
    }


def _agreed(distributed: core.DistributedContext, work: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
    """What the chief's work gives, on every rank; where it fails all raise."""
    mine: Optional[Dict[str, Any]] = None
    failure: Optional[Exception] = None
    if distributed.rank == 0:
        try:
            mine = work()
        except Exception as e:
            failure = e
    said, words = distributed.broadcast((mine, failure and str(failure)))
    if failure is not None:
        raise failure
    if words is not None:
        raise RuntimeError(f"the chief could not begin the trial: {words}")
    return dict(said)


def _info(known: Dict[str, Any], hparams: Dict[str, Any], token: str) -> det.ClusterInfo:
    trial = TrialInfo(
        known["trial"], known["experiment"], 0, hparams, known["config"], known["steps"], known["run"], debug=False
    )
    return det.ClusterInfo(
        known["master"],
        known["cluster"],
        "unmanaged",
        [],
        known["task"],
        known["task"],
        token,
        "TRIAL",
        latest_checkpoint=known["checkpoint"],
        trial_info=trial,
        rendezvous_info=RendezvousInfo(["127.0.0.1"], 0, [0]),
    )


class Train(core.TrainContext):
    """What a run of the cluster is told of, and this one need not be, stays here."""

    _ending: Optional["Ending"] = None

    def _report(self, *args: Any, **options: Any) -> None:
        if self._ending is not None:
            self._ending.failed = False
        super()._report(*args, **options)

    def set_status(self, status: str) -> None:
        logger.debug(f"status: {status}")

    def report_early_exit(self, reason: core.EarlyExitReason) -> None:
        logger.info(f"report_early_exit({reason}): this run ends as its script does")


# ---- heartbeat ----


class Heartbeat:
    """Says that the trial lives, once a minute; nothing else ends it while the script runs."""

    def __init__(self, session: Session, trial_id: int, run_id: int) -> None:
        self._session = session
        self._path = f"/api/v1/trials/{trial_id}"
        self._trial_id = trial_id
        self._said = {"trialId": trial_id, "trialRunId": run_id}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="determined-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        wait = HEARTBEAT_S
        while not self._over.wait(wait):
            try:
                self._session.patch(self._path, self._said)
                wait = HEARTBEAT_S
            except MasterError as e:
                logger.warning(f"trial {self._trial_id}: {e}")
                wait = HEARTBEAT_S
            except Exception as e:
                logger.warning(f"failure communicating with heartbeat API (retrying in {RETRY_S:.0f}s): {e}")
                wait = RETRY_S

    def end(self, state: str) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
        until = time.monotonic() + END_S
        while True:
            try:
                self._session.patch(self._path, {**self._said, "state": state})
                return
            except Exception as e:
                refused = isinstance(e, (MasterError, NotFound)) and getattr(e, "status", 404) < 500
                if refused or time.monotonic() > until:
                    logger.warning(f"the master was not told that trial {self._trial_id} is {state}: {e}")
                    return
            time.sleep(0.5)


# ---- how the script ends ----


class Ending:
    """Notes an exception that nobody catches, and sys.exit() with a failure: what runs at exit cannot see them.

    Who reports after that did catch it.
    """

    def __init__(self) -> None:
        self.failed = False
        self._hook, self._exit = sys.excepthook, sys.exit

    def start(self) -> None:
        self._mine: Tuple[Any, Any] = (self._on_exception, self._on_exit)
        sys.excepthook, sys.exit = self._mine

    def _on_exception(self, kind: Any, value: Any, trace: Any) -> None:
        self.failed = not hasattr(sys, "ps1")  # at a prompt one goes on
        self._hook(kind, value, trace)

    def _on_exit(self, status: Any = None) -> Any:
        if threading.current_thread() is threading.main_thread():
            self.failed = status not in (None, 0)
        self._exit(status)

    def end(self) -> None:
        """What somebody has put over these since stays, and goes on to them."""
        if sys.excepthook is self._mine[0]:
            sys.excepthook = self._hook
        if sys.exit is self._mine[1]:
            sys.exit = self._exit


class Context(core.Context):
    """core.Context of a training that runs elsewhere: started it ships and beats, closed it says how the trial ended."""

    def watch(self, heartbeat: Optional[Heartbeat], shipper: LogShipper) -> None:
        self._heartbeat, self._shipper, self._ending = heartbeat, shipper, Ending()
        self._is_open, self._pid = False, os.getpid()

    def start(self) -> None:
        super().start()
        self._is_open = True
        self._ending.start()
        self._shipper.start()
        if self._heartbeat:
            self._heartbeat.start()

    def close(self, exc_type: Any = None, exc_val: Any = None, exc_tb: Any = None) -> None:
        if not self._is_open or os.getpid() != self._pid:  # the end of a child is not the trial's
            return
        self._is_open = False
        quiet = isinstance(exc_val, SystemExit) and exc_val.code in (None, 0)
        failed = self._ending.failed or (exc_val is not None and not quiet)
        self._ending.end()
        try:
            super().close()
        finally:
            self._shipper.end()
            if self._heartbeat:
                self._heartbeat.end("STATE_ERROR" if failed else "STATE_COMPLETED")

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close(exc_type, exc_val, exc_tb)


def _storage(where: Optional[Union[str, Dict[str, Any]]]) -> Any:
    if isinstance(where, dict) and where.get("type") == "shared_fs":
        raise ValueError("checkpoint_storage of type shared_fs cannot be given here: name its directory")
    if where is not None:
        return open_storage(where)
    place = os.path.join(default_directory(), "checkpoints")
    logger.info(f"no storage_manager provided; storing checkpoints in {place}")
    return open_storage(place)


def begin(
    names: Names,
    client: Optional[Determined],
    distributed: Optional[core.DistributedContext],
    checkpoint_storage: Optional[Union[str, Dict[str, Any]]],
    preempt_mode: core.PreemptMode,
    tensorboard_mode: core.TensorboardMode,
) -> Context:
    """The experiment and the trial, made or found by their names, and a new run of it; not started yet."""
    distributed = distributed or core.DummyDistributedContext()
    store = _storage(checkpoint_storage)
    person = client or Determined()
    session, quick = UserSession(person), UserSession(person, quick=True)
    known = _agreed(distributed, lambda: _begin_trial(session, person, names))
    trial, experiment, task = known["trial"], known["experiment"], known["task"]
    info = _info(known, names.hparams, person._master._token or "")
    logger.info(f"experiment {experiment}, trial {trial}: {known['master']}/det/experiments/{experiment}")
    mode = tensorboard_mode if checkpoint_storage is not None else core.TensorboardMode.MANUAL
    directory = pathlib.Path(tempfile.gettempdir()) / f"tensorboard-{task}-{distributed.rank}"
    place = f"{known['cluster']}/tensorboard/experiment/{experiment}/trial/{trial}"
    files = TensorboardFiles(directory, store, place, distributed.rank)
    preempt = core.DummyPreemptContext(distributed, preempt_mode)
    checkpoint = core.CheckpointContext(distributed, store, session, task, None, known["cluster"])
    checkpoint._run_id = known["run"]
    train = Train(session, trial, known["run"], experiment, mode, directory, files)
    context = Context(
        checkpoint,
        distributed,
        preempt,
        train,
        core.SearcherContext(session, distributed, trial, known["config"], preempt.acknowledge_preemption_signal),
        info,
    )
    heartbeat = Heartbeat(quick, trial, known["run"]) if distributed.rank == 0 else None
    context.watch(heartbeat, LogShipper(quick, task, distributed.rank))
    train._ending = context._ending
    return context
