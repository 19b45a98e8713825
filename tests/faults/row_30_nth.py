#!/usr/bin/env python3
"""Row 30: one allocation, read, write or query fails, once, wherever the daemons make one.

A small experiment runs once while tests/faults/nth.c lists each place (a stack) at which det-master, det-agent and det-task
allocate, read, write and query. Then each of these places fails once: those that a daemon comes by as it starts, at a start
of it; the others while the experiment runs again. A daemon goes on, or ends and says why; and with nothing failing
any more the experiment has the figures that it had undisturbed, and no process and no slot is left.

The short form takes a few reads, writes and queries of each program; --all takes all of them, and all allocations (hours).
--only PROGRAM[:KIND[:PLACE]] narrows it down. It needs tests/faults/nth.c as a library, which a build without sanitizers has.
"""
import os
import re
import signal
import struct
import subprocess
import sys
from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cluster  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402

KINDS = ("alloc", "read", "write", "query", "cut")
DAEMONS = {"det-master": "master", "det-agent": "agent-0"}
PROGRAMS = ("det-master", "det-agent", "det-task")
CONTROL = struct.Struct("QIII32s")
Place = namedtuple("Place", "program kind hash names cold")
# What aborts with a message when there is no memory (base/mem.h): a few of their callers say as much as all.
ABORTS = {"det_alloc", "det_zalloc", "det_realloc", "det_reallocarray", "det_strdup", "det_strndup", "det_asprintf", "det_memdup"}


class Preloaded(Cluster):
    """A cluster whose daemons map a file that says which of their calls fails."""

    def __init__(self, library, **kw):
        super().__init__(**kw)
        self.library, self.tables = library, {}
        self.control, self.list = self.path("nth"), self.path("nth.places")
        for path in (self.control, self.list):
            with open(path, "wb") as f:
                f.write(bytes(CONTROL.size + 8) if path == self.control else b"")
            os.chmod(path, 0o666)

    def spawn(self, name, argv, **kw):
        plain = self.env
        if name != "pg":
            self.env = {**plain, "LD_PRELOAD": self.library, "DET_NTH": self.control}
        try:
            return super().spawn(name, argv, **kw)
        finally:
            self.env = plain

    def arm(self, place=None):
        """The next call from there fails; none: nothing does, and places are listed."""
        self.write((place.hash, KINDS.index(place.kind), 0, 0, place.program.encode()) if place else (0, 0, 0, 0, b""))
        if place:
            self.write((place.hash, KINDS.index(place.kind), 1, 0, place.program.encode()))

    def disarm(self):
        self.write((1, 0, 0, self.struck(), b""))

    def write(self, values):
        with open(self.control, "r+b") as f:
            f.write(CONTROL.pack(*values))

    def struck(self):
        with open(self.control, "rb") as f:
            return CONTROL.unpack(f.read(CONTROL.size))[3]

    # -- names ----------------------------------------------------------------------------------
    def symbols(self, path):
        """[(address, name)] of a file, in order."""
        if path not in self.tables:
            out = subprocess.run(["nm", "-C", "--defined-only", path], text=True, capture_output=True).stdout
            out += subprocess.run(["nm", "-DC", "--defined-only", path], text=True, capture_output=True).stdout if not out else ""
            rows = [line.split(None, 2) for line in out.splitlines()]
            self.tables[path] = sorted((int(r[0], 16), r[2]) for r in rows if len(r) == 3 and r[1] in "tTwWi")
        return self.tables[path]

    def name(self, frame, program):
        path, at = frame.rsplit("+", 1)
        path = os.path.join(cluster.BIN, program) if path == "-" else path
        below = [n for a, n in self.symbols(path) if a <= int(at, 16)] if "det" in os.path.basename(path) else []
        return below[-1].split("@")[0] if below else os.path.basename(path).split(".so")[0] + "+" + at

    def places(self, since=0):
        """What has been listed from a byte on: [(program, kind, hash, names)] and where the list ends."""
        with open(self.list) as f:
            f.seek(since)
            text = f.read()
        rows = [line.split() for line in text.splitlines()]
        return [(r[0], KINDS[int(r[1])], int(r[2]), tuple(self.name(x, r[0]) for x in r[3:])) for r in rows], since + len(text)


def create(c):
    return c.create("examples/digits/const.yaml", "examples/digits", **{"epochs: 12": "epochs: 2"})


def outcome(c, exp):
    """What the experiment came to, however it went."""
    trial = c.trials(exp)[0]
    return {group: c.metrics(trial["id"], group) for group in ("training", "validation")}, \
        c.sql(f"SELECT count(*), min(state) FROM checkpoints WHERE experiment_id={exp}")


def agent_is_up(c):
    try:
        return any(a["enabled"] and a.get("lastHeartbeat", "") is not None for a in c.api("GET", "/agents")["agents"])
    except (OSError, cluster.http.client.HTTPException, cluster.ApiError):
        return False


def ended(c, name):
    p = c.procs.get(name)
    return p is not None and p.poll() is not None


def log_since(c, name, at):
    with open(c.path(name + ".log"), errors="replace") as f:
        f.seek(at)
        return f.read()


def log_end(c, name):
    return os.path.getsize(c.path(name + ".log")) if os.path.exists(c.path(name + ".log")) else 0


def judge_end(row, c, name, at, what):
    """A daemon that ended by itself: not by a bug, and with a word why."""
    code, said = c.procs.pop(name).wait(), log_since(c, name, at)
    last = said.strip().splitlines()[-1:] or ["nothing"]
    if code == -signal.SIGABRT:
        row.check("out of memory" in said, f"{what}: {name} aborted and said: {last[0]}")
    else:
        row.check(code > 0, f"{what}: {name} ended by {code} and said: {last[0]}")
        row.check(re.search(r"\b(error|fatal|cannot|memory|failed|lost)\b|: ", last[0]), f"{what}: {name} ended by {code} and said: {last[0]}")
    return f"ended by {code}: {last[0][:150]}"


def revive(row, c, name, at, what):
    """Starts a daemon anew that has ended."""
    how = judge_end(row, c, name, at, what)
    c.disarm()
    c.start_master() if name == "master" else c.start_agent()
    return how


def start_struck(row, c, place, what):
    """The place is one that a daemon comes by as it starts."""
    name = DAEMONS[place.program]
    c.stop(name)
    at = log_end(c, name)
    c.arm(place)
    if name == "master":
        try:
            c.start_master()
        except AssertionError:
            pass
    else:
        c.start_agent()
    wait_until(lambda: ended(c, name) or (agent_is_up(c) if name == "master" else "connected to the master" in log_since(c, name, at)), 20, f"{what}: {name} to start or to end")
    return revive(row, c, name, at, what) if ended(c, name) else "went on"


def run_struck(row, c, place, what, reference):
    """An experiment runs and the place is struck while it does, or is not come by."""
    ats = {name: log_end(c, name) for name in ("master", "agent-0")}
    how = ["went on"]
    c.arm(place)

    def patiently(function):
        for name in ats:
            if ended(c, name):
                how[0] = revive(row, c, name, ats[name], what)
        try:
            return function()
        except (OSError, cluster.http.client.HTTPException, cluster.ApiError, IndexError):
            return None
    before = int(c.sql("SELECT coalesce(max(id), 0) FROM experiments"))
    wait_until(lambda: patiently(lambda: c.sql(f"SELECT max(id) FROM experiments WHERE id > {before}") or create(c)), 30, f"{what}: an experiment")
    exp = int(c.sql(f"SELECT max(id) FROM experiments WHERE id > {before}"))
    state = wait_until(lambda: patiently(lambda: (lambda s: s in cluster.TERMINAL and s)(c.api("GET", f"/experiments/{exp}")["experiment"]["state"])), 60,
                       f"{what}: experiment {exp} to end")
    c.disarm()
    wait_until(lambda: patiently(c.slots_free), 20, f"{what}: free slots")
    wait_until(lambda: not c.processes(exp), 20, f"{what}: the processes of experiment {exp} to be gone")
    if row.check(state == "STATE_COMPLETED", f"{what}: experiment {exp} is {state}"):
        row.check(outcome(c, exp) == reference, f"{what}: experiment {exp} has other figures")
    return how[0]


def strike(row, c, place, reference):
    what = f"{place.program} {place.kind} {place.hash} [{' < '.join(place.names[:6])}]"
    how = start_struck(row, c, place, what) if place.cold else run_struck(row, c, place, what, reference)
    if not c.struck() and not place.cold and place.program != "det-task":  # what a process does once only
        c.stop(DAEMONS[place.program])
        c.start_master() if place.program == "det-master" else c.start_agent()
        wait_until(lambda: agent_is_up(c), 20, f"{what}: master and agent to be there")
        how = run_struck(row, c, place, what, reference)
    if c.struck():
        row.fault(f"{what}: {how}")
    else:
        print(f"row {row.number:02}: not come by: {what}", flush=True)
    c.disarm()
    for name in ("master", "agent-0"):
        if name not in c.procs or ended(c, name):
            c.procs.pop(name, None)
            c.start_master() if name == "master" else c.start_agent()
    wait_until(lambda: agent_is_up(c), 20, f"{what}: master and agent to be there")


def find_places(c):
    """All places of a start of each and of one experiment; what that came to."""
    create_and_wait(c)  # compiled once
    c.stop("agent-0")
    c.stop("master")
    _, at = c.places()
    c.start_master()
    c.start_agent()
    wait_until(lambda: agent_is_up(c), 20, "the agent")
    cold, at = c.places(at)
    exp = create_and_wait(c)
    reference = outcome(c, exp)
    warm, _ = c.places(at)
    found = {}
    for rows, is_cold in ((cold, True), (warm, False)):
        for program, kind, value, names in rows:
            if program in PROGRAMS:
                found.setdefault((program, kind, value), Place(program, kind, value, names, is_cold and program != "det-task"))
    return list(found.values()), reference


def create_and_wait(c):
    exp = create(c)
    c.wait(exp)
    wait_until(c.slots_free, 20, "free slots")
    return exp


def aborts(place):
    return place.kind == "alloc" and bool(ABORTS & set(place.names[:3]))


def chosen(row, places, only):
    if only:
        places = [p for p in places if ":".join(map(str, p[:3])).startswith(only)]
    plain = [p for p in places if not aborts(p)]
    if not row.all and not only:
        plain = [p for program in PROGRAMS for kind in KINDS[1:] for p in [q for q in plain if q[:2] == (program, kind)][:3]]
    return plain + [p for p in places if aborts(p)][::40 if row.all or only else 400]


def main():
    row = Row(30, __doc__, rounds=1, rounds_all=None, add=lambda ap: ap.add_argument("--only", default=""))
    library = os.path.join(os.environ.get("DET_BUILD", os.path.join(cluster.TOP, "build")), "tests", "faults", "libnth.so")
    if not os.path.exists(library):
        row.skip("this build has no tests/faults/libnth.so")
    with Preloaded(library, agents=1, slots=1) as c:
        places, reference = find_places(c)
        todo = chosen(row, places, row.args.only)
        print(f"row {row.number:02}: {len(todo)} of {len(places)} places", flush=True)
        for n, place in enumerate(todo[row.first::row.step]):
            row.attempt(n, strike, row, c, place, reference)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
