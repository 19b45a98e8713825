#!/usr/bin/env python3
"""Row 1: kill -9 of the master at every named failpoint (before and after each commit, before and after its effects).

While the trials of tests/faults/grid.yaml train and a client creates experiments, the master crashes at a failpoint's
n-th pass, n from the seed, is started again, and crashes at the next one. Afterwards (I1, I2, I5, I9): the searcher's
trials, every metric row and the sha256 of each model are those of an undisturbed run, no trial was restarted and no rank
replaced, and what was acknowledged is there. Needs a build with -Dfailpoints=true: DET_FAILPOINTS_BIN names its bin
directory, or DET_BIN is one.
"""
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import cluster  # noqa: E402
from clerk import Clerk  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from row_02_kill import create_grid, outcome, pace  # noqa: E402

POINTS = ("driver.before_commit", "db.sent", "driver.after_commit", "driver.before_perform", "driver.after_perform", "reports.committed",
          "startup.restored")


def has_failpoints(folder):
    try:
        with open(os.path.join(folder, "det-master"), "rb") as f:
            return b"DET_FAILPOINTS" in f.read()
    except OSError:
        return False


def start(c, failpoints):
    """Starts the master, anew if it lives; a failpoint may strike on the way."""
    c.stop("master", signal.SIGKILL)
    c.env.pop("DET_FAILPOINTS", None)
    if failpoints:
        c.env["DET_FAILPOINTS"] = failpoints
    try:
        c.start_master()
    except AssertionError:
        if c.procs["master"].poll() != -signal.SIGKILL:
            raise
    finally:
        c.env.pop("DET_FAILPOINTS", None)


def trials_live(c, exp):
    """By the rows: the master may be away."""
    return int(c.sql(f"SELECT count(*) FROM trials WHERE experiment_id={exp} AND state NOT IN ('COMPLETED', 'CANCELED', 'ERROR')"))


def crash_at(row, c, point, exp):
    """One crash, whenever the point is passed; the port stays. False when the trials ended before that."""
    nth = 1 if point.startswith("startup") else row.rng.randint(1, 6)
    start(c, f"{point}=crash@{nth}")
    wait_until(lambda: ended(c, 5) or not trials_live(c, exp), 60, f"the crash at {point}, pass {nth}")
    code = c.procs["master"].poll()
    if code is None:
        return False
    row.check(code == -signal.SIGKILL, f"the master ended by {code} at {point}")
    row.fault(f"{point}@{nth}")
    return True


def ended(c, seconds):
    """Whether the master ends within so many seconds."""
    try:
        return c.procs["master"].wait(seconds) is not None
    except subprocess.TimeoutExpired:
        return False


def begin(c, row):
    """An experiment whose trials train."""
    exp = create_grid(c, pace(row))
    wait_until(lambda: any(t["totalBatchesProcessed"] for t in c.trials(exp)), 60, "a trial to train")
    return exp


def crash_all(row, c, n, crashes):
    """Every crash strikes a running trial: the experiments, each begun when the one before has ended."""
    exps = [begin(c, row)]
    with Clerk(c, f"r{n}") as k:
        struck = 0
        while struck < crashes:
            struck += crash_at(row, c, POINTS[(n * crashes + struck) % len(POINTS)], exps[-1])
            if struck < crashes and not trials_live(c, exps[-1]):
                start(c, None)
                exps.append(begin(c, row))
        start(c, None)
        wait_until(lambda: k.acked, 60, "an acknowledgement")
    row.check(not k.verdict(False), k.verdict(False))
    return exps


def judge(row, c, exp, reference):
    c.wait(exp, seconds=1200)
    got = outcome(c, exp)
    row.check(sorted(got) == sorted(reference), f"other trials: {sorted(got)}")
    for hp in reference:
        for key in reference[hp]:
            row.check(got.get(hp, {}).get(key) == reference[hp][key], f"{hp}: {key} differs")
    for t in c.trials(exp):
        runs = c.sql(f"SELECT run_id FROM trials WHERE id={t['id']}")
        row.check(t["restarts"] == 0 and runs == "1", f"trial {t['id']}: {t['restarts']} restarts, run {runs}")
    wait_until(lambda: not c.processes(exp), 15, f"the processes of experiment {exp} to be gone")


def run_round(row, c, n, reference, crashes):
    for exp in crash_all(row, c, n, crashes):
        judge(row, c, exp, reference)
    wait_until(c.slots_free, 15, "free slots")


def main():
    row = Row(1, __doc__, rounds=1, rounds_all=40)
    folder = next((f for f in (os.environ.get("DET_FAILPOINTS_BIN", ""), cluster.BIN) if has_failpoints(f)), None)
    if not folder:
        row.skip("this build has no failpoints (-Dfailpoints=true)")
    cluster.BIN = folder
    with Cluster(agents=1, slots=2) as c:
        exp = create_grid(c)
        c.wait(exp, seconds=1200)
        reference = outcome(c, exp)
        for n in row.numbers():
            row.attempt(n, run_round, row, c, n, reference, 25 if row.all else len(POINTS))
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
