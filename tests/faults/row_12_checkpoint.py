#!/usr/bin/env python3
"""Row 12: a checkpoint is damaged while its trial is paused: bit flip, truncation, missing file, empty or missing
directory, another trial's files. It must be found by its hashes when the trial goes on, the one before be taken instead,
the log say so, and the end be bitwise that of a run that was never disturbed.
"""
import hashlib
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402

CONFIG = {"name": "damage", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
          "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
          "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 3000}},
          "min_checkpoint_period": {"batches": 200}, "scheduling_unit": 100, "reproducibility": {"experiment_seed": 7}}
PAUSED_AT = 450  # where it waits for its pause: fast trials are over before it


def checkpoints(c, trial):
    """Of the trial, oldest first."""
    found = c.api_patiently("GET", f"/trials/{trial}/checkpoints")["checkpoints"]
    return sorted((p for p in found if p["state"] == "STATE_COMPLETED"), key=lambda p: p["metadata"]["steps_completed"])


def final_state(c, trial):
    with open(c.path("checkpoints", checkpoints(c, trial)[-1]["uuid"], "state_dict.pth"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def bit_flip(path, rng, other):
    with open(os.path.join(path, "state_dict.pth"), "r+b") as f:
        at = rng.randrange(os.fstat(f.fileno()).st_size)
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << rng.randrange(8)]))


def truncation(path, rng, other):
    name = os.path.join(path, "state_dict.pth")
    os.truncate(name, rng.randrange(os.path.getsize(name)))


def missing_file(path, rng, other):
    os.unlink(os.path.join(path, "state_dict.pth"))


def empty_directory(path, rng, other):
    shutil.rmtree(path)
    os.mkdir(path)


def missing_directory(path, rng, other):
    shutil.rmtree(path)


def another_trial(path, rng, other):
    shutil.rmtree(path)
    shutil.copytree(other, path)


DAMAGES = (bit_flip, truncation, missing_file, empty_directory, missing_directory, another_trial)


def run_round(row, c, damage, reference, other):
    holds = paced.Holds(c)
    holds.hold(PAUSED_AT)
    exp = paced.create(c, CONFIG, 0, holds)
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    # Not for the second checkpoint's row: the loop tells of it after a batch, when the disk has it. The pause waits for that.
    wait_until(lambda: c.trials(exp)[0]["totalBatchesProcessed"] >= PAUSED_AT - 50, 120, "the batches before it")
    c.api_patiently("POST", f"/experiments/{exp}/pause")
    holds.release(PAUSED_AT)
    wait_until(c.slots_free, 60, "the paused trial to leave its slot")
    if not row.check(c.experiment(exp)["state"] == "STATE_PAUSED", "it ended before it could be paused"):
        return
    before, latest = checkpoints(c, trial)[-2:]
    damage(c.path("checkpoints", latest["uuid"]), row.rng, other)
    row.fault(damage.__name__)
    c.api_patiently("POST", f"/experiments/{exp}/activate")
    c.wait(exp, seconds=200)
    log = c.logs(trial)
    row.check(f"checkpoint {latest['uuid']} is damaged" in log and f"going on from {before['uuid']}" in log,
              f"{damage.__name__}: the log does not tell of it: {log[-1500:]}")
    row.check(final_state(c, trial) == reference, f"{damage.__name__}: another end than the undisturbed run's")
    row.check(c.trials(exp)[0]["restarts"] == 0, "a restart was counted")


def main():
    row = Row(12, __doc__, rounds=len(DAMAGES), rounds_all=5 * len(DAMAGES))
    with Cluster(agents=1, slots=1) as c:
        ends = []
        for seed in (7, 8):
            exp = paced.create(c, {**CONFIG, "reproducibility": {"experiment_seed": seed}}, 0)
            c.wait(exp, seconds=200)
            ends.append(c.trials(exp)[0]["id"])
        other = c.path("checkpoints", checkpoints(c, ends[1])[-1]["uuid"])
        reference = final_state(c, ends[0])
        for n in row.numbers():
            row.attempt(n, run_round, row, c, DAMAGES[n % len(DAMAGES)], reference, other)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())
