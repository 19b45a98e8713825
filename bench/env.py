#!/usr/bin/env python3
"""env: what `environment.python` with a list of requirements costs a trial whose environment is cached.

usage: bench/run env
From `det experiment create` (a new process) to the first line of the trial's own code, which has imported torch and what
the list brings; the same without a list in turn. `warm_start_ms` with the environment in the agent's cache, `cold_start_ms`
the first, for which it is made: by pip, from an index on loopback. Medians of DET_BENCH_ROUNDS (9).
"""
import json
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
import wheels  # noqa: E402
from cluster import Cluster  # noqa: E402
from size import emit  # noqa: E402
from start import finish, first_batch_ms  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "9"))
INTERPRETER = "/usr/bin/python3"  # named on both sides: the search for one on PATH may meet a shim of 100 ms
PROGRAM = """\
import os
import time

import torch
if os.environ["BENCH_LIST"]:
    import benched
with open(os.environ["BENCH_FILE"] + ".new", "w") as f:
    f.write(str(time.time_ns()))
os.rename(f.name, os.environ["BENCH_FILE"])
"""


def config(c, index, packages):
    python = {"interpreter": INTERPRETER}
    if packages:
        python.update(requirements=packages, index_url=index.url, system_site_packages=True)
    return {"name": "env", "entrypoint": ["python3", "train.py"], "max_restarts": 0, "hyperparameters": {},
            "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
            "environment": {"python": python, "environment_variables": ["BENCH_FILE=" + c.path("first"), "BENCH_LIST=" + "y" * len(packages)]}}


def start_ms(c, index, context, packages):
    conf = c.path("env.yaml")
    with open(conf, "w") as f:
        json.dump(config(c, index, packages), f)
    ms, created = first_batch_ms(lambda: c.det("experiment", "create", conf, context), c.path("first"))
    finish(c, created)
    return ms


def main():
    index = wheels.Index(wheels.wheel("benched", "1", {"benched.py": ""}))
    with Cluster(agents=1, slots=1) as c, tempfile.TemporaryDirectory() as context:
        with open(os.path.join(context, "train.py"), "w") as f:
            f.write(PROGRAM)
        start_ms(c, index, context, [])  # which reads torch from the disk
        cold = start_ms(c, index, context, ["benched==1"])
        found = {with_list: [] for with_list in (True, False)}
        for _ in range(ROUNDS):
            for with_list, ms in found.items():
                ms.append(start_ms(c, index, context, ["benched==1"] if with_list else []))
    for with_list, ms in found.items():
        print(f"{'with' if with_list else 'without'} a list: {[round(t) for t in ms]}", file=sys.stderr)
    value, peer = (round(statistics.median(found[with_list]), 1) for with_list in (True, False))
    print(json.dumps({"bench": "env", "figure": "warm_start_ms", "value": value, "unit": "ms", "peer": "without a list", "peer_value": peer,
                      "ratio": round(peer / value, 2)}), flush=True)
    emit("cold_start_ms", round(cold), "ms", "env")


if __name__ == "__main__":
    main()
