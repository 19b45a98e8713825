#!/usr/bin/env python3
"""What people train with, on a cluster: Hugging Face's Trainer and Lightning (stand-ins of both: tests/python/stand_ins),
batch processing, custom searches, docs/guides. usage: test_python_layers.py [NAME...]   (functions test_NAME below)"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import SLOWER, TOP, Cluster, wait_until  # noqa: E402

PYTHON = "/usr/bin/python3"


def config(script, metric, max_length, slots=1, **more):
    launcher = [PYTHON, "-m", "determined.launch.torch_distributed"] if slots > 1 else []
    return json.dumps({"name": script, "entrypoint": [*launcher, PYTHON, script], "resources": {"slots_per_trial": slots},
                       "max_restarts": 0, "searcher": {"name": "single", "metric": metric, "max_length": max_length}, **more})


def checkpoints(c, trial):
    """What is stored: by steps, the paths."""
    found = c.api("GET", f"/trials/{trial}/checkpoints")["checkpoints"]
    return {p["metadata"]["steps_completed"]: p for p in found if p["state"] == "STATE_COMPLETED"}


def rows(c, trial, group="training"):
    return [(steps, next(v for k, v in said.items() if k in ("avg_metrics", "validation_metrics"))) for steps, said in c.metrics(trial, group)]


def test_hf(c, model):
    """Paused at step 3 and resumed there, up to the searcher's length: evaluated, saved and reported at 7."""
    keep = {"type": "shared_fs", "host_path": c.path("checkpoints"), "save_trial_latest": 9}
    exp = c.create(config("hf.py", "eval_loss", {"batches": 7}, checkpoint_storage=keep), model)
    trial = wait_until(lambda: c.trials(exp), 60, "a trial")[0]["id"]
    wait_until(lambda: c.metrics(trial), 60, "the report of step 2")
    c.api("POST", f"/experiments/{exp}/pause")
    wait_until(lambda: not c.processes(exp) and 3 in checkpoints(c, trial), 60, "the end of the paused trial")
    c.api("POST", f"/experiments/{exp}/activate")
    c.wait(exp)
    assert [steps for steps, _ in rows(c, trial)] == [2, 4, 6, 7], rows(c, trial)
    validations = rows(c, trial, "validation")
    assert [steps for steps, _ in validations] == [7] and abs(validations[0][1]["eval_loss"] - 1 / 7) < 1e-9, validations
    assert set(checkpoints(c, trial)) == {3, 7} and "checkpoint-7/trainer_state.json" in checkpoints(c, trial)[7]["resources"]
    assert "Latest checkpoint downloaded to out/checkpoint-3." in c.logs(trial), c.logs(trial)
    assert c.api("GET", f"/trials/{trial}")["trial"]["restarts"] == 0


def test_lit(c, model):
    exp = c.create(config("lit.py", "val_loss", {"epochs": 2}), model)
    c.wait(exp)
    trial = c.trials(exp)[0]["id"]
    training = rows(c, trial)
    assert [steps for steps, _ in training] == [0, 1, 2, 3] and training[1][1] == {"loss": 2, "epoch": 0}, training
    assert rows(c, trial, "validation") == [(1, {"val_loss": 1, "epoch": 0}), (3, {"val_loss": 1, "epoch": 1})], rows(c, trial, "validation")
    assert f"see http://127.0.0.1:{c.port}/det/experiments/{exp}" in c.logs(trial), c.logs(trial)


def test_batch(c, model):
    """Two ranks: 3 and 2 batches of 5, a checkpoint after two and after three, the sum over both."""
    exp = c.create(config("batch.py", "sum", {"batches": 3}, slots=2), model)
    c.wait(exp)
    trial = c.trials(exp)[0]["id"]
    files = {path.split("/")[-2] + "/" + os.path.basename(path): json.load(open(path)) for path in glob.glob(c.path("checkpoints", "*", "rank_*", "*.json"))}
    assert files == {"rank_0/0.json": [0, 1], "rank_1/0.json": [2, 3], "rank_0/1.json": [4, 5], "rank_1/1.json": [6, 7], "rank_0/2.json": [8, 9]}, files
    assert rows(c, trial, "validation") == [(3, {"sum": sum(i * i for i in range(10))})], c.metrics(trial, "validation")
    log = c.logs(trial)
    assert "finished on rank 0" in log and "finished on rank 1" in log and log.count("Completed steps:  2 and checkpointing") == 2, log
    assert c.api("GET", f"/trials/{trial}")["trial"]["state"] == "STATE_COMPLETED"


def of_guide(model, name):
    """A guide's configuration, as it says itself."""
    text = open(os.path.join(model, name)).read()
    said = re.search(r'^searcher: [^"]*', text, re.M).group()
    return f"{said.replace('python3', PYTHON)}max_restarts: 0\n"


def test_guide(c, model):
    """Those that need a cluster, or a configuration; tests/python/test_guides.py runs the others, and the notebook one of them."""
    for name, metric in (("lightning_metrics.py", "val_loss"), ("torch_metrics.py", "f1")):
        exp = c.create(of_guide(model, name), model)
        c.wait(exp)
        assert metric in rows(c, c.trials(exp)[0]["id"], "validation")[-1][1], exp


def user(c):
    return {**os.environ, "DET_MASTER": f"http://127.0.0.1:{c.port}", "XDG_CONFIG_HOME": c.path("config"), "DET_USER": "admin",
            "DET_PASS": open(c.path("admin.password")).read().strip(), "PYTHONPATH": os.path.join(os.environ["DET_BIN"], "../lib/det/python")}


def test_notebook(c, model):
    """The cells of docs/guides/submit.ipynb in their order, and what the last of them shows."""
    cells = ["".join(cell["source"]) for cell in json.load(open(os.path.join(model, "submit.ipynb")))["cells"] if cell["cell_type"] == "code"]
    text = "\n".join(cells).replace("python3 plain", PYTHON + " plain") + "\nprint(sorted(curves), best.hparams)"
    done = subprocess.run([PYTHON, "-c", text], cwd=model, env=user(c), capture_output=True, text=True, timeout=200 * SLOWER)
    assert done.returncode == 0 and done.stdout.endswith("[0.01, 0.1] {'lr': 0.1}\n"), (done.stdout, done.stderr)


ELSEWHERE = """
import sys
from determined.experimental import core_v2
core_v2.init(defaults=core_v2.DefaultConfig(name="elsewhere"), checkpoint_storage=sys.argv[1])
core_v2.train.report_training_metrics(2, {"loss": 0.5})
with core_v2.checkpoint.store_path({"steps_completed": 2}) as (path, uuid):
    (path / "state").write_text("two")
print(core_v2.info.trial.trial_id)
sys.exit(3)
"""


def test_client(c, model):
    """`det` of the client's wheel, where no other is: an experiment from its submission to its checkpoint; and a training elsewhere."""
    wheel = subprocess.run([PYTHON, os.path.join(TOP, "deploy/client-wheel"), c.path("wheel")], capture_output=True, text=True, check=True).stdout.strip()
    env = {**user(c), "PYTHONPATH": wheel, "PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": c.path("config-of-client")}

    def det(*words, status=0):
        done = subprocess.run([PYTHON, "-m", "determined.cli", *words], env=env, cwd=c.path(""), capture_output=True, text=True, timeout=200 * SLOWER)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    det("user", "login", "admin")
    del env["DET_PASS"], env["DET_USER"]
    assert det("user", "whoami") == "admin\n"
    with open(c.path("plain.yaml"), "w") as f:
        f.write(of_guide(model, "plain_pytorch.py"))
    said = det("e", "create", c.path("plain.yaml"), model, "--follow")
    exp = int(said.split()[2])
    assert f"Experiment {exp} is COMPLETED" in said, said
    assert [line.split()[0] for line in det("e", "list").splitlines()][-1] == str(exp)
    trial = det("e", "list-trials", str(exp)).splitlines()[1].split()[0]
    assert "state: COMPLETED" in det("t", "describe", trial) and det("t", "logs", trial, "--tail", "1").count("\n") == 1
    uuid = det("e", "list-checkpoints", str(exp)).splitlines()[1].split()[-1]
    assert os.path.exists(os.path.join(c.path(""), det("c", "download", uuid, "-o", "here").strip(), "state.pth"))
    assert "det: " in det("e", "describe", "999", status=1)
    done = subprocess.run([PYTHON, "-c", ELSEWHERE, c.path("elsewhere")], env=env, capture_output=True, text=True, timeout=60 * SLOWER)
    assert done.returncode == 3, (done.stdout, done.stderr)
    far = int(done.stdout)
    assert rows(c, far) == [(2, {"loss": 0.5})] and set(checkpoints(c, far)) == {2}
    assert c.api("GET", f"/trials/{far}")["trial"]["state"] == "STATE_ERROR"
    det("e", "archive", str(exp))
    assert det("e", "list").count("\n") == len(c.api("GET", "/experiments")["experiments"])  # a title more, and one archived


CUSTOM = {"name": "custom", "metric": "loss", "unit": "batches"}


def searched(c, exp):
    """Three trials, each validated at 2 and at 4, and every event answered once, though the searcher was killed."""
    c.wait(exp)
    assert [t["totalBatchesProcessed"] for t in c.trials(exp)] == [4, 4, 4], c.trials(exp)
    assert c.experiment(exp)["progress"] == 1.0, c.experiment(exp)
    assert sorted(t["hparams"]["x"] for t in c.trials(exp)) == [1, 2, 3]


def test_local_search(c, model):
    """Killed once what it answers is kept, and before that is posted; started again, it goes on."""
    about = {"name": "searched.py", "entrypoint": [PYTHON, "searched.py"], "searcher": CUSTOM, "max_restarts": 0}
    command = [PYTHON, os.path.join(model, "search.py"), json.dumps(about), c.path("state"), model]
    done = subprocess.run(command, env=user(c), capture_output=True, text=True, timeout=200 * SLOWER)
    assert done.returncode == -9, (done.stdout, done.stderr)
    done = subprocess.run(command, env=user(c), capture_output=True, text=True, timeout=200 * SLOWER)
    assert done.returncode == 0 and done.stderr.count("Resubmitting operations for event.id=") == 1, (done.stdout, done.stderr)
    assert len(os.listdir(glob.glob(c.path("state", "exp_*"))[0])) == 2, "the last event's state, and which it is"
    searched(c, int(done.stdout.split()[-1]))


def test_remote_search(c, model):
    """As an experiment of its own, whose process dies: its restart goes on from its checkpoint."""
    about = {"name": "searched.py", "entrypoint": [PYTHON, "searched.py"], "searcher": CUSTOM, "max_restarts": 0}
    data = {"searched": about, "password_file": c.path("admin.password")}
    exp = c.create(config("remote.py", "none", {"batches": 1}, slots=0, data=data, max_restarts=1), model)
    c.wait(exp)
    trial = c.trials(exp)[0]["id"]
    log = c.logs(trial)
    assert log.count("Created experiment") == 1 and log.count("Resubmitting operations for event.id=") == 1, log
    assert c.api("GET", f"/trials/{trial}")["trial"]["restarts"] == 1
    searched(c, int(log.split("Created experiment ")[1].split()[0]))


def main():
    if os.environ.get("DET_SANITIZED") or subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        print("skipped: no PyTorch, or none that bears sanitizers")
        return 77
    names = sys.argv[1:] or [n[5:] for n in globals() if n.startswith("test_")]
    with Cluster(slots=2) as c:
        model = c.path("model")
        for folder in ("tests/integration/python_layers", "tests/python/stand_ins", "docs/guides"):
            shutil.copytree(os.path.join(TOP, folder), model, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        for name in names:
            globals()["test_" + name](c, model)
            print("ok", name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
