"""Trainings that run elsewhere and report here: experiments and trials by their client's own names, runs that fence, heartbeats.

What runs here, and other people's, is none of theirs; a master that starts again runs nothing of them."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from cluster import BIN, SLOWER, Cluster, wait_until  # noqa: E402
from openapi import Api, Failed  # noqa: E402

# What a sanitizer instruments no other program loads.
PYTHON = None if os.environ.get("DET_SANITIZED") else os.path.join(BIN, "..", "lib", "det", "python")
CONFIG = """name: elsewhere
description: null
labels: [far]
data: null
workspace: null
project: null
searcher: {name: single, metric: loss, max_length: 100000000}
"""


def report(user, trial, run, steps, loss, group="training"):
    user.call("post_metrics", {"metrics": {"trialId": trial, "trialRunId": run, "stepsCompleted": steps,
                                           "metrics": {"avgMetrics": {"loss": loss}}}, "group": group}, trialId=trial)


def state(user, exp):
    return user.call("get_experiment", experimentId=exp)["experiment"]["state"]


def trial_state(user, trial):
    return user.call("get_trial", trialId=trial)["trial"]["state"]


def make(user, name=None):
    body = {"config": CONFIG, "unmanaged": True}
    e = user.call("put_external_experiment", body, externalExperimentId=name) if name else user.call("create_experiment", body)
    assert e["experiment"]["unmanaged"] is True and e["advice"] == []
    return e["experiment"]["id"]


def long_texts(user):
    """Where it runs is for its client to say, at any length: no index is too narrow for it."""
    pool = "".join(str(uuid.uuid4()) for _ in range(250))
    body = {"config": CONFIG + f"resources: {{resource_pool: {pool}}}\n", "unmanaged": True}
    exp = user.call("create_experiment", body)["experiment"]["id"]
    assert user.call("get_experiment", experimentId=exp)["experiment"]["resourcePool"] == pool


def life(c, user):
    """Made, started, reported of, resumed by its names, ended; the experiment is as its trials are."""
    exp = make(user, "ray/1 ü")
    assert make(user, "ray/1 ü") == exp and state(user, exp) == "STATE_RUNNING"
    wanted = {"createTrialRequest": {"experimentId": exp, "hparams": {"lr": 0.1}, "unmanaged": True}, "externalTrialId": "a"}
    t = user.call("put_trial", wanted)["trial"]
    assert (t["state"], t["hparams"]) == ("STATE_RUNNING", {"lr": 0.1})
    assert user.call("put_trial", wanted)["trial"]["id"] == t["id"]
    assert user.call("start_trial", {"trialId": t["id"], "resume": True}, trialId=t["id"]) == {"trialRunId": 1, "stepsCompleted": 0}
    report(user, t["id"], 1, 10, 0.5)
    report(user, t["id"], 1, 10, 0.4, "validation")
    ckpt = {"uuid": str(uuid.uuid4()), "taskId": t["taskId"], "allocationId": None, "resources": {"w": "5"}, "metadata": {"steps_completed": 10}}
    user.call("post_checkpoint", ckpt)
    user.call("post_task_logs_plain", [{"task_id": t["taskId"], "rank_id": 0, "log": "far away\n"}])
    assert "far away" in c.logs(t["id"])
    user.call("patch_trial", {"trialId": t["id"], "trialRunId": 1}, trialId=t["id"])
    again = user.call("start_trial", {"trialId": t["id"], "resume": True}, trialId=t["id"])
    assert again == {"trialRunId": 2, "latestCheckpoint": ckpt["uuid"], "stepsCompleted": 10}
    user.refused(409, "run", "post_metrics", {"metrics": {"trialId": t["id"], "trialRunId": 1, "stepsCompleted": 20, "metrics": {
        "avgMetrics": {"loss": 9}}}, "group": "training"}, trialId=t["id"])
    for said in ({}, {"state": "STATE_COMPLETED"}, {"state": "STATE_ERROR"}):  # the replaced run's heartbeat, and its end
        user.refused(409, "replaced by run 2", "patch_trial", {"trialId": t["id"], "trialRunId": 1, **said}, trialId=t["id"])
    user.refused(403, "has not ended", "post_checkpoint", {**ckpt, "uuid": str(uuid.uuid4()), "trialRunId": 1})
    assert trial_state(user, t["id"]) == "STATE_RUNNING"
    report(user, t["id"], 2, 20, 0.25)
    assert [m["loss"] for m in (m["avg_metrics"] for _, m in c.metrics(t["id"]))] == [0.5, 0.25]
    done = user.call("patch_trial", {"trialId": t["id"], "state": "STATE_COMPLETED"}, trialId=t["id"])["trial"]
    assert (done["state"], done["restarts"], state(user, exp)) == ("STATE_COMPLETED", 1, "STATE_COMPLETED")
    user.call("patch_trial", {"trialId": t["id"]}, trialId=t["id"])  # a heartbeat that comes late wakes nothing
    assert trial_state(user, t["id"]) == "STATE_COMPLETED"
    user.refused(403, "has not ended", "post_checkpoint", {**ckpt, "uuid": str(uuid.uuid4())})
    user.call("post_checkpoint", {**ckpt, "uuid": str(uuid.uuid4()), "trialRunId": 2})  # its last one, after a long silence
    return exp, t


def patiently(user, *call):
    def done():
        try:
            return [user.call(*call)]
        except Failed as e:
            assert e.status == 503, e
    wait_until(done, 30, "PostgreSQL")


def seen(c, user, exp):
    """Its log is followed until it ends, its reports are no lines of the audit log but its end is, and it is said to have no slots."""
    t = user.call("post_trial", {"experimentId": exp, "unmanaged": True})["trial"]
    env = {**os.environ, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"),
           "XDG_CONFIG_HOME": c.path("config")}
    fields, r = user.open("GET", f"/api/v1/trials/{t['id']}/logs/fields?follow=true")
    with subprocess.Popen([os.path.join(BIN, "det"), "trial", "logs", "-f", str(t["id"])], env=env, stdout=subprocess.PIPE, text=True) as p:
        for word in ("first", "second", "third"):
            if word == "third":  # PostgreSQL is away for a moment, and longer than the follower takes to ask again
                c.stop("pg", signal.SIGINT)
                threading.Event().wait(3)
                c.start_pg()
            patiently(user, "post_task_logs_plain", [{"task_id": t["taskId"], "rank_id": 0, "log": word + "\n"}])
            line = p.stdout.readline()
            assert word in line, (word, line, p.poll())
        user.call("patch_trial", {"trialId": t["id"], "state": "STATE_COMPLETED"}, trialId=t["id"])
        assert p.wait(60 * SLOWER) == 0
    told = [json.loads(line) for line in r]  # until it ended
    assert len(told) > 1 and all("result" in line for line in told), told
    fields.close()
    said = c.sql("SELECT DISTINCT operation FROM audit WHERE path LIKE '%trial%' OR path LIKE '%logs%' OR path LIKE '%checkpoints%'").split()
    assert set(said) == {"patch_trial", "post_checkpoint", "post_trial", "put_trial", "start_trial"}, said
    said = c.sql(f"SELECT detail->>'state' FROM audit WHERE operation = 'patch_trial' AND path LIKE '%/{t['id']}'").split()
    assert said == ["STATE_COMPLETED"], said  # of heartbeats nothing
    text = c.det("experiment", "describe", str(exp)).stdout
    assert "unmanaged" in text and "per trial" not in text, text


def numbers(c, user, exp):
    """Who asks for a trial that is there takes no number; and whatever the numbers, reports have a place."""
    wanted = {"createTrialRequest": {"experimentId": exp, "unmanaged": True}, "externalTrialId": "a"}
    before = user.call("put_trial", wanted)["trial"]["id"]
    assert all(user.call("put_trial", wanted)["trial"]["id"] == before for _ in range(3))
    far = user.call("post_trial", {"experimentId": exp, "unmanaged": True})["trial"]["id"]
    assert far == before + 1
    c.sql(f"INSERT INTO trials (id, experiment_id, request_id, task_id, state, hparams, start_time) "
          f"VALUES (25001, {exp}, 'far', 'far', 'COMPLETED', '{{}}', now())")
    assert c.sql("SELECT to_regclass('metrics_2') IS NOT NULL AND to_regclass('metric_chunks_3') IS NOT NULL").strip() == "t"
    c.sql("DELETE FROM trials WHERE id = 25001")
    user.call("patch_trial", {"state": "STATE_COMPLETED"}, trialId=far)


def several(user, exp):
    """More trials come to an experiment that had ended: it lives until the last has."""
    ids = [user.call("post_trial", {"experimentId": exp, "hparams": {"lr": i}, "unmanaged": True})["trial"]["id"] for i in range(2)]
    assert state(user, exp) == "STATE_RUNNING"
    for i, how in zip(ids, ("STATE_ERROR", "STATE_CANCELED")):
        assert state(user, exp) == "STATE_RUNNING"
        user.call("patch_trial", {"trialId": i, "state": how}, trialId=i)
    assert state(user, exp) == "STATE_COMPLETED"


def refusals(user, exp, trial):
    user.refused(400, "unmanaged: true", "put_external_experiment", {"config": CONFIG + "entrypoint: a:B"}, externalExperimentId="x")
    user.refused(404, "not found", "post_trial", {"experimentId": 9999, "unmanaged": True})
    user.refused(400, "unmanaged: true", "post_trial", {"experimentId": exp})
    user.refused(400, "externalTrialId", "put_trial", {"createTrialRequest": {"experimentId": exp, "unmanaged": True}})
    user.refused(400, "state: ", "patch_trial", {"trialId": trial, "state": "STATE_PAUSED"}, trialId=trial)
    user.refused(404, "not found", "start_trial", {}, trialId=9999)
    user.refused(400, "unmanaged", "continue_experiment", {"id": exp})


def not_here(c, user):
    """What runs on the cluster is not a client's to make or end, and what runs elsewhere is not the cluster's."""
    here = c.create("examples/digits/const.yaml", "examples/digits", activate=False)
    user.refused(400, "runs on this cluster", "post_trial", {"experimentId": here, "unmanaged": True})
    wait_until(lambda: c.trials(here), 30, "its trial")
    t = c.trials(here)[0]["id"]
    for op, body in (("start_trial", {}), ("patch_trial", {}), ("patch_trial", {"state": "STATE_ERROR"})):
        user.refused(400, "runs on this cluster", op, body, trialId=t)
    c.api("POST", f"/experiments/{here}/kill")
    far = make(user)
    t = user.call("post_trial", {"experimentId": far, "unmanaged": True})["trial"]["id"]
    for op in ("pause_experiment", "kill_experiment", "cancel_experiment", "activate_experiment"):
        user.refused(400, "where it runs", op, id=far)
    user.refused(400, "where it runs", "kill_trial", id=t)
    assert not [j for j in user.call("get_jobs")["jobs"] if j.get("entityId") == str(far)]
    return far, t


SCRIPT = """
import os, sys
from determined.experimental import core_v2
core_v2.init(defaults=core_v2.DefaultConfig(name="py", hparams={"lr": 0.5}, labels=["far"], checkpoint_storage=sys.argv[1]),
             unmanaged=core_v2.UnmanagedConfig(external_experiment_id="py", external_trial_id="py-0"))
begin = core_v2.info.trial._steps_completed
if core_v2.info.latest_checkpoint:
    with core_v2.checkpoint.restore_path(core_v2.info.latest_checkpoint) as path:
        print("resumed from", open(os.path.join(path, "w")).read())
for i in range(begin, begin + 3):
    core_v2.train.report_training_metrics(i + 1, {"loss": 1 / (i + 1)})
    core_v2.train.report_validation_metrics(i + 1, {"val": 1 / (i + 1)})
with core_v2.checkpoint.store_path({"steps_completed": begin + 3}) as (path, uuid):
    open(os.path.join(path, "w"), "w").write(str(begin + 3))
print(core_v2.url_reverse_webui_exp_view())
print("half a line", end="", file=sys.stderr)
assert not core_v2.preempt.should_preempt()
if begin:
    raise RuntimeError("on purpose")
"""


def run(c, script, *args):
    """As a person would who is logged in."""
    path = c.path("elsewhere.py")
    with open(path, "w") as f:
        f.write(script)
    env = {**os.environ, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"),
           "PYTHONPATH": PYTHON, "XDG_CONFIG_HOME": c.path("config"), "XDG_DATA_HOME": c.path("data")}
    return subprocess.run([sys.executable, path, *args], env=env, capture_output=True, text=True, timeout=60 * SLOWER)


def script(c, user):
    """By determined.experimental.core_v2: the second time it goes on, and fails."""
    store = c.path("store")
    os.mkdir(store)
    r = run(c, SCRIPT, store)
    assert r.returncode == 0 and "half a line" in r.stderr, r
    exp = int(r.stdout.strip().rsplit("/", 1)[1])
    t = c.trials(exp)[0]
    assert (t["state"], state(user, exp), t["hparams"], t["totalBatchesProcessed"]) == ("STATE_COMPLETED", "STATE_COMPLETED", {"lr": 0.5}, 3)
    log = c.logs(t["id"])
    assert "half a line" in log and f"experiments/{exp}" in log, log
    r = run(c, SCRIPT, store)
    assert r.returncode == 1 and "resumed from 3" in r.stdout and "on purpose" in r.stderr, r
    assert len(c.trials(exp)) == 1 and trial_state(user, t["id"]) == state(user, exp) == "STATE_ERROR"
    assert [s for s, _ in c.metrics(t["id"])] == [1, 2, 3, 4, 5, 6] and "on purpose" in c.logs(t["id"])
    assert len(user.call("get_trial_checkpoints", id=t["id"])["checkpoints"]) == 2
    r = run(c, "import sys\nfrom determined.experimental import core_v2\ncore_v2.init(defaults=core_v2.DefaultConfig())\n"
               "print('no newline', end='')\nsys.exit(3)")
    assert r.returncode == 3 and r.stdout == "no newline", r
    newest = user.call("get_experiments", sortBy="SORT_BY_ID", orderBy="ORDER_BY_DESC", limit=1)["experiments"][0]
    assert newest["name"].startswith("unmanaged-") and newest["state"] == "STATE_ERROR", newest


def others(c, user, exp, trial):
    """A colleague sees it, and has names of her own."""
    user.call("post_user", {"user": {"username": "eve", "active": True, "admin": False}, "password": "long enough 1"})
    eve = Api(c.port, Api(c.port, None).call("login", {"username": "eve", "password": "long enough 1"})["token"])
    assert trial_state(eve, trial) and make(eve, "ray/1 ü") != exp
    for op, body in (("start_trial", {}), ("patch_trial", {"state": "STATE_ERROR"})):
        eve.refused(403, "", op, body, trialId=trial)
    eve.refused(403, "", "post_trial", {"experimentId": exp, "unmanaged": True})
    eve.refused(403, "", "put_trial", {"createTrialRequest": {"experimentId": exp, "unmanaged": True}, "externalTrialId": "a"})


def restart(c, user, far, trial):
    """The master that comes next runs nothing of it, gives it up when it is silent, and takes it back when it is not."""
    c.sql(f"UPDATE trials SET heartbeat = now() - interval '1 hour' WHERE id = {trial} AND heartbeat IS NOT NULL")  # unless that was so already
    c.stop("master")
    c.start_master()
    c.token = None
    c.login()
    user = Api(c.port, c.token)
    wait_until(lambda: trial_state(user, trial) == "STATE_ERROR", 30, "the silent trial's end")
    assert state(user, far) == "STATE_ERROR" and "nothing was heard" in c.logs(trial)
    user.call("patch_trial", {"trialId": trial}, trialId=trial)
    assert (trial_state(user, trial), state(user, far)) == ("STATE_RUNNING", "STATE_RUNNING")
    user.call("patch_trial", {"state": "STATE_COMPLETED"}, trialId=trial)
    return user


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as settings:
        settings.write("unmanaged_timeout: 5\n")
        settings.flush()
        with Cluster(agents=0, master_args=["--config", settings.name]) as c:
            c.login()
            user = Api(c.port, c.token)
            exp, t = life(c, user)
            numbers(c, user, exp)
            several(user, exp)
            seen(c, user, exp)
            refusals(user, exp, t["id"])
            far, silent = not_here(c, user)
            others(c, user, exp, t["id"])
            if PYTHON:
                script(c, user)
            user = restart(c, user, far, silent)
            assert "far" in user.call("get_experiment_labels")["labels"]
            user.call("delete_experiment", experimentId=far)
            wait_until(lambda: not [e for e in user.call("get_experiments")["experiments"] if e["id"] == far], 30, "its deletion")
    print("ok")


if __name__ == "__main__":
    main()
