"""A training that runs elsewhere and reports here: its experiment and trial on the master, its heartbeat, its log lines."""

import dataclasses
import datetime
import json
import logging
import os
import pathlib
import queue
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Union
from urllib.parse import quote

import determined as det
from determined import core
from determined._info import RendezvousInfo, TrialInfo
from determined.core._session import Session
from determined.core._storage import default_directory, open_storage
from determined.core._tensorboard import TensorboardFiles
from determined.experimental.client import Determined

logger = logging.getLogger("determined.unmanaged")

HEARTBEAT_S = 60.0
RETRY_S = 10.0
SHIP_S = 1.0
LINES_MAX = 1000  # of one request
QUEUE_MAX = 20000  # lines that wait; what comes then is left out of the trial's log, and counted there
END_S = 5.0  # for the last lines


@dataclasses.dataclass
class Names:
    """What the experiment is called and where it belongs; see core_v2."""

    config: Dict[str, Any]
    hparams: Dict[str, Any]
    experiment: Optional[str]
    trial: Optional[str]


class UserSession(Session):
    """With a person's token instead of a task's. `tries`: how often what did not reach the master is tried again."""

    _header = "Authorization"

    def __init__(self, client: Determined, tries: Optional[int] = None) -> None:
        master = client._master
        super().__init__(master.url, master._token or "", None)
        self._urls = master._urls
        self._context = master._context
        if tries is not None:
            self._retries = tries


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

    def set_status(self, status: str) -> None:
        logger.debug(f"status: {status}")

    def report_early_exit(self, reason: core.EarlyExitReason) -> None:
        logger.info(f"report_early_exit({reason}): this run ends as its script does")


# ---- heartbeat ----


class Heartbeat:
    """Says that the trial lives, once a minute; nothing else ends it while the script runs."""

    def __init__(self, session: Session, trial_id: int) -> None:
        self._session = session
        self._path = f"/api/v1/trials/{trial_id}"
        self._trial_id = trial_id
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="determined-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        wait = HEARTBEAT_S
        while not self._over.wait(wait):
            try:
                self._session.patch(self._path, {"trialId": self._trial_id})
                wait = HEARTBEAT_S
            except Exception as e:
                logger.warning(f"failure communicating with heartbeat API (retrying in {RETRY_S:.0f}s): {e}")
                wait = RETRY_S

    def end(self, state: str) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(RETRY_S)
        try:
            self._session.patch(self._path, {"trialId": self._trial_id, "state": state})
        except Exception as e:
            logger.warning(f"the master was not told that trial {self._trial_id} is {state}: {e}")


# ---- log lines ----


class Tee:
    """A stream that goes on as it was, and whose whole lines are shipped too."""

    def __init__(self, stream: Any, kind: str, put: Callable[[str, str], None]) -> None:
        self._stream = stream
        self._kind = kind
        self._put = put
        self._begun = ""
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def write(self, text: str) -> int:
        n = self._stream.write(text)
        if os.getpid() != self._pid:  # a child that was forked ships nothing
            return int(n or 0)
        with self._lock:
            lines = (self._begun + text).split("\n")
            self._begun = lines.pop()
        for line in lines:
            self._put(self._kind, line)
        return int(n or 0)

    def writelines(self, lines: List[str]) -> None:
        for line in lines:
            self.write(line)

    def finish(self) -> None:
        with self._lock:
            line, self._begun = self._begun, ""
        if line:
            self._put(self._kind, line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LogShipper:
    """Standard output and error, to the trial's log; the script never waits for it."""

    def __init__(self, session: Session, task_id: str, rank: int) -> None:
        self._session = session
        self._task_id = task_id
        self._rank = rank
        self._lines: "queue.Queue[Dict[str, Any]]" = queue.Queue(QUEUE_MAX)
        self._left_out = 0
        self._over = threading.Event()
        self._tees: List[Tuple[str, Tee]] = []
        self._thread = threading.Thread(target=self._run, name="determined-log", daemon=True)

    def start(self) -> None:
        for name in ("stdout", "stderr"):
            tee = Tee(getattr(sys, name), name, self._put)
            self._tees.append((name, tee))
            setattr(sys, name, tee)
        self._thread.start()

    def _line(self, kind: str, text: str) -> Dict[str, Any]:
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        return {"task_id": self._task_id, "timestamp": now, "rank_id": self._rank, "stdtype": kind, "log": text + "\n"}

    def _put(self, kind: str, text: str) -> None:
        try:
            self._lines.put_nowait(self._line(kind, text))
        except queue.Full:
            self._left_out += 1

    def _gather(self) -> List[Dict[str, Any]]:
        lines: List[Dict[str, Any]] = []
        until = time.monotonic() + SHIP_S
        while len(lines) < LINES_MAX:
            left = until - time.monotonic()
            if left <= 0 or (self._over.is_set() and self._lines.empty()):
                break
            try:
                lines.append(self._lines.get(timeout=min(left, 0.1)))
            except queue.Empty:
                pass
        if self._left_out and len(lines) < LINES_MAX:
            n, self._left_out = self._left_out, 0
            lines.append(self._line("stderr", f"({n} lines are left out here: they came faster than they could be sent)"))
        return lines

    def _run(self) -> None:
        while not (self._over.is_set() and self._lines.empty()):
            lines = self._gather()
            while lines and not self._send(lines):
                if self._over.wait(RETRY_S):
                    self._send(lines)
                    return

    def _send(self, lines: List[Dict[str, Any]]) -> bool:
        try:
            self._session.post("/task-logs", lines)
        except (ConnectionError, TimeoutError):
            return False
        except Exception as e:  # refused: it would be again
            self._tees[1][1]._stream.write(f"determined: log lines were refused: {e}\n")
        return True

    def end(self) -> None:
        for name, tee in self._tees:
            tee.finish()
            if getattr(sys, name) is tee:
                setattr(sys, name, tee._stream)
        self._over.set()
        self._thread.join(END_S)


# ---- how the script ends ----


class Ending:
    """Notes an exception that nobody catches, and sys.exit() with a failure: what runs at exit cannot see them."""

    def __init__(self) -> None:
        self.failed = False
        self._hook, self._exit = sys.excepthook, sys.exit

    def start(self) -> None:
        self._mine: Tuple[Any, Any] = (self._on_exception, self._on_exit)
        sys.excepthook, sys.exit = self._mine

    def _on_exception(self, kind: Any, value: Any, trace: Any) -> None:
        self.failed = True
        self._hook(kind, value, trace)

    def _on_exit(self, status: Any = None) -> Any:
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
        self._is_open = False

    def start(self) -> None:
        super().start()
        self._is_open = True
        self._ending.start()
        self._shipper.start()
        if self._heartbeat:
            self._heartbeat.start()

    def close(self, exc_type: Any = None, exc_val: Any = None, exc_tb: Any = None) -> None:
        if not self._is_open:
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
    session, quick = UserSession(person), UserSession(person, tries=1)
    known = _agreed(distributed, lambda: _begin_trial(UserSession(person, tries=2), person, names))
    trial, experiment, task = known["trial"], known["experiment"], known["task"]
    info = _info(known, names.hparams, person._master._token or "")
    logger.info(f"experiment {experiment}, trial {trial}: {known['master']}/det/experiments/{experiment}")
    mode = tensorboard_mode if checkpoint_storage is not None else core.TensorboardMode.MANUAL
    directory = pathlib.Path(tempfile.gettempdir()) / f"tensorboard-{task}-{distributed.rank}"
    place = f"{known['cluster']}/tensorboard/experiment/{experiment}/trial/{trial}"
    files = TensorboardFiles(directory, store, place, distributed.rank)
    preempt = core.DummyPreemptContext(distributed, preempt_mode)
    context = Context(
        core.CheckpointContext(distributed, store, session, task, None, known["cluster"]),
        distributed,
        preempt,
        Train(session, trial, known["run"], experiment, mode, directory, files),
        core.SearcherContext(session, distributed, trial, known["config"], preempt.acknowledge_preemption_signal),
        info,
    )
    context.watch(Heartbeat(quick, trial) if distributed.rank == 0 else None, LogShipper(quick, task, distributed.rank))
    return context
