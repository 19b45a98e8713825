#!/usr/bin/env python3
"""The directories of examples/python, without a cluster.

usage: test_python_examples.py NAME        one batch of everything; with DET_TEST_LONG also a training to its goal
       test_python_examples.py listed NAME...   that these are the directories
"""
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Callable, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, TOP  # noqa: E402
from harness import Scratch  # noqa: E402
from ports import free_port  # noqa: E402
from table import made, mnist, of_text  # noqa: E402
from test_examples import LINES_MAX  # noqa: E402

PYTHON = "/usr/bin/python3"
LOCAL = [PYTHON, "-m", "determined.exec.local"]


@dataclass
class Example:
    command: list  # which trains to the goal ...
    quick: list  # ... and its further arguments for one batch of everything
    metric: str
    goal: float  # which tests/run --long must see reached ...
    larger: bool = True  # ... or undercut
    ranks: int = 1
    threads: int = 2  # of each rank: small layers are quicker with one
    minutes: int = 6
    data: Optional[Callable] = None  # as in table.py
    alone: bool = False  # runs without them too


def trial(name, *sets):
    return [*LOCAL, "model_def:" + name, "--config", "const.yaml", *(word for s in sets for word in ("--set", s))]


TEST = ["--test-mode"]
EXAMPLES = {
    "cifar10": Example(trial("CifarTrial", "hyperparameters.global_batch_size=32", "hyperparameters.epochs=6", "searcher.max_length={epochs: 6}"),
                       TEST, "accuracy", 0.8, data=made("cifar10", 100)),
    "core_api": Example([PYTHON, "train.py"], ["--batches", "100"], "validation_loss", 0.01, larger=False),
    "custom_reducers": Example(trial("SpiralsTrial"), TEST, "f1_mean", 0.95),
    "data_parallel": Example(trial("ParallelTrial"), TEST, "accuracy", 0.95, ranks=2, threads=1),
    "first": Example(trial("SineTrial"), TEST, "validation_loss", 0.01, larger=False),
    "gan": Example(trial("GanTrial"), TEST, "mean_image_error", 0.05, larger=False, minutes=15, data=mnist, alone=True),
    "mnist": Example(trial("MNistTrial"), TEST, "accuracy", 0.97, data=mnist, alone=True),
    "trainer": Example([PYTHON, "train.py"], TEST, "accuracy", 0.95),
    "word_language_model": Example(trial("WordModelTrial"), TEST, "validation_loss", 5.4, larger=False, minutes=15, threads=1, data=of_text("word_language_model")),
}


def environment(s, x, rank, ports):
    env = s.env(PYTHONPATH=os.path.join(BIN, "..", "lib", "det", "python"), PYTHONDONTWRITEBYTECODE="1", XDG_DATA_HOME=s.dir,
                OMP_NUM_THREADS=str(x.threads))
    if x.ranks > 1:  # as torchrun sets them
        env.update(RANK=str(rank), WORLD_SIZE=str(x.ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(x.ranks), GROUP_RANK="0", GROUP_WORLD_SIZE="1",
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=ports[0], INTER_TRAIN_PROCESS_COMM_PORT_1=ports[1], INTER_TRAIN_PROCESS_COMM_PORT_2=ports[2])
    return env


def run(s, name, x, args, seconds):
    """What rank 0 said, reports and log."""
    ports = [str(free_port()) for _ in range(3)]
    processes = [subprocess.Popen([*x.command, *args], cwd=s.dir + "/" + name, env=environment(s, x, rank, ports), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(x.ranks)]
    try:
        texts = [p.communicate(timeout=seconds)[0] for p in processes]
    finally:
        for p in processes:
            p.kill()
    assert [p.returncode for p in processes] == [0] * x.ranks, (name, texts)
    return texts[0]


def values(text, metric):
    """Of every validation, as exec.local and the log of a local run say them."""
    number = rf"['\s]{metric}(?:'?:| )\s*([-+.\de]+)"
    return [float(v) for line in text.splitlines() if "validation" in line for v in re.findall(number, line)]


def presentable(where):
    names = os.listdir(where)
    assert "README.md" in names and "const.yaml" in names, names
    for name in names:
        if name.endswith((".py", ".yaml", ".md")):
            lines = open(os.path.join(where, name)).read().count("\n")
            assert lines <= LINES_MAX, (where, name, lines)


def test(name):
    x, source = EXAMPLES[name], f"{TOP}/examples/python/{name}"
    presentable(source)
    with Scratch() as s:
        shutil.copytree(source, s.dir + "/" + name)
        data = x.data(s.dir) if x.data else []
        if data is None and not x.alone:
            print("its data are not here: skipped")
            return 77
        sets = [word for d in data or [] for word in ("--set", d)]
        aside = ["--tensorboard-dir", s.dir + "/tb"] if "-m" in x.command else []
        for way in [sets, []] if sets and x.alone else [sets]:
            text = run(s, name, x, [*way, *aside, *x.quick], 300)
            assert len(values(text, x.metric)) == 1 and len(os.listdir(s.dir + "/determined")) == 1, text
            shutil.rmtree(s.dir + "/determined")
        if os.environ.get("DET_TEST_LONG") and data is not None:
            to_goal(s, name, x, [*sets, *aside])
        runs = {"runs"} if "-m" not in x.command else set()
        assert set(os.listdir(s.dir + "/" + name)) - runs == set(os.listdir(source)), "the example's directory stays as it was"
    return 0


def to_goal(s, name, x, args):
    found = values(run(s, name, x, args, 60 * x.minutes), x.metric)
    best = max(found) if x.larger else min(found)
    print(f"{name}: best {x.metric} {best}, wanted {x.goal}")
    assert best >= x.goal if x.larger else best <= x.goal, found


def listed(names):
    """No example without a test, no test without an example."""
    assert sorted(names) == sorted(EXAMPLES) == sorted(d for d in os.listdir(TOP + "/examples/python") if not d.endswith(".md")), names
    return 0


def main():
    if sys.argv[1] == "listed":
        return listed(sys.argv[2:])
    look = [PYTHON, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"]
    if os.environ.get("DET_SANITIZED") or subprocess.run(look).returncode != 0:
        print("skipped: no PyTorch, or none that bears sanitizers")
        return 77
    return test(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
