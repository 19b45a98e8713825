#!/usr/bin/env python3
"""A trial's TensorBoard files in the checkpoint store: every step once, through pauses and a killed rank."""
import glob
import json
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tfevents  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402

LENGTH = 6000
CONFIG = json.dumps({
    "name": "tensorboard", "entrypoint": "model_def:DigitsTrial", "max_restarts": 1,
    "hyperparameters": {"global_batch_size": 4, "learning_rate": 0.05, "dropout": 0.1},
    "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": LENGTH}},
    "scheduling_unit": 50, "min_checkpoint_period": {"batches": 1000}, "min_validation_period": {"batches": 3000},
    "reproducibility": {"experiment_seed": 7}})


def kept(c, exp, trial):
    found = glob.glob(c.path("checkpoints", "*", "tensorboard", "experiment", str(exp), "trial", str(trial)))
    assert len(found) <= 1, found
    return found[0] if found else None


def name(pid):
    try:
        return open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        return ""


def batches(c, exp):
    return c.trials(exp)[0]["totalBatchesProcessed"] if c.trials(exp) else 0


def main():
    with tempfile.TemporaryDirectory() as tmp, Cluster(env={"TMPDIR": tmp}) as c:
        os.chmod(tmp, 0o777)
        exp = c.create(CONFIG, "examples/digits")
        wait_until(lambda: batches(c, exp) > 1100, 120, "a checkpoint")
        trial = c.trials(exp)[0]["id"]
        c.api("POST", f"/experiments/{exp}/pause")
        wait_until(c.slots_free, 30, "free slots")
        assert tfevents.scalars(kept(c, exp, trial))["Determined/loss"][-1][0] >= 1100
        c.api("POST", f"/experiments/{exp}/activate")
        wait_until(lambda: batches(c, exp) > 2200, 120, "batches past the next checkpoint")
        ranks = [p for p in c.processes(exp) if name(p) == "det-harness"]
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        c.wait(exp)
        t = c.trials(exp)[0]
        assert ranks and t["restarts"] == 1, (ranks, t)
        values = tfevents.scalars(kept(c, exp, trial))
        assert [s for s, _ in values["Determined/loss"]] == list(range(LENGTH))
        assert [s for s, _ in values["Determined/val_accuracy"]] == [3000, LENGTH]
        assert [s for s, _ in values["Determined/validation_loss"]] == [3000, LENGTH]
        reported = {int(steps): m["validation_metrics"]["accuracy"] if "validation_metrics" in m else m["avg_metrics"]["accuracy"]
                    for steps, m in c.metrics(trial, "validation")}
        assert all(abs(v - reported[s]) < 1e-6 for s, v in values["Determined/val_accuracy"]), reported
        wait_until(lambda: not glob.glob(tmp + "/tensorboard-*"), 10, "nothing left on the host")
    print("ok")


if __name__ == "__main__":
    main()
