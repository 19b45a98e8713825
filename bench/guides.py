#!/usr/bin/env python3
"""guides: seconds from the submission of each of docs/guides to its first result that a person can look at.

usage: bench/run guides [NAME...]
From `det experiment create` (a new process; of the notebook, from its first cell) to the first report of a metric that
`GET /trials/ID/metrics` gives. What Debian does not have is a stand-in of its documented interface (tests/python/stand_ins),
so these are the cluster's, Python's and torch's seconds, not those of Hugging Face's Trainer or Lightning.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import BIN, TOP, Cluster, wait_until  # noqa: E402
from size import emit  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "3"))
PYTHON = "/usr/bin/python3"
GUIDES = os.path.join(TOP, "docs", "guides")


def newest(c):
    return max([e["id"] for e in c.api("GET", "/experiments?limit=-1")["experiments"]], default=0)


def has_result(c, before):
    """Whether an experiment that came after `before` has a report."""
    exp = newest(c)
    trials = c.trials(exp) if exp > before else []
    return any(c.metrics(t["id"], group) for t in trials for group in ("training", "validation"))


def script(c, model, name):
    """Submits it as it says itself."""
    with open(os.path.join(model, name)) as f:
        said = re.search(r'^searcher: .*?(?=""")', f.read(), re.M | re.S).group()
    conf = c.path("guide.yaml")
    with open(conf, "w") as f:
        f.write(f"{said.replace('python3', PYTHON).replace('/data/mlruns', c.path('tmp', 'mlruns'))}max_restarts: 0\n")
    c.det("experiment", "create", conf, model)


def notebook(c, model, name):
    """Its cells in a process of their own."""
    with open(os.path.join(model, name)) as f:
        cells = ["".join(cell["source"]) for cell in json.load(f)["cells"] if cell["cell_type"] == "code"]
    env = {**os.environ, **c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "XDG_CONFIG_HOME": c.path("config"), "DET_USER": "admin",
           "DET_PASS": open(c.path("admin.password")).read().strip(), "PYTHONPATH": os.path.join(BIN, "../lib/det/python")}
    text = "\n".join(cells).replace("python3 plain", PYTHON + " plain")
    subprocess.run([PYTHON, "-c", text], cwd=model, env=env, check=True, stdout=subprocess.DEVNULL)


def first_result_s(c, model, name):
    before, begun = newest(c), time.monotonic()
    submit = threading.Thread(target=notebook if name.endswith(".ipynb") else script, args=(c, model, name))
    submit.start()
    wait_until(lambda: has_result(c, before), 120, f"a report of {name}")
    took = time.monotonic() - begun
    submit.join()
    c.wait(newest(c))
    return took


def main():
    names = sys.argv[1:] or sorted(n for n in os.listdir(GUIDES) if n.endswith((".py", ".ipynb")))
    with Cluster(agents=1, slots=2) as c, tempfile.TemporaryDirectory() as d:
        model = shutil.copytree(GUIDES, os.path.join(d, "model"))
        shutil.copytree(os.path.join(TOP, "tests", "python", "stand_ins"), model, dirs_exist_ok=True)
        for name in names:
            took = [first_result_s(c, model, name) for _ in range(ROUNDS)]
            print(f"{name}: {[round(s, 2) for s in took]}", file=sys.stderr)
            emit(name.partition(".")[0] + "_s", round(statistics.median(took), 2), "s", "guides")


if __name__ == "__main__":
    main()
