#!/usr/bin/env python3
"""Row 26: the checkpoint store is unmounted (its root is renamed away, and comes back) at random moments of trials that
train, are paused and activated, and whose checkpoints are collected; sometimes an empty directory is in its place, sometimes the
agent or the master dies meanwhile. No checkpoint may be lost or marked deleted for it, no restart be used up, nothing be written
to what is no store, and each end must be bitwise that of a run that was never disturbed.
"""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from row_12_checkpoint import CONFIG, checkpoints, final_state  # noqa: E402

WAYS = ("trains", "paused", "agent dies", "master dies", "collected")


def yaml():
    over = {"name": "away", "searcher": {**CONFIG["searcher"], "max_length": {"batches": 300}}, "min_checkpoint_period": {"batches": 20},
            "scheduling_unit": 20, "checkpoint_storage": {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 2}}
    return "\n".join(f"{k}: {json.dumps(v)}" for k, v in {**CONFIG, **over}.items())


def unmount(row, c, empty):
    os.rename(c.path("checkpoints"), c.path("unmounted"))
    if empty:
        os.mkdir(c.path("checkpoints"))
        os.chmod(c.path("checkpoints"), 0o777)
    row.fault("unmounted, an empty directory in its place" if empty else "unmounted")


def mount(row, c, empty):
    here = c.path("checkpoints")
    row.check(os.path.exists(here) == empty and (not empty or os.listdir(here) == []), "something was made in the store's place")
    if os.path.exists(here):
        os.rename(here, c.path(f"not-the-store-{time.monotonic_ns()}"))
    os.rename(c.path("unmounted"), here)


def in_the_meantime(row, c, way):
    if way == "agent dies":
        c.stop("agent-0", signal.SIGKILL)
        c.start_agent(0)
    elif way == "master dies":
        c.stop("master", signal.SIGKILL)
        c.start_master()
    time.sleep(row.rng.random() * 8)  # no condition: the outage has a length


def run_round(row, c, way, reference):
    empty = row.rng.random() < 0.5
    exp = paced.create(c, yaml(), 20)
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: len(checkpoints(c, trial)) >= 2, 120, "two checkpoints")
    if way == "paused":
        c.api_patiently("POST", f"/experiments/{exp}/pause")
        wait_until(c.slots_free, 60, "the paused trial to leave its slot")
    if way == "collected":
        c.wait(exp, seconds=200)
    known = {p["uuid"] for p in checkpoints(c, trial)}
    unmount(row, c, empty)
    if way == "paused":
        c.api_patiently("POST", f"/experiments/{exp}/activate")
    if way == "collected":
        c.det("checkpoint", "delete", "--yes", checkpoints(c, trial)[-1]["uuid"])
    in_the_meantime(row, c, way)
    lost = known - {p["uuid"] for p in checkpoints(c, trial)}
    row.check(way == "collected" or not lost, f"{way}: checkpoints are not COMPLETED any more: {lost}")
    row.check(way != "collected" or os.path.isdir(c.path("unmounted")), "the store is gone")
    mount(row, c, empty)
    c.wait(exp, seconds=200)
    if way == "collected":
        wait_until(lambda: c.sql(f"SELECT count(*) FROM checkpoints WHERE gc_step = 'remove' AND experiment_id = {exp}") == "0", 90, "the collection")
    else:
        row.check(final_state(c, trial) == reference, f"{way}: another end than the undisturbed run's")
    row.check(c.trials(exp)[0]["restarts"] == 0, f"{way}: a restart was counted")
    row.check(c.sql(f"SELECT count(*) FROM metrics WHERE trial_id = {trial} AND archived") == "0" or way in ("agent dies", "paused"),
              f"{way}: metrics were archived")


def main():
    row = Row(26, __doc__, rounds=len(WAYS), rounds_all=6 * len(WAYS))
    with Cluster(agents=1, slots=1) as c:
        exp = paced.create(c, yaml(), 0)
        c.wait(exp, seconds=200)
        reference = final_state(c, c.trials(exp)[0]["id"])
        for n in row.numbers():
            row.attempt(n, run_round, row, c, WAYS[n % len(WAYS)], reference)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
