"""checkpoint: what a save of 100 MiB of state costs a trial of a cluster that goes on training meanwhile.

usage: bench/run checkpoint [DIR]     DIR: on the disk to be measured (default: the build directory)
BENCH_MIB: so much state. BENCH_DEVICE=cuda: on a slot that is a GPU, whose work is waited for before and after; no memcpy then.
stall: what a save adds between two batches, beside one memcpy of that size. write: from the end of the batch to the commit of
the checkpoint's row in PostgreSQL (pg_xact_commit_timestamp), when it counts for everybody, beside dd conv=fsync of that size
between two saves. Means of DET_BENCH_ROUNDS (10) saves, the first among them. peak_memory: the process's resident set at its
largest, without the buffer of the bench's own memcpy. The trial is bench/checkpoint/model_def.c; each save on standard error.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from cluster import Cluster, wait_until  # noqa: E402

MIB = int(os.environ.get("BENCH_MIB", "100"))
SLOTS = "auto" if os.environ.get("BENCH_DEVICE") == "cuda" else 2
ROUNDS, EVERY, BATCH_MS = int(os.environ.get("DET_BENCH_ROUNDS", "10")), 600, 5
CONFIG = {
    "name": "checkpoint", "entrypoint": "model_def:SaverTrial", "max_restarts": 0, "scheduling_unit": EVERY,
    "hyperparameters": {"global_batch_size": 8, "mib": MIB, "every": EVERY, "batch_ms": BATCH_MS},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": (ROUNDS + 1) * EVERY}},
    "min_checkpoint_period": {"batches": EVERY}, "checkpoint_storage": {"save_trial_latest": ROUNDS + 2}}
ROWS = "SELECT steps, extract(epoch FROM pg_xact_commit_timestamp(xmin)) FROM checkpoints WHERE state = 'COMPLETED' ORDER BY steps"


def time_dd(where):
    path = os.path.join(where, "dd")
    begun = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", "of=" + path, "bs=1M", f"count={MIB}", "conv=fsync", "status=none"], check=True)
    took = time.monotonic() - begun
    os.unlink(path)
    return took


def committed(c):
    return {int(steps): float(at) for steps, at in (line.split("|") for line in c.sql(ROWS).splitlines())}


def run(c, where):
    """The rows of SAVE lines, [stall, memcpy, peak_kib, ended_us] by steps; commits by steps; seconds of dd."""
    commits, dd = {}, []
    exp = c.create(json.dumps(CONFIG), os.path.join(HERE, "checkpoint"))
    for i in range(1, ROUNDS + 1):
        commits = wait_until(lambda: len(got := committed(c)) >= i and got, 120, f"checkpoint {i}")
        dd.append(time_dd(where))
        assert len(committed(c)) == i, "dd took longer than it is from one save to the next"
    c.wait(exp)
    told = re.findall(r"SAVE (\d+) (\S+) (\S+) (\d+) (\d+)", c.logs(c.trials(exp)[0]["id"]))
    return {int(s): [float(x) for x in rest] for s, *rest in told}, commits, dd


def tell(figure, value, unit, peer=None, peer_value=None, ratio=None):
    print(json.dumps({"bench": "checkpoint", "figure": figure, "value": value, "unit": unit, "peer": peer,
                      "peer_value": peer_value, "ratio": ratio}))


def main():
    where = tempfile.mkdtemp(prefix="bench-checkpoint-", dir=sys.argv[1] if len(sys.argv) > 1 else os.environ["DET_BUILD"])
    try:
        os.chmod(where, 0o755)
        with Cluster(slots=SLOTS, keep=where, pg_args=["track_commit_timestamp=on"]) as c:
            saves, commits, dd = run(c, where)
    finally:
        shutil.rmtree(where)
    assert set(saves) >= set(commits), (sorted(saves), sorted(commits))
    writes = [commits[s] - saves[s][3] / 1e6 for s in sorted(commits)]
    for steps, write, d in zip(sorted(commits), writes, dd):
        stall, copy, kib, _ = saves[steps]
        print(f"after {steps} batches: stall {stall * 1e3:.1f} ms, memcpy {copy * 1e3:.1f} ms, row durable after {write:.3f} s, "
              f"dd {d:.3f} s, peak {kib / 1024:.0f} MiB", file=sys.stderr)
    stall, copy = (statistics.mean(saves[s][i] for s in commits) for i in (0, 1))
    write, d, megabytes = statistics.mean(writes), statistics.mean(dd), MIB * 1.048576
    tell("stall", stall * 1e3, "ms", *(("memcpy", copy * 1e3, copy / stall) if copy else ()))
    tell("write", megabytes / write, "MB/s", "dd conv=fsync", megabytes / d, d / write)
    tell("peak_memory", (max(saves[s][2] for s in commits) / 1024 - MIB) * 1.048576, "MB")


if __name__ == "__main__":
    main()
