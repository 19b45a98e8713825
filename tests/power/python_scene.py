#!/usr/bin/python3
"""python_scene.py DIR: checkpoints of the Core API in DIR/a/store; check() looks at what was left of them."""
import os
import sys
import tempfile

from determined import core
from determined.core._storage import DirectoryStorage


def context(top):
    return core.DummyCheckpointContext(core.DummyDistributedContext(), DirectoryStorage(os.path.join(top, "a", "store")))


def write(place, name):
    os.makedirs(os.path.join(place, "code"), exist_ok=True)
    for file in ("weights", "code/model.py"):
        with open(os.path.join(place, file), "w") as f:
            f.write(f"{name} of {file}")


def run(top):
    checkpoints = context(top)
    checkpoints._report = lambda uuid, resources, hashes, metadata: os.access(f"/.power-mark/row {uuid}", os.F_OK)
    for shard in (False, True):
        with checkpoints.store_path({"steps_completed": 1}, shard=shard) as (place, uuid):
            write(place, uuid)
        with tempfile.TemporaryDirectory() as place:
            write(place, "upload")
            checkpoints.upload(place, {"steps_completed": 2}, shard=shard)


def check(top, marks):
    """What does not hold, or None."""
    store, checkpoints = os.path.join(top, "a", "store"), context(top)
    there = [name for name in (os.listdir(store) if os.path.isdir(store) else []) if not name.startswith(".")]
    for mark in marks:
        if mark.split()[1] not in there:
            return f"a checkpoint whose row is durable is not there: {mark}"
    for uuid in there:
        try:
            if checkpoints.get_metadata(uuid).get("steps_completed") not in (1, 2):
                return f"a published checkpoint is not whole: {uuid} has no metadata"
            with checkpoints.restore_path(uuid) as path:
                if sorted(os.listdir(path)) != ["code", "metadata.json", "weights"]:
                    return f"a published checkpoint is not whole: {uuid} lacks files"
        except (OSError, RuntimeError) as e:
            return f"a published checkpoint is not whole: {e}"
    return None


if __name__ == "__main__":
    run(sys.argv[1])
