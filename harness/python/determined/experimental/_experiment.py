"""Experiments and trials of the cluster."""

import base64
import enum
import itertools
import os
import pathlib
import time
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Type, Union

from determined.errors import CheckpointNotFound
from determined.experimental._checkpoint import Checkpoint, CheckpointSortBy, CheckpointState, OrderBy, choose, value_of
from determined.experimental._ignore import Ignore
from determined.experimental._master import APIException, Master, NotFoundException
from determined.experimental._told import ById

CONTEXT_MAX = 95 << 20
UNREACHED_MAX = 20  # times in a row that wait() asks a master which is not there


class ExperimentState(enum.Enum):
    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    PAUSED = "STATE_PAUSED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    COMPLETED = "STATE_COMPLETED"
    CANCELED = "STATE_CANCELED"
    ERROR = "STATE_ERROR"
    DELETED = "STATE_DELETED"
    DELETING = "STATE_DELETING"
    DELETE_FAILED = "STATE_DELETE_FAILED"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"


class TrialState(enum.Enum):
    UNSPECIFIED = "STATE_UNSPECIFIED"
    ACTIVE = "STATE_ACTIVE"
    PAUSED = "STATE_PAUSED"
    STOPPING_CANCELED = "STATE_STOPPING_CANCELED"
    STOPPING_KILLED = "STATE_STOPPING_KILLED"
    STOPPING_COMPLETED = "STATE_STOPPING_COMPLETED"
    STOPPING_ERROR = "STATE_STOPPING_ERROR"
    CANCELED = "STATE_CANCELED"
    COMPLETED = "STATE_COMPLETED"
    ERROR = "STATE_ERROR"
    QUEUED = "STATE_QUEUED"
    PULLING = "STATE_PULLING"
    STARTING = "STATE_STARTING"
    RUNNING = "STATE_RUNNING"


class TrialSortBy(enum.Enum):
    ID = "SORT_BY_ID"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    BEST_VALIDATION_METRIC = "SORT_BY_BEST_VALIDATION_METRIC"
    LATEST_VALIDATION_METRIC = "SORT_BY_LATEST_VALIDATION_METRIC"
    BATCHES_PROCESSED = "SORT_BY_BATCHES_PROCESSED"
    DURATION = "SORT_BY_DURATION"
    RESTARTS = "SORT_BY_RESTARTS"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"


class ExperimentSortBy(enum.Enum):
    ID = "SORT_BY_ID"
    DESCRIPTION = "SORT_BY_DESCRIPTION"
    START_TIME = "SORT_BY_START_TIME"
    END_TIME = "SORT_BY_END_TIME"
    STATE = "SORT_BY_STATE"
    NUM_TRIALS = "SORT_BY_NUM_TRIALS"
    PROGRESS = "SORT_BY_PROGRESS"
    USER = "SORT_BY_USER"
    NAME = "SORT_BY_NAME"
    FORKED_FROM = "SORT_BY_FORKED_FROM"
    RESOURCE_POOL = "SORT_BY_RESOURCE_POOL"
    PROJECT_ID = "SORT_BY_PROJECT_ID"
    CHECKPOINT_SIZE = "SORT_BY_CHECKPOINT_SIZE"
    CHECKPOINT_COUNT = "SORT_BY_CHECKPOINT_COUNT"
    SEARCHER_METRIC_VAL = "SORT_BY_SEARCHER_METRIC_VAL"


TERMINAL = (ExperimentState.COMPLETED, ExperimentState.CANCELED, ExperimentState.ERROR, ExperimentState.DELETED)


class TrialMetrics:
    """One report: the metrics of a group after a number of batches."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        metrics = raw["metrics"]
        self.trial_id: int = raw["trialId"]
        self.trial_run_id: int = raw["trialRunId"]
        self.steps_completed: int = raw["totalBatches"]
        self.end_time: str = raw["endTime"]
        self.group: str = raw["group"]
        self.metrics: Dict[str, Any] = metrics.get("validation_metrics") or metrics.get("avg_metrics") or {}
        self.batch_metrics: Optional[List[Dict[str, Any]]] = metrics.get("batch_metrics")

    @property
    def total_batches(self) -> int:
        return self.steps_completed

    def __repr__(self) -> str:
        where = f"trial_id={self.trial_id}, steps_completed={self.steps_completed}"
        return f"TrialMetrics({where}, group={self.group!r}, metrics={self.metrics})"


def pages(fetch: Any, key: str) -> Iterator[Dict[str, Any]]:
    """All items of a paginated list."""
    offset = 0
    while True:
        answer = fetch(offset)
        yield from answer[key]
        total = (answer.get("pagination") or {}).get("total", 0)
        offset += len(answer[key])
        if not answer[key] or offset >= total:
            return


def sorting(call: str, sort_by: Optional[enum.Enum], order_by: Optional[OrderBy], kind: Type[enum.Enum]) -> Dict[str, Any]:
    return {
        "sortBy": value_of(f"{call}(sort_by=...)", sort_by, kind),
        "orderBy": value_of(f"{call}(order_by=...)", order_by, OrderBy),
    }


_LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _levels_from(lowest: str) -> List[str]:
    if lowest not in _LEVELS:
        raise ValueError(f'logs(): min_level must be one of {", ".join(_LEVELS)}, not "{lowest}"')
    return [f"LOG_LEVEL_{level}" for level in _LEVELS[_LEVELS.index(lowest) :]]


class Trial(ById):
    _ROUTE, _MEMBER = "/api/v1/trials", "trial"

    def _take(self, raw: Dict[str, Any]) -> None:
        self.experiment_id: int = raw["experimentId"]
        self.hparams: Dict[str, Any] = raw.get("hparams") or {}
        self.state = TrialState(raw["state"])
        self.summary_metrics: Dict[str, Any] = raw.get("summaryMetrics") or {}

    def kill(self) -> None:
        self._master.post(f"{self._path}/kill", None)

    def logs(
        self,
        follow: bool = False,
        *,
        head: Optional[int] = None,
        tail: Optional[int] = None,
        container_ids: Optional[List[str]] = None,
        rank_ids: Optional[List[int]] = None,
        stdtypes: Optional[List[str]] = None,
        min_level: Optional[str] = None,
    ) -> Iterable[str]:
        """Lines of the log, each with its end of line: all, the first or the last few; with `follow`, until the end.

        `min_level` is one of TRACE, DEBUG, INFO, WARNING, ERROR and CRITICAL.
        """
        if head is not None and tail is not None or follow and (head is not None or tail is not None):
            raise ValueError("logs(): give one of follow, head and tail")
        query = {
            "follow": follow,
            "limit": head if tail is None else tail,
            "orderBy": None if tail is None else OrderBy.DESC.value,
            "containerIds": container_ids,
            "rankIds": rank_ids,
            "stdtypes": stdtypes,
            "levels": None if min_level is None else _levels_from(min_level),
        }
        lines = (e["message"] for e in self._master.stream(f"{self._path}/logs", **query))
        if tail is not None:
            lines = reversed(list(lines))  # type: ignore
        for line in lines:
            yield line if line.endswith("\n") else line + "\n"

    iter_logs = logs

    def iter_metrics(self, group: Optional[str] = None) -> Iterable[TrialMetrics]:
        for chunk in self._master.stream("/api/v1/trials/metrics/trial_metrics", trialIds=[self.id], group=group):
            for report in chunk["metrics"]:
                yield TrialMetrics(report)

    stream_metrics = iter_metrics

    def stream_training_metrics(self) -> Iterable[TrialMetrics]:
        return self.iter_metrics("training")

    def stream_validation_metrics(self) -> Iterable[TrialMetrics]:
        return self.iter_metrics("validation")

    def list_checkpoints(
        self,
        sort_by: Union[str, CheckpointSortBy, None] = None,
        order_by: Optional[OrderBy] = None,
        max_results: Optional[int] = None,
    ) -> List[Checkpoint]:
        """All of them; without an order the best by the searcher's metric first, and those that were deleted last."""
        path = f"{self._path}/checkpoints"
        if sort_by is not None or order_by is not None:
            return _list_checkpoints(self._master, path, sort_by, order_by, max_results)
        experiment = Experiment(self._master, self.experiment_id)
        whole = experiment._best_first(path, _WHOLE, max_results)
        rest = None if max_results is None else max_results - len(whole)
        return whole + experiment._best_first(path, _OTHERS, rest)

    get_checkpoints = list_checkpoints

    def top_checkpoint(self, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None) -> Checkpoint:
        return self.select_checkpoint(best=True, sort_by=sort_by, smaller_is_better=smaller_is_better)

    def select_checkpoint(
        self,
        latest: bool = False,
        best: bool = False,
        uuid: Optional[str] = None,
        sort_by: Optional[str] = None,
        smaller_is_better: Optional[bool] = None,
    ) -> Checkpoint:
        """Exactly one of the latest, the best by a metric (default: the searcher's), and one by its UUID."""
        if sum((latest, best, uuid is not None)) != 1:
            raise AssertionError("give exactly one of latest, best and uuid")
        if best:
            experiment = Experiment(self._master, self.experiment_id)
            return experiment._best(f"{self._path}/checkpoints", sort_by, smaller_is_better, 1)[0]
        if uuid is not None:
            return self._own_checkpoint(uuid)
        newest = CheckpointSortBy.BATCH_NUMBER, OrderBy.DESC
        found = _list_checkpoints(self._master, f"{self._path}/checkpoints", *newest, 1, _WHOLE)
        return _one(found, f"trial {self.id} has no checkpoint")

    def _own_checkpoint(self, uuid: str) -> Checkpoint:
        try:
            answer = self._master.get(f"/api/v1/checkpoints/{urllib.parse.quote(uuid, safe='')}")
            found = [Checkpoint._of(self._master, answer["checkpoint"])]
        except APIException as e:
            if e.status not in (400, 404):  # it is no UUID, or of no checkpoint
                raise
            found = []
        of_this = [c for c in found if c.training.trial_id == self.id]
        return _one(of_this, f"trial {self.id} has no checkpoint {uuid}")


def workspaces(master: Master) -> Iterator[Dict[str, Any]]:
    return pages(lambda offset: master.get("/api/v1/workspaces", offset=offset, limit=200), "workspaces")


def projects(master: Master, workspace_id: int) -> Iterator[Dict[str, Any]]:
    path = f"/api/v1/workspaces/{workspace_id}/projects"
    return pages(lambda offset: master.get(path, offset=offset, limit=200), "projects")


def by_name(found: Iterable[Dict[str, Any]], name: str, missing: str) -> Dict[str, Any]:
    for raw in found:
        if raw["name"] == name:
            return raw
    raise NotFoundException(404, f'{missing} "{name}"')


def _one(found: List[Checkpoint], text: str) -> Checkpoint:
    if not found:
        raise CheckpointNotFound(text)
    return found[0]


_WHOLE = [CheckpointState.COMPLETED]
_OTHERS = [s for s in CheckpointState if s not in (CheckpointState.UNSPECIFIED, CheckpointState.COMPLETED)]
_PAGE = 200


def _list_checkpoints(
    master: Master,
    path: str,
    sort_by: Any,
    order_by: Optional[OrderBy],
    max_results: Optional[int],
    states: Optional[List[CheckpointState]] = None,
) -> List[Checkpoint]:
    """In any state (deleted ones too), or in these; no more pages than are needed. Without the metric: last."""
    metric = isinstance(sort_by, str)
    query = {
        "sortByAttr": None if metric else value_of("list_checkpoints(sort_by=...)", sort_by, CheckpointSortBy),
        "sortByMetric": sort_by if metric else None,
        "orderBy": value_of("list_checkpoints(order_by=...)", order_by, OrderBy),
        "states": [s.value for s in states] if states else None,
        "limit": _PAGE if max_results is None else min(max_results, _PAGE),
    }
    raw = pages(lambda offset: master.get(path, offset=offset, **query), "checkpoints")
    return [Checkpoint._of(master, c) for c in itertools.islice(raw, max_results)]


class Experiment(ById):
    _ROUTE, _MEMBER = "/api/v1/experiments", "experiment"
    _LACKS = {"delete_tensorboard_files": "delete() removes them with all else"}

    def _take(self, raw: Dict[str, Any]) -> None:
        self.config: Dict[str, Any] = raw.get("config") or {}
        self.state = ExperimentState(raw["state"])
        self.labels = set(raw.get("labels") or [])
        self.name: str = raw["name"]
        self.description: str = raw.get("description", "")
        self.notes: str = raw.get("notes") or ""
        self.archived: bool = raw["archived"]
        self.progress: Optional[float] = raw.get("progress")
        self.project_id: Optional[int] = raw.get("projectId")

    def get_config(self) -> Dict[str, Any]:
        return self.config

    def _do(self, what: str) -> None:
        self._master.post(f"{self._path}/{what}", None)

    def activate(self) -> None:
        self._do("activate")

    def pause(self) -> None:
        self._do("pause")

    def cancel(self) -> None:
        self._do("cancel")

    def kill(self) -> None:
        self._do("kill")

    def archive(self) -> None:
        self._do("archive")

    def unarchive(self) -> None:
        self._do("unarchive")

    def delete(self) -> None:
        self._master.delete(self._path)

    def _patch(self, **changes: Any) -> None:
        self._master.patch(self._path, {"id": self.id, **changes})
        self.reload()

    def set_name(self, name: str) -> None:
        self._patch(name=name)

    def set_description(self, description: str) -> None:
        self._patch(description=description)

    def set_notes(self, notes: str) -> None:
        self._patch(notes=notes)

    def add_label(self, label: str) -> None:
        self._patch(labels=sorted(self.labels | {label}))

    def remove_label(self, label: str) -> None:
        self._patch(labels=sorted(self.labels - {label}))

    def set_labels(self, labels: Iterable[str]) -> None:
        self._patch(labels=sorted(set(labels)))

    def move_to_project(self, workspace_name: str, project_name: str) -> None:
        workspace = by_name(workspaces(self._master), workspace_name, "there is no workspace")
        missing = f'workspace "{workspace_name}" has no project'
        project = by_name(projects(self._master, workspace["id"]), project_name, missing)
        self._master.post(f"{self._path}/move", {"destinationProjectId": project["id"]})
        self.reload()

    def list_trials(self, sort_by: Optional[TrialSortBy] = None, order_by: Optional[OrderBy] = None) -> List[Trial]:
        return list(self.iter_trials(sort_by, order_by))

    def iter_trials(
        self, sort_by: Optional[TrialSortBy] = None, order_by: Optional[OrderBy] = None, limit: Optional[int] = None
    ) -> Iterator[Trial]:
        """As list_trials(), page by page of `limit` trials."""
        query = sorting("list_trials", sort_by, order_by, TrialSortBy)
        size = limit or 200
        raw = pages(lambda offset: self._master.get(f"{self._path}/trials", offset=offset, limit=size, **query), "trials")
        return (Trial._of(self._master, t) for t in raw)

    get_trials = list_trials

    def top_n_trials(
        self, limit: int, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None
    ) -> List[Trial]:
        """The best by the best value of a validation metric (default: the searcher's); those without it are left out."""
        metric, smaller = self._measure(sort_by, smaller_is_better)

        def best(trial: Trial) -> Any:
            return (trial.summary_metrics.get("validation_metrics") or {}).get(metric, {}).get("min" if smaller else "max")

        found = [t for t in self.list_trials() if isinstance(best(t), (int, float))]
        return sorted(found, key=best, reverse=not smaller)[:limit]

    def download_code(self, output_dir: Optional[str] = None) -> str:
        """The model definition as a .tar.gz below `output_dir` (default: here); its path."""
        path = pathlib.Path(output_dir or ".") / f"exp-{self.id}_model_def.tar.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._master.get(f"{self._path}/model_def")["b64Tgz"]))
        return str(path)

    def await_first_trial(self, interval: float = 0.1) -> Trial:
        while True:
            found = self._master.get(f"{self._path}/trials", limit=1)["trials"]
            if found:
                return Trial._of(self._master, min(found, key=lambda t: t["id"]))
            time.sleep(interval)

    def wait(self, interval: float = 5.0) -> ExperimentState:
        """The state in which the experiment ended; a paused one is an error, since it would wait for ever.

        A master that is being started anew is waited for too.
        """
        unreached = 0
        while True:
            try:
                self.reload()
                unreached = 0
            except ConnectionError:
                unreached += 1
                if unreached > UNREACHED_MAX:
                    raise
                time.sleep(interval)
                continue
            if self.state in TERMINAL:
                return self.state
            if self.state == ExperimentState.PAUSED:
                raise ValueError(f"experiment {self.id} is paused{self._held()}: activate it before waiting for its end")
            time.sleep(interval)

    def _held(self) -> str:
        """Why it is paused, where no person paused it."""
        try:
            why = self._master.get(f"{self._path}/why")
        except (APIException, ConnectionError):  # that it is paused is known already
            return ""
        return f" ({why['text']})" if why.get("held") else ""

    def list_checkpoints(
        self,
        sort_by: Union[str, CheckpointSortBy, None] = None,
        order_by: Optional[OrderBy] = None,
        max_results: Optional[int] = None,
    ) -> List[Checkpoint]:
        """Those that are whole; without an order the best by the searcher's metric first. Trials list all of theirs."""
        path = f"{self._path}/checkpoints"
        if sort_by is None and order_by is None:
            return self._best_first(path, _WHOLE, max_results)
        return _list_checkpoints(self._master, path, sort_by, order_by, max_results, _WHOLE)

    def _in_any_state(self) -> List[Checkpoint]:
        """The oldest first."""
        return _list_checkpoints(self._master, f"{self._path}/checkpoints", CheckpointSortBy.END_TIME, OrderBy.ASC, None)

    def _best_first(self, path: str, states: List[CheckpointState], max_results: Optional[int]) -> List[Checkpoint]:
        metric, smaller = self._measure(None, None)
        order = OrderBy.ASCENDING if smaller else OrderBy.DESCENDING
        return _list_checkpoints(self._master, path, metric, order if metric else None, max_results, states)

    def _measure(self, sort_by: Optional[str], smaller_is_better: Optional[bool]) -> Tuple[Optional[str], bool]:
        """A metric and whether less of it is better; none given: the searcher's."""
        if (sort_by is None) != (smaller_is_better is None):
            raise AssertionError("sort_by and smaller_is_better go together")
        if sort_by is not None:
            return sort_by, bool(smaller_is_better)
        searcher = self.config.get("searcher") or {}
        return searcher.get("metric"), searcher.get("smaller_is_better", True)

    def _best(
        self, path: str, sort_by: Optional[str], smaller_is_better: Optional[bool], limit: int
    ) -> List[Checkpoint]:
        """Of a list's whole ones; no more pages are read than hold them."""
        metric, smaller = self._measure(sort_by, smaller_is_better)
        order = OrderBy.ASCENDING if smaller else OrderBy.DESCENDING
        found = _list_checkpoints(self._master, path, metric, order if metric else None, max(limit, 1), _WHOLE)
        return choose(found, smaller, metric, limit)

    def top_checkpoint(self, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None) -> Checkpoint:
        return self.top_n_checkpoints(1, sort_by, smaller_is_better)[0]

    def top_n_checkpoints(
        self, limit: int, sort_by: Optional[str] = None, smaller_is_better: Optional[bool] = None
    ) -> List[Checkpoint]:
        return self._best(f"{self._path}/checkpoints", sort_by, smaller_is_better, limit)


def pack(directory: Union[str, "os.PathLike[str]"], includes: Optional[Iterable[Any]] = None) -> List[Dict[str, Any]]:
    """A directory as the master takes it, without what .detignore names."""
    root = pathlib.Path(directory)
    if not root.is_dir():
        raise ValueError(f"{directory} is no directory: model_dir must name the one that holds the model's code")
    listed = _listed(root)
    for extra in map(pathlib.Path, includes or []):
        listed += _listed(extra) if extra.is_dir() else [(extra, extra.name)]
    total = 0
    for file, _ in listed:  # before anything is read: it may be more than there is memory
        strange = _strange(file)
        if strange is not None:
            raise ValueError(f"{file} is {strange}: remove it or name it in .detignore")
        total += file.stat().st_size if file.is_file() else 0
        if total > CONTEXT_MAX:
            raise ValueError(f"{directory} has more than {CONTEXT_MAX >> 20} MiB: name what is not needed in .detignore")
    return [_entry(file, path) for file, path in listed]


def _listed(root: pathlib.Path) -> List[Tuple[pathlib.Path, str]]:
    """What is below a directory and not ignored, with the paths in it."""
    ignored = root / ".detignore"
    ignore = Ignore(ignored.read_bytes() if ignored.is_file() else b"")
    found: List[Tuple[pathlib.Path, str]] = []
    for where, directories, names in os.walk(root):
        at = os.path.relpath(where, root)
        rel = [(n, n if at == "." else f"{at}/{n}") for n in sorted(directories)]
        directories[:] = [n for n, p in rel if not ignore.names(p, True)]
        found += [(root / p, p) for n, p in rel if n in directories]
        for name in sorted(names):
            path = name if at == "." else f"{at}/{name}"
            if not ignore.names(path, False):
                found.append((root / path, path))
    return found


def _strange(file: pathlib.Path) -> Optional[str]:
    """What cannot be sent, and would be missed; a link to a file goes as that file."""
    if file.is_symlink() and not file.exists():
        return "a link that leads nowhere"
    if file.is_symlink() and file.is_dir():
        return "a link to a directory, and these are not sent"
    return None if file.is_file() or file.is_dir() else "neither a file nor a directory"


def _entry(file: pathlib.Path, path: str) -> Dict[str, Any]:
    try:
        path.encode()
    except UnicodeEncodeError:
        name = os.fsencode(file).decode(errors="replace")
        raise ValueError(f"{name}: a name that is not UTF-8: rename it or name it in .detignore") from None
    about = file.stat()
    content = b"" if file.is_dir() else file.read_bytes()
    return {
        "path": path,
        "type": 53 if file.is_dir() else 48,
        "content": base64.b64encode(content).decode(),
        "mtime": str(int(about.st_mtime)),
        "mode": about.st_mode,
        "uid": 0,
        "gid": 0,
    }
