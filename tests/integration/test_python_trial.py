#!/usr/bin/env python3
"""Trials in Python on a cluster. usage: test_python_trial.py [NAME... | K/N]   (functions test_NAME below; every N-th from the K-th)"""
import glob
import hashlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tfevents  # noqa: E402
from cluster import SLOWER, TOP, Cluster, wait_until  # noqa: E402

HERE = "tests/integration/python_trial"
PYTHON = "/usr/bin/python3"


def config(slots=1, batches=24, data=None, **hparams):
    return json.dumps({
        "name": "line", "entrypoint": "model_def:LineTrial", "max_restarts": 1,
        "hyperparameters": {"global_batch_size": 8, "lr": 0.05, **hparams},
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": batches}},
        "scheduling_unit": 4, "min_checkpoint_period": {"batches": 4}, "resources": {"slots_per_trial": slots},
        "data": data or {}, "reproducibility": {"experiment_seed": 7}})


def weights(c, trial):
    """A hash of the last checkpoint's tensors: of models, optimizers and the random state."""
    cps = [p for p in c.api("GET", f"/trials/{trial}/checkpoints")["checkpoints"] if p["state"] == "STATE_COMPLETED"]
    last = max(cps, key=lambda p: p["metadata"]["steps_completed"])
    import torch  # once, and only where there is something to compare
    kept, h = torch.load(c.path("checkpoints", last["uuid"], "state_dict.pth")), hashlib.sha256()

    def walk(v):
        if isinstance(v, torch.Tensor):
            h.update(v.contiguous().numpy().tobytes())
        elif isinstance(v, dict):
            for k, x in v.items():
                h.update(str(k).encode())
                walk(x)
        elif isinstance(v, (list, tuple)):
            for x in v:
                walk(x)
        else:
            h.update(repr(v).encode())

    walk(kept)
    return last, f"{list(kept)} {h.hexdigest()}"


def run(c, text, **kw):
    exp = c.create(text, HERE)
    c.wait(exp, seconds=180, **kw)
    return c.trials(exp)[0]["id"]


def tensorboard_files(c, trial):
    return glob.glob(c.path("checkpoints", "*", "tensorboard", "experiment", "*", "trial", str(trial), "*"))


def rows(c, trial):
    return c.metrics(trial), c.metrics(trial, "validation")


def test_whole():
    """A trial leaves what a trial in C leaves: metrics, logs with rank and level, a checkpoint with the contract's files."""
    with Cluster() as c:
        trial = run(c, config(profiled=20))
        t = c.api("GET", f"/trials/{trial}")["trial"]
        assert t["state"] == "STATE_COMPLETED" and t["totalBatchesProcessed"] == 24, t
        training, validation = rows(c, trial)
        assert training and validation, (training, validation)
        assert "hello from the trial 0 1" in c.logs(trial)
        cp, what = weights(c, trial)
        assert "state_dict.pth" in c.api("GET", f"/checkpoints/{cp['uuid']}")["checkpoint"]["hashes"]
        assert what.startswith("['models_state_dict', 'optimizers_state_dict', 'lr_schedulers_state_dict', 'callbacks', 'rng_state']"), what
        files = set(cp["resources"])
        assert {"state_dict.pth", "trial_state.pkl", "load_data.json", "metadata.json", "code/model_def.py"} <= files, files
        state = pickle.load(open(c.path("checkpoints", cp["uuid"], "trial_state.pkl"), "rb"))
        assert state["batches_trained"] == 24 and state["trial_id"] == trial, state
        about = json.load(open(c.path("checkpoints", cp["uuid"], "load_data.json")))
        assert about["trial_type"] == "PyTorchTrial" and about["trial_cls_spec"] == "model_def:LineTrial" and "is_trainer" not in about
        assert [os.path.basename(p) for p in tensorboard_files(c, trial) if "#0." in p and p.endswith(".pt.trace.json")], "the profiler's open window"
        wait_until(c.slots_free, 10, "slots free")


def test_pause():
    """Paused in the middle and resumed: the same bytes and the same metrics as never paused; so too after a crash."""
    with Cluster() as c:
        whole = run(c, config(batches=40))
        hold = c.path("hold")  # until it is told to pause
        open(hold, "w").close()
        exp = c.create(config(batches=40, data={"hold": hold}), HERE)
        trial = wait_until(lambda: c.trials(exp), 60, "a trial")[0]["id"]
        wait_until(lambda: len(c.metrics(trial)) > 0, 90, "the first report")
        c.api("POST", f"/experiments/{exp}/pause")
        os.unlink(hold)
        wait_until(lambda: not c.processes(exp), 60, "the end of the paused trial's processes")
        assert c.api("GET", f"/trials/{trial}")["trial"]["totalBatchesProcessed"] < 40
        c.api("POST", f"/experiments/{exp}/activate")
        c.wait(exp, seconds=180)
        assert weights(c, trial)[1] == weights(c, whole)[1]
        crashed = run(c, config(batches=40, crash_at=10, data={"dir": c.path("")}))
        assert "the crash that the test asked for" in c.logs(crashed) and "Traceback" in c.logs(crashed)
        assert weights(c, crashed)[1] == weights(c, whole)[1]


def test_between_updates():
    """Resumed after 8 batches, 3 to an update, by a loader that starts at get_initial_batch() itself: as if it had never crashed."""
    with Cluster(slots=2) as c:
        for name, options in (("aggregated", {}), ("own loader", {"own_loader": True})):
            trials = []
            for crash in ({}, {"crash_at": 10, "data": {"dir": c.path("")}}):
                text = json.loads(config(slots=2, **crash, **options))
                text["optimizations"] = {"aggregation_frequency": 3}
                trials.append(run(c, json.dumps(text)))
            os.unlink(c.path("crashed"))
            assert "the crash that the test asked for" in c.logs(trials[1])
            assert weights(c, trials[1])[1] == weights(c, trials[0])[1], name


def test_agents():
    """Two agents with two slots each, and data loaded by workers: after a crash the same bits as without one."""
    with Cluster(agents=2, slots=2) as c:
        whole, crashed = (run(c, config(slots=4, workers=2, **crash)) for crash in ({}, {"crash_at": 10, "data": {"dir": c.path("")}}))
        logs = c.logs(crashed)
        assert "hello from the trial 3 4" in logs and "the crash that the test asked for" in logs, logs
        assert (weights(c, crashed)[1], rows(c, crashed)) == (weights(c, whole)[1], rows(c, whole))


def test_warm_start():
    """From another trial, or a checkpoint: its weights, and batches counted from 0."""
    with Cluster() as c:
        source = run(c, config(batches=12))
        last = c.metrics(source, "validation")[-1][1]
        for key, value in (("source_trial_id", source), ("source_checkpoint_uuid", weights(c, source)[0]["uuid"])):
            text = {**json.loads(config(batches=8)), "perform_initial_validation": True}
            text["searcher"][key] = value
            validations = c.metrics(run(c, json.dumps(text)), "validation")
            assert validations[0] == [0, last] and validations[-1][0] == 8, (key, last, validations)


def test_forgotten():
    """fit(latest_checkpoint=None) means what it says: a restarted trial begins anew, with a warning."""
    with Cluster() as c:
        text = json.loads(config(batches=12, crash_at=10, data={"dir": c.path("")}))
        text["entrypoint"] = [PYTHON, "forgetful.py"]
        trial = run(c, json.dumps(text))
        starts = [line for line in c.logs(trial).splitlines() if "starts at" in line]
        assert len(starts) == 2 and all("starts at 0 from None" in line for line in starts), starts
        assert "the cluster has None" in starts[0] and "the cluster has None" not in starts[1], starts
        assert c.logs(trial).count("fit() was given no latest_checkpoint") == 1, c.logs(trial)


def test_slots():
    """Two slots: two ranks by torch.distributed, started for module:Class without a launcher."""
    with Cluster(slots=2) as c:
        trial = run(c, config(slots=2))
        logs = c.logs(trial)
        assert "hello from the trial 0 2" in logs and "hello from the trial 1 2" in logs, logs
        assert logs.count("2 ranks by torch.distributed") == 1, logs
        assert c.api("GET", f"/trials/{trial}")["trial"]["state"] == "STATE_COMPLETED"


def test_user():
    """Under a root agent's task user: in a mount namespace of its own, where only that user's rights hold."""
    if os.getuid() != 0:
        print("skip user: it takes root")
        return
    with Cluster(agent_args=["--task-user", "nobody"]) as c:
        text = {**json.loads(config(batches=8, look_around=True)), "data": None}
        logs = c.logs(run(c, json.dumps(text)))
        assert "looked around as nobody in " + c.path("agent-0") in logs, logs


def test_invalid():
    """InvalidHP is an outcome, not a failure: no restart, and the log says why."""
    with Cluster() as c:
        exp = c.create(config(lr=-1.0), HERE)
        c.wait(exp, seconds=120)
        t = c.trials(exp)[0]
        assert t["restarts"] == 0, t
        assert "lr must not be negative" in c.logs(t["id"])
        assert "hyperparameters are invalid" in c.det("why", str(t["id"])).stdout
        assert "  reason           it ended itself: it said that its hyperparameters are invalid" in c.det("t", "describe", str(t["id"])).stdout


def test_launchers():
    """The entrypoint that starts ranks by torch.distributed itself."""
    with Cluster(slots=2) as c:
        text = json.loads(config(slots=2, batches=8))
        text["entrypoint"] = "python3 -m determined.launch.torch_distributed --trial model_def:LineTrial"
        text["environment"] = {"environment_variables": ["PATH=/usr/bin:/bin"]}
        trial = run(c, json.dumps(text))
        logs = c.logs(trial)
        assert "hello from the trial 0 2" in logs and "hello from the trial 1 2" in logs, logs


def example(c, name, *changes, end="STATE_COMPLETED"):
    """Trains examples/python/NAME as it is, but for its length; the trial's id."""
    text = open(f"{TOP}/examples/python/{name}/const.yaml").read()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    exp = c.create(text + "environment:\n  environment_variables: [PATH=/usr/bin:/bin]\n", f"examples/python/{name}")
    c.wait(exp, end, seconds=300)
    return c.trials(exp)[0]["id"]


def test_examples():
    """The script that trains locally, submitted unchanged; and two ranks, whose metrics are of both."""
    with Cluster(slots=2) as c:
        trial = example(c, "trainer", ("epochs: 5", "batches: 20"))
        assert [steps for steps, _ in c.metrics(trial)] == [15, 20], c.metrics(trial)
        assert "accuracy" in str(c.metrics(trial, "validation")[-1]), c.metrics(trial, "validation")
        kept = [path for path in tensorboard_files(c, trial) if "tfevents" in path]
        found = {v.tag: e.step for path in kept for _, e in tfevents.read_dir(os.path.dirname(path)) for v in e.summary.value}
        assert found == {"Determined/loss": 19, "Determined/val_accuracy": 20}, (kept, found)
        trial = example(c, "mnist", ("epochs: 3", "batches: 3"))
        assert "the 8x8 digits beside the model stand in for MNIST" in c.logs(trial), c.logs(trial)
        trial = example(c, "data_parallel", ("epochs: 20", "batches: 12"))
        assert "rank 0 of 2: 32 records" in c.logs(trial) and "rank 1 of 2: 32 records" in c.logs(trial), c.logs(trial)
        latest = c.api("GET", f"/trials/{trial}")["trial"]["latestValidation"]["metrics"]["avgMetrics"]
        assert latest["validated"] == 359 and f"'records': {12 * 64}" in str(c.metrics(trial)[-1]), (latest, c.metrics(trial))


def test_no_data():
    """An example whose data are not there fails once, and its log says what to do."""
    with Cluster() as c:
        trial = example(c, "word_language_model", end="STATE_ERROR")
        assert c.api("GET", f"/trials/{trial}")["trial"]["restarts"] == 0
        assert "examples/word_language_model/make_data.py" in c.logs(trial), c.logs(trial)


def test_core():
    """A script over determined.core alone: its metrics, and its files for TensorBoard in the checkpoint store."""
    with Cluster() as c:
        text = json.loads(config(batches=8))
        text.update(entrypoint=[PYTHON, "train.py"], max_restarts=0)
        exp = c.create(json.dumps(text), "tests/integration/python_core")
        c.wait(exp)
        trial = c.trials(exp)[0]["id"]
        assert [steps for steps, _ in c.metrics(trial)] == [8] and len(c.metrics(trial, "validation")) == 1
        shown = [line.split()[1] for line in c.det("t", "describe", str(trial)).stdout.splitlines() if line.split()[:1] == ["8"]]
        assert sorted(shown) == ["checkpoint", "mine", "training", "validation"], shown
        by_metric = c.api("GET", f"/trials/{trial}/workloads?sortKey=x")["workloads"]
        assert sorted("checkpoint" if "checkpoint" in w else w.get("training", w.get("validation"))["group"] for w in by_metric) == sorted(shown), by_metric
        [stored] = c.api("GET", f"/trials/{trial}/checkpoints")["checkpoints"]
        hashes = c.api("GET", f"/checkpoints/{stored['uuid']}")["checkpoint"]["hashes"]
        known = json.load(open(c.path("checkpoints", stored["uuid"], "metadata.json")))["xxh128"]
        assert hashes == {"weights": "xxh128:" + known["weights"]}, hashes
        names = sorted(os.path.basename(p) for p in tensorboard_files(c, trial))
        assert names[0] == "0-notes.txt" and len(names) == 2 and "tfevents" in names[1], names
        found = tfevents.scalars(os.path.dirname(tensorboard_files(c, trial)[0]))
        assert [s for s, _ in found["mine"]] == list(range(8)) and [s for s, _ in found["late"]] == [8], found
        wait_until(lambda: not glob.glob(c.path("agent-0", "tasks", "*", "run", "tensorboard-*")), 30, "nothing left on the host")


def test_core_stops_on_nan():
    """A script over determined.core whose loss is no number ends as one with invalid hyperparameters."""
    with Cluster() as c, tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "train.py"), "w") as f:
            f.write("import time\nfrom determined import core\nwith core.init() as context:\n    for op in context.searcher.operations():\n"
                    "        context.train.report_training_metrics(3, {'loss': float('nan')})\n        time.sleep(600)\n")
        text = json.loads(config(batches=8))
        text.update(entrypoint=[PYTHON, "train.py"], max_restarts=0, stop_on_nan=True)
        exp = c.create(json.dumps(text), d)
        c.wait(exp)
        trial = c.trials(exp)[0]
        assert 'hyperparameters are invalid: training metric "loss" is NaN at batch 3' in c.det("why", str(trial["id"])).stdout and len(c.metrics(trial["id"])) == 1
        wait_until(lambda: 'training metric "loss" is NaN at batch 3: the trial ends here' in c.logs(trial["id"]), 30, "its sentence")


def test_core_stalls():
    """A script over determined.core that reports and then hangs is ended where its configuration says so, and told of before."""
    with Cluster() as c, tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "train.py"), "w") as f:
            f.write("import threading\nfrom determined import core\nwith core.init() as context:\n    for op in context.searcher.operations():\n"
                    "        context.train.report_training_metrics(3, {'loss': 1.0})\n        threading.Event().wait()\n")
        text = json.loads(config(batches=8))
        text.update(entrypoint=[PYTHON, "train.py"], max_restarts=0, stall_timeout=12)
        exp = c.create(json.dumps(text), d)
        trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
        wait_until(lambda: "rank 0: no batch for" in c.det("why", str(trial)).stdout, 120, "a word of its silence")
        c.wait(exp, "STATE_ERROR")
        log = c.logs(trial)
        assert "rank 0 stalled: no batch for" in log and "last batch 3 (training)" in log and "train.py, line 6" in log, log
        said = c.det("why", str(trial)).stdout
        assert said.count("stalled: no batch for") == 1 and said.endswith("In the user's code: train.py, line 6, in <module>\n"), said
        assert "(train.py, line 6, in <module>)" in c.det("experiment", "describe", str(exp)).stdout


def test_class_stalls_at_start():
    """A class that never comes to its first batch is ended where its configuration says so, and its line is told."""
    with Cluster() as c, tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "model_def.py"), "w") as f:
            f.write("import threading\nfrom determined import pytorch\nclass T(pytorch.PyTorchTrial):\n    def __init__(self, context):\n"
                    "        threading.Event().wait()\n    train_batch = build_training_data_loader = build_validation_data_loader = None\n")
        text = json.loads(config(batches=8))
        text.update(entrypoint="model_def:T", max_restarts=0, stall_timeout=5)
        exp = c.create(json.dumps(text), d)
        c.wait(exp, "STATE_ERROR")
        trial = c.trials(exp)[0]["id"]
        assert "rank 0 stalled: no batch for" in c.logs(trial) and "last batch 0 (starting)" in c.logs(trial), c.logs(trial)
        assert "(model_def.py, line 5, in __init__)" in c.det("why", str(trial)).stdout + c.det("experiment", "describe", str(exp)).stdout


def test_cluster_info():
    """Every value that a task is told, beside what the master says of it."""
    with Cluster(slots=2) as c:
        text = json.loads(config(slots=2, batches=8, data={"a": {"b": 1}}))
        text.update(entrypoint=[PYTHON, "show.py"], max_restarts=1)
        exp = c.create(json.dumps(text), "tests/integration/python_info")
        c.wait(exp)
        trial = c.trials(exp)[0]
        first, second = (json.loads(line.split("info: ")[1]) for line in c.logs(trial["id"]).splitlines() if "info: " in line)
        agent = c.api("GET", "/agents")["agents"][0]
        master = c.api("GET", "/master")
        for run, info in ((1, first), (2, second)):
            url, token, whole, alloc = (info.pop(k) for k in ("master_url", "session_token", "config", "allocation_id"))
            assert alloc.startswith(f"{trial['taskId']}.{run}."), alloc
            assert url.startswith("http") and token and whole["searcher"] == c.experiment(exp)["config"]["searcher"], info
            assert info == {
                "cluster_id": master["clusterId"], "agent_id": agent["id"], "slot_ids": [0, 1], "gpu_uuids": [], "task_id": trial["taskId"],
                "task_type": "TRIAL", "master_cert_name": None, "master_cert_file": None,
                "latest_checkpoint": info["uuid"] if run == 2 else None, "container_addrs": ["127.0.0.1"], "container_rank": 0,
                "container_slot_counts": [2], "user_data": {"a": {"b": 1}}, "trial_id": trial["id"], "experiment_id": exp,
                "hparams": trial["hparams"], "steps_completed": 3 if run == 2 else 0, "trial_run_id": run, "debug": False, "interface": None,
                "trial_seed": first["trial_seed"], "uuid": info["uuid"]}, info
        assert 0 <= first["trial_seed"] < 1 << 31, first


def test_searcher_metric():
    """A searcher's metric that is missing, or no number, fails the trial, and the log names it."""
    with Cluster() as c:
        for metric, data, said in (("accuracy", {}, "\"accuracy\" is not among the validation metrics: \"error\""), ("error", {"text": True}, "\"error\" of batch 0 is not a number")):
            text = json.loads(config(batches=4, data=data))
            text["searcher"]["metric"], text["max_restarts"] = metric, 0
            exp = c.create(json.dumps(text), HERE)
            c.wait(exp, "STATE_ERROR", seconds=180)
            logs = c.logs(c.trials(exp)[0]["id"])
            assert "RuntimeError" in logs and said in logs, logs


def test_python_without_torch():
    """A command takes the python3 that PATH names; one that cannot train says so, and names one that can."""
    with Cluster() as c:
        os.mkdir(c.path("bin"))
        with open(c.path("bin", "python3"), "w") as f:
            f.write(f"#!/bin/sh\nexec {PYTHON} -S \"$@\"\n")
        os.chmod(c.path("bin", "python3"), 0o755)
        text = {**json.loads(config(batches=4)), "max_restarts": 0, "entrypoint": "python3 -m determined.launch.torch_distributed --trial model_def:LineTrial",
                "environment": {"environment_variables": [f"PATH={c.path('bin')}:{os.path.dirname(PYTHON)}:/usr/bin:/bin"]}}
        exp = c.create(json.dumps(text), HERE)
        c.wait(exp, "STATE_ERROR", seconds=180)
        logs = c.logs(c.trials(exp)[0]["id"])
        assert "has no torch, which training needs; /" in logs and "/python3 can: name it" in logs and "Traceback" not in logs, logs


SDK = """
import sys, time
from determined.experimental import client
client.login(user="admin", password=open(sys.argv[1]).read().strip())
e = client.create_experiment(sys.argv[2], sys.argv[3])
assert e.wait(interval=0.2) == client.ExperimentState.COMPLETED
t = e.get_trials()[0]
assert any("hello from the trial" in line for line in t.logs())
reports = list(t.iter_metrics("validation"))
assert reports and "error" in reports[-1].metrics, reports
assert [r.steps_completed for r in t.iter_metrics("training")][-1] == 8
best = e.top_checkpoint()
assert e.list_checkpoints(max_results=1)[0].uuid == t.list_checkpoints(max_results=1)[0].uuid == best.uuid
assert best.uuid in [c.uuid for c in t.list_checkpoints(sort_by=client.CheckpointSortBy.BATCH_NUMBER)]
assert t.select_checkpoint(latest=True).metadata["steps_completed"] == 8
assert t.select_checkpoint(uuid=best.uuid).metadata == best.metadata
best.add_metadata({"mine": 1, "other": 2})
best.remove_metadata(["other"])
again = client.get_checkpoint(best.uuid)
assert again.metadata["mine"] == 1 and "other" not in again.metadata and "steps_completed" in again.metadata, again.metadata
path = best.download(sys.argv[4])
from determined import pytorch
trial = pytorch.load_trial_from_checkpoint_path(path)
assert type(trial).__name__ == "LineTrial" and trial.model is not None
best.delete()
while best.state != client.CheckpointState.DELETED:
    time.sleep(0.1)
    best.reload()
lists = [t.list_checkpoints(), t.list_checkpoints(sort_by="error"), t.list_checkpoints(sort_by="error", order_by=client.OrderBy.DESC),
         t.list_checkpoints(sort_by=client.CheckpointSortBy.STATE)]
assert [{c.uuid: c.state for c in found} for found in lists] == [{c.uuid: c.state for c in lists[0]}] * len(lists), lists
assert best.uuid in [c.uuid for c in lists[0]] and len(lists[0]) > 1, lists[0]
assert t.list_checkpoints(max_results=1)[0].uuid == lists[0][0].uuid, lists[0]
whole = {c.uuid for c in lists[0] if c.state == client.CheckpointState.COMPLETED}
assert {c.uuid for c in e.list_checkpoints()} == {c.uuid for c in e.list_checkpoints(sort_by="nosuch")} == whole, e.list_checkpoints()
errors = [c.training.validation_metrics["avgMetrics"]["error"] for c in lists[1] if c.training.validation_metrics]
assert errors == sorted(errors), errors
assert [c.uuid for c in t.list_checkpoints(sort_by="error", max_results=1)] == [lists[1][0].uuid]
assert best.uuid not in [c.uuid for c in e.top_n_checkpoints(9)]
e.add_label("seen"); e.set_name("renamed")
assert repr(e) == f"Experiment(id={e.id})" and repr(e.list_trials()[0]).startswith("Trial(id=")
assert client.get_experiment(e.id).labels == {"seen"} and [x.id for x in client.list_experiments(name="renamed")] == [e.id]
facts = lambda x: {k: v for k, v in vars(x).items() if not k.startswith("_")}
assert [facts(x) for x in client.list_experiments(name="renamed")] == [facts(client.get_experiment(e.id))]
assert [facts(x) for x in e.list_trials()] == [facts(client.get_trial(t.id))], [facts(x) for x in e.list_trials()]
pools = client.list_resource_pools()
assert [(p.name, p.num_agents, p.slots_available) for p in pools] == [("default", 1, int(sys.argv[5]))], pools
ours = client.create_workspace("ours"); best_project = ours.create_project("best")
best_project.set_name("bets"); best_project.set_description("the best")
assert (best_project.name, ours.get_project("bets").description) == ("bets", "the best"); best_project.set_name("best")
ours.reload(); best_project.reload()
assert [p.name for p in ours.list_pools()] == ["default"] and best_project.workspace_id == ours.id, ours
client.create_workspace("gone").create_project("gone"); client.get_workspace("gone").delete_project("gone"); client.delete_workspace("gone")
assert "gone" not in [w.name for w in client.list_workspaces()]
e.move_to_project("ours", "best"); e.set_labels(["a", "b"])
assert [x.id for x in client.get_workspace("ours").get_project("best").list_experiments()] == [e.id] and e.labels == {"a", "b"}
try:
    e.move_to_project("ours", "worst")
except client.NotFoundException as x:
    assert str(x) == 'workspace "ours" has no project "worst"', x
grid = {"type": "categorical", "vals": [0.05, 1e-9]}
g = client.create_experiment({**e.config, "name": "grid", "searcher": {**e.config["searcher"], "name": "grid"}, "hyperparameters": {**e.config["hyperparameters"], "lr": grid}}, sys.argv[3])
assert g.wait(interval=0.2) == client.ExperimentState.COMPLETED
rates = lambda trials: [t.hparams["lr"] for t in trials]
assert rates(g.top_n_trials(9)) == rates(g.top_n_trials(2, "error", True)) == [0.05, 1e-9] and rates(g.top_n_trials(1, "error", False)) == [1e-9]
assert g.top_n_trials(9, "nosuch", True) == []
best_first = lambda order: rates(g.list_trials(client.TrialSortBy.BEST_VALIDATION_METRIC, order))
assert best_first(client.OrderBy.ASC) == [0.05, 1e-9] and best_first(client.OrderBy.DESC) == [1e-9, 0.05]
assert [x.id for x in client.list_experiments(sort_by=client.ExperimentSortBy.NAME)] == [g.id, e.id]
assert [x.id for x in client.list_experiments(sort_by=client.ExperimentSortBy.NAME, order_by=client.OrderBy.DESC)] == [e.id, g.id]
try:
    client.get_experiment(99999)
except client.NotFoundException as x:
    print("ok", x)
"""


def test_sdk():
    """determined.experimental.client: submit, wait, metrics, logs, checkpoints, metadata, download, load."""
    with Cluster() as c:
        path = c.path("line.json")
        with open(path, "w") as f:
            keep = {"type": "shared_fs", "host_path": c.path("checkpoints"), "save_trial_latest": 9}
            json.dump({**json.loads(config(batches=8)), "min_validation_period": {"batches": 4}, "checkpoint_storage": keep}, f)
        env = {**os.environ, "DET_MASTER": f"http://127.0.0.1:{c.port}", "XDG_CONFIG_HOME": c.path("config"),
               "PYTHONPATH": os.path.join(os.environ["DET_BIN"], "../lib/det/python")}
        done = subprocess.run([PYTHON, "-c", SDK, c.path("admin.password"), path, os.path.join(TOP, HERE), c.path("downloaded"), str(c.slots)],
                              env=env, capture_output=True, text=True, timeout=300 * SLOWER)
        assert done.returncode == 0 and "ok experiment" in done.stdout, (done.stdout, done.stderr)


def main():
    if os.environ.get("DET_SANITIZED") or importlib.util.find_spec("torch") is None:
        print("skipped: no PyTorch, or none that bears sanitizers")
        return 77
    names, wanted = [n[5:] for n in globals() if n.startswith("test_")], sys.argv[1:]
    if wanted and "/" in wanted[0]:
        k, n = map(int, wanted[0].split("/"))
        names = names[k - 1::n]
    elif wanted:
        names = wanted
    for name in names:
        globals()["test_" + name]()
        print("ok", name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
