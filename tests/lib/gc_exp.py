"""An experiment with six checkpoints, and what became of them: shared by the tests of collection."""
import hashlib
import json
import os

from cluster import wait_until


def config(batches=120, **over):
    """Validates and checkpoints every 20 batches."""
    c = {"name": "gc", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
         "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
         "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": batches}},
         "min_validation_period": {"batches": 20}, "min_checkpoint_period": {"batches": 20},
         "scheduling_unit": 20, "reproducibility": {"experiment_seed": 7}}
    c.update(over)
    return json.dumps(c)


def keep(exp=0, best=0, latest=1):
    return {"checkpoint_storage": {"save_experiment_best": exp, "save_trial_best": best, "save_trial_latest": latest}}


def run(c, **over):
    exp = c.create(config(**over), "examples/digits")
    c.wait(exp)
    return exp


def checkpoints(c, exp):
    """By steps: {steps: (uuid, state)}."""
    found = c.api_patiently("GET", f"/experiments/{exp}/checkpoints")["checkpoints"]
    return {k["metadata"]["steps_completed"]: (k["uuid"], k["state"].replace("STATE_", "")) for k in found}


def settled(c, exp):
    """Waits until nothing is about to be deleted; {steps: (uuid, state)}."""
    wait_until(lambda: c.sql(f"SELECT collected_at >= end_time AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE gc_step = 'remove') "
                             f"FROM experiments WHERE id = {exp}") == "t", 60, "the collection")
    return checkpoints(c, exp)


def there(c, key):
    return os.path.exists(c.path("checkpoints", key, "state_dict.pth"))


def aside(c, key):
    return os.path.exists(c.path("checkpoints", f".{key}.gone", "state_dict.pth"))


def digest(c, key):
    """sha256 over the names and bytes of a checkpoint's files."""
    top, h = c.path("checkpoints", key), hashlib.sha256()
    for root, dirs, names in sorted(os.walk(top)):
        for n in sorted(names):
            h.update(os.path.relpath(os.path.join(root, n), top).encode())
            with open(os.path.join(root, n), "rb") as f:
                h.update(f.read())
    return h.hexdigest()
