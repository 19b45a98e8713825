#!/usr/bin/env python3
"""Row 29: the database is restored from a dump that is older than the newest checkpoints on disk.

No row knows these. They are listed with the trial that wrote them, told by its task's id, which no other life gives out; a live
trial is given none; adopted, the newest is what the continued trial goes on from, to the end of a run that was never
disturbed; a discarded one goes as deleted ones do. Sometimes the agent or its collecting task dies while it looks.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import Cluster, processes_with, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from masters import dump, new_life, restore  # noqa: E402
from row_12_checkpoint import checkpoints, final_state  # noqa: E402
from row_26_store_away import yaml  # noqa: E402


def uuids(c, trial):
    return {p["uuid"] for p in checkpoints(c, trial)}


def begin(c):
    """An experiment that is paused with some checkpoints, and the dump of that moment."""
    exp = paced.create(c, yaml().replace('"save_trial_latest": 2', '"save_trial_latest": 99'), 20)
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: len(uuids(c, trial)) >= 2, 120, "two checkpoints")
    c.api_patiently("POST", f"/experiments/{exp}/pause")
    wait_until(c.slots_free, 60, "the paused trial to leave its slot")
    return exp, trial, dump(c)


def go_on(c, exp, trial):
    """What the trial saves after the dump."""
    before = len(uuids(c, trial))
    c.api_patiently("POST", f"/experiments/{exp}/activate")
    wait_until(lambda: len(uuids(c, trial)) >= before + 3, 120, "three more checkpoints")
    c.api_patiently("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    wait_until(c.slots_free, 30, "free slots")
    return checkpoints(c, trial)


def look(row, c):
    """The list, though somebody dies while it is made."""
    victim = row.rng.choice(("nobody", "agent", "task"))
    c.api_patiently("POST", "/checkpoint-stores/look", {"place": c.path("checkpoints")})
    if victim == "agent":
        c.stop("agent-0", signal.SIGKILL)
        c.start_agent(0)
    for pid in processes_with("DET_TASK_TYPE=CHECKPOINT_GC", c.path("cache")) if victim == "task" else ():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    row.fault(f"{victim} dies while the store is looked through")
    get = f"/checkpoint-stores/unknown?place={c.path('checkpoints')}"
    found = wait_until(lambda: (lambda j: j["doneAt"] and j)(c.api_patiently("GET", get)), 120, "the list")
    return {k["uuid"]: k for k in found["checkpoints"]}


def run_round(row, c, reference):
    exp, trial, saved = begin(c)
    before = uuids(c, trial)
    later = [p for p in go_on(c, exp, trial) if p["uuid"] not in before]
    c.stop("master", signal.SIGTERM)
    restore(c, saved)
    row.fault("restored from an older dump")
    new_life(c)
    c.start_master()
    c.wait_agents(1)
    row.check(uuids(c, trial) == before, "the restored database knows other checkpoints than when it was dumped")
    found = look(row, c)
    row.check({p["uuid"] for p in later} <= found.keys(), f"not all that were left behind are listed: {found}")
    row.check(not found.keys() & before, "a checkpoint that the database knows is listed")
    row.check({k["trialId"] for k in found.values()} == {trial}, f"listed of other trials: {found}")
    newest, other = later[-1]["uuid"], later[0]["uuid"]
    refused = c.det("checkpoint", "adopt", newest, check=False)
    row.check(refused.returncode == 1 and "kill its experiment first" in refused.stderr, f"a live trial was given one: {refused.stderr}")
    c.api_patiently("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    c.det("checkpoint", "adopt", newest)
    c.det("checkpoint", "discard", "--yes", other)
    wait_until(lambda: os.path.isdir(c.path("checkpoints", f".{other}.gone")), 90, "the discarded one to be put aside")
    c.api_patiently("POST", "/experiments/continue", {"id": exp, "overrideConfig": json.dumps({})})
    c.wait(exp, seconds=200)
    steps = later[-1]["metadata"]["steps_completed"]
    first = c.sql(f"SELECT min(steps) FROM metrics WHERE trial_id = {trial} AND NOT archived AND run_id = (SELECT max(run_id) FROM metrics "
                  f"WHERE trial_id = {trial})")
    row.check(int(first) > steps, f"it trained from {first} on, not from the adopted checkpoint's {steps}")
    row.check(final_state(c, trial) == reference, "another end than the undisturbed run's")


def main():
    row = Row(29, __doc__, rounds=1, rounds_all=6)
    for n in row.numbers():
        with Cluster(agents=1, slots=1) as c:
            exp = paced.create(c, yaml(), 0)
            c.wait(exp, seconds=200)
            row.attempt(n, run_round, row, c, final_state(c, c.trials(exp)[0]["id"]))
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
