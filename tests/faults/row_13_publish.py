#!/usr/bin/env python3
"""Row 13: the trial killed at each step of publishing a checkpoint: before the write, the fsync, the rename, the
directory's fsync, and before the database row.

Each run of the trial publishes one checkpoint and is killed in the middle of the next, until it is done. Then every
checkpoint of the database is whole, no half one lies under a checkpoint's name, and the final state is the one of a
run that was never disturbed.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from gc_exp import checkpoints, config, keep  # noqa: E402

STEPS = ("checkpoint.before_write", "storage.before_fsync", "storage.before_rename", "storage.before_dir_fsync", "storage.after_publish")
BATCHES = 80


def start(c, failpoint=None):
    over = keep(latest=99)
    if failpoint:
        over["environment"] = {"environment_variables": [f"DET_FAILPOINTS={failpoint}=crash@2"]}
    return c.create(config(batches=BATCHES, max_restarts=20, **over), "examples/digits")


def final_state(c, exp):
    now = checkpoints(c, exp)
    with open(c.path("checkpoints", now[BATCHES][0], "state_dict.pth"), "rb") as f:
        return f.read()


def whole(c, row, exp):
    """Files are as the rows say, byte for byte by length; what lies under a name without a row is whole too."""
    known = {}
    for k in c.api("GET", f"/experiments/{exp}/checkpoints")["checkpoints"]:
        known[k["uuid"]] = k["resources"]
    for k, files in known.items():
        for path, size in files.items():
            full = c.path("checkpoints", k, path)
            row.check(os.path.isdir(full) if path.endswith("/") else os.path.isfile(full) and os.path.getsize(full) == int(size),
                      f"checkpoint {k}: {path} is not what was reported")
    return known


def one(row, c, n, want):
    failpoint = STEPS[n % len(STEPS)]
    exp = start(c, failpoint)
    c.wait(exp, seconds=180)
    trial = c.trials(exp)[0]
    row.check(trial["restarts"] > 0, f"{failpoint}: nothing was killed")
    for _ in range(trial["restarts"]):
        row.fault(f"killed at {failpoint}")
    known = whole(c, row, exp)
    shape = set(next(iter(known.values())))
    for name in os.listdir(c.path("checkpoints")):
        beside = os.path.isdir(c.path("checkpoints", name, "tensorboard"))
        if not name.startswith(".") and not beside and name not in known and c.sql(f"SELECT count(*) FROM checkpoints WHERE uuid = '{name}'") == "0":
            missing = [p for p in shape if not os.path.exists(c.path("checkpoints", name, p))]
            row.check(not missing, f"a half checkpoint lies under the name {name}: {missing} are missing")
    row.check(final_state(c, exp) == want, f"{failpoint}: another final state than the undisturbed run's")
    row.check("hash" not in c.logs(trial["id"]), f"{failpoint}: a checkpoint was found damaged")
    wait_until(c.slots_free, 20, "free slots")


def main():
    row = Row(13, __doc__, rounds=len(STEPS), rounds_all=4 * len(STEPS))
    with open(os.path.join(BIN, "det-harness"), "rb") as f:
        if b"storage.before_rename" not in f.read():
            row.skip("the build has no failpoints (-Dfailpoints=true)")
    with Cluster(slots=1) as c:
        c.login()
        exp = start(c)
        c.wait(exp)
        want = final_state(c, exp)
        for n in row.numbers():
            row.attempt(n, one, row, c, n, want)
    sys.exit(row.finish())


main()
