"""What a script prints, to the log of its trial that runs elsewhere."""

import datetime
import os
import queue
import re
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Tuple

from determined.core._session import MasterError, Session

SHIP_S = 1.0
RETRY_S = 5.0
LINES_MAX = 1000  # of one request,
CHARS_MAX = 500_000  # and how long they are together: 4 MiB is the most, and a character may be six bytes
LINE_MAX = 16384  # characters; a longer one is several
QUEUE_MAX = 20000  # lines that wait; what comes then is left out of the trial's log, and counted there
END_S = 3.0  # for the last lines
_LINE_END = re.compile("\r?\n|\r(?!$)")  # a \r at the end may be half of one


class Tee:
    """A stream that goes on as it was, and whose lines are shipped too: what a progress bar writes over is one each time."""

    def __init__(self, stream: Any, put: Callable[[str], None], is_ours: Callable[[], bool]) -> None:
        self._stream = stream
        self._put = put
        self._is_ours = is_ours  # written by the shipper itself, as by HTTP's debugging output
        self._begun = ""
        self._is_over = False
        self._lock = threading.RLock()  # a signal handler may print in the midst of a print
        self._pid = os.getpid()

    def write(self, text: str) -> int:
        n = self._stream.write(text)
        # A child that was forked ships nothing, nor does who still holds the stream of a trial that has ended.
        if not self._is_over and os.getpid() == self._pid and not self._is_ours():
            self._keep(text)
        return int(n or 0)

    def _keep(self, text: str) -> None:
        with self._lock:
            lines = _LINE_END.split(self._begun + text)
            self._begun = lines.pop()
            if len(self._begun) > LINE_MAX:
                lines.append(self._begun)
                self._begun = ""
        for line in lines:
            self._ship(line)

    def _ship(self, line: str) -> None:
        for at in range(0, max(len(line), 1), LINE_MAX):
            self._put(line[at : at + LINE_MAX])

    def writelines(self, lines: List[str]) -> None:
        for line in lines:
            self.write(line)

    def finish(self) -> None:
        with self._lock:
            line, self._begun = self._begun, ""
            self._is_over = True
        if line:
            self._ship(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class LogShipper:
    """Standard output and error, to the trial's log; the script never waits for it."""

    def __init__(self, session: Session, task_id: str, rank: int) -> None:
        self._session = session
        self._task_id = task_id
        self._rank = rank
        self._lines: "queue.SimpleQueue[Dict[str, Any]]" = queue.SimpleQueue()  # a signal handler may put in the midst of a put
        self._left_out = 0
        self._on_its_way = 0
        self._over = threading.Event()
        self._tees: List[Tuple[str, Tee]] = []
        self._thread = threading.Thread(target=self._run, name="determined-log", daemon=True)

    def start(self) -> None:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:  # a daemon's
                continue
            tee = Tee(stream, lambda line, kind=name: self._put(kind, line), self._is_own)  # type: ignore[misc]
            self._tees.append((name, tee))
            setattr(sys, name, tee)
        self._thread.start()

    def _is_own(self) -> bool:
        return threading.current_thread() is self._thread

    def _line(self, kind: str, text: str) -> Dict[str, Any]:
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        return {"task_id": self._task_id, "timestamp": now, "rank_id": self._rank, "stdtype": kind, "log": text + "\n"}

    def _put(self, kind: str, text: str) -> None:
        if self._lines.qsize() < QUEUE_MAX:
            self._lines.put(self._line(kind, text))
        else:
            self._left_out += 1

    def _gather(self) -> List[Dict[str, Any]]:
        lines: List[Dict[str, Any]] = []
        chars, until = 0, time.monotonic() + SHIP_S
        while len(lines) < LINES_MAX and chars < CHARS_MAX and time.monotonic() < until:
            if self._over.is_set() and self._lines.empty():
                break
            try:
                lines.append(self._lines.get(timeout=0.1))
                chars += len(lines[-1]["log"])
            except queue.Empty:
                pass
        if self._left_out and len(lines) < LINES_MAX:
            n, self._left_out = self._left_out, 0
            lines.append(self._line("stderr", f"({n} lines are left out here: they came faster than they could be sent)"))
        return lines

    def _run(self) -> None:
        while not (self._over.is_set() and self._lines.empty()):
            lines = self._gather()
            self._on_its_way = len(lines)
            while lines and not self._send(lines):
                if self._over.is_set():
                    time.sleep(0.2)
                else:
                    self._over.wait(RETRY_S)
            self._on_its_way = 0

    def _send(self, lines: List[Dict[str, Any]]) -> bool:
        try:
            self._session.post("/task-logs", lines)
        except (ConnectionError, TimeoutError):
            return False
        except Exception as e:
            if isinstance(e, MasterError) and e.status in (429, 502, 503, 504):
                return False
            self._say(f"log lines were refused: {e}")  # they would be again
        return True

    def _say(self, text: str) -> None:
        for _, tee in self._tees[-1:]:
            try:
                tee._stream.write(f"determined: {text}\n")
            except (OSError, ValueError):  # it was closed
                pass

    def end(self) -> None:
        for name, tee in self._tees:
            tee.finish()
            if getattr(sys, name) is tee:
                setattr(sys, name, tee._stream)
        self._over.set()
        self._thread.join(END_S)
        left = self._lines.qsize() + self._on_its_way
        if self._thread.is_alive() and left:
            self._say(f"{left} lines are missing in the trial's log: the master did not take them in {END_S:.0f} s")
