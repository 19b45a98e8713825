"""The flows of Determined's own clients, call for call: create and follow, one trial's life, pause and resume,
and the read side. Every answer is checked against openapi.yaml; the agent is a stand-in that runs nothing."""
import base64
import io
import json
import os
import sys
import tarfile
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api, Failed  # noqa: E402

CONFIG = """
name: flow
labels: [first, second]
entrypoint: model_def:T
hyperparameters: {lr: 0.25, global_batch_size: 32}
searcher: {name: single, metric: loss, max_length: {batches: 200}}
resources: {slots_per_trial: 1}
max_restarts: 1
"""
MANY_FOLDERS = 10_000


HASH = "xxh128:" + "0a" * 16


def file(path, text="", kind=48):
    return {"path": path, "type": kind, "content": base64.b64encode(text.encode()).decode(), "mtime": "1690000000",
            "mode": 33188, "uid": 0, "gid": 0}


def create(user, config=CONFIG, activate=True, **more):
    body = {"activate": activate, "config": config, "modelDefinition": [file("model_def.py", "x = 1\n"), file("sub", "", 53), file("sub/b.txt", "b")],
            "parentId": None, "projectId": None, "template": None, "validateOnly": False}
    return user.call("create_experiment", {**body, **more})


class Follower(threading.Thread):
    """det trial logs -f: collects messages until the master ends the stream."""
    def __init__(self, api, trial):
        super().__init__(daemon=True)
        self.lines, self.api, self.trial = [], api, trial
        self.start()

    def run(self):
        conn, r = self.api.open("GET", f"/api/v1/trials/{self.trial}/logs?follow=true")
        for line in r:
            self.lines.append(json.loads(line)["result"])
        conn.close()


def metrics(trial, run, steps, group, values, **more):
    return {"metrics": {"trialId": trial, "trialRunId": run, "stepsCompleted": steps, "metrics": {"avgMetrics": values, **more}}, "group": group}


def session(user, port):
    """Steps 1 and 2 of flow (a), and what users ask about themselves."""
    anyone = Api(port)
    assert anyone.call("info")["version"] == "0.27.0"
    anyone.refused(401, "", "get_me")
    anyone.refused(403, "", "login", {"username": "determined", "password": "", "isHashed": True})
    anyone.refused(401, "invalid credentials", "login", {"username": "nobody", "password": "x"})
    anyone.call("get_master")
    anyone.call("get_telemetry")
    assert user.call("get_me")["user"]["username"] == "admin"
    user.call("current_user")
    user.call("get_master_config")
    return anyone


def rank(alloc_api, task, alloc, container, trial, exp):
    """Flow (b), steps 1 to 8."""
    assert alloc_api.call("get_me")["user"]["username"] == "admin"
    tgz = base64.b64decode(alloc_api.call("get_context_directory", taskId=task)["b64Tgz"])
    with tarfile.open(fileobj=io.BytesIO(tgz)) as tar:
        assert "model_def.py" in tar.getnames() and tar.extractfile("sub/b.txt").read() == b"b"
    alloc_api.call("post_accelerators", {"allocationId": alloc, "acceleratorData": {
        "containerId": container, "allocationId": alloc, "nodeName": "n", "taskId": task, "acceleratorType": "cpu",
        "acceleratorUuids": []}}, allocationId=alloc)
    rdv = alloc_api.call("rendezvous", allocationId=alloc, resourcesId=container)["rendezvousInfo"]
    assert rdv == {"addresses": ["127.0.0.1"], "rank": 0, "slots": [1]}, rdv
    assert alloc_api.call("preemption_signal", allocationId=alloc, timeoutSeconds=0) == {"preempt": False}
    assert alloc_api.call("get_trial", trialId=trial)["trial"]["latestValidation"] is None
    op = alloc_api.call("get_searcher_operation", trialId=trial)
    assert op["op"]["validateAfter"]["length"] == "200" and op["completed"] is False
    try:
        alloc_api.call("get_best_searcher_validation_metric", experimentId=exp)
        raise AssertionError("a best metric before any validation")
    except Failed as e:
        assert e.status == 404


def log(alloc_api, task, alloc, container, text, offset):
    alloc_api.call("post_task_logs", {"logs": [{
        "timestamp": "2024-05-06T07:08:09.25+00:00", "stdtype": "stdout", "task_id": task, "allocation_id": alloc,
        "container_id": container, "agent_id": "agent-x", "source": "task", "log": text, "rank_id": 0, "level": "ERROR",
        "offset": str(offset)}]})


def train(a, trial, run, first, last, loss):
    a.call("post_runner_metadata", {"state": "training"}, trialId=trial)
    for steps in range(first, last + 1, 100):
        a.call("post_metrics", metrics(trial, run, steps, "training", {"loss": loss}, batchMetrics=[{"loss": loss}]), trialId=trial)
        a.call("post_progress", steps, trialId=trial)


def checkpoint(a, task, alloc, steps):
    key = str(uuid.uuid4())
    a.call("post_checkpoint", {"uuid": key, "taskId": task, "allocationId": alloc, "state": "STATE_COMPLETED",
                               "resources": {"state_dict.pth": "1000", "code/": "0"}, "hashes": {"state_dict.pth": HASH},
                               "metadata": {"steps_completed": steps, "framework": "c"}})
    for bad in ("0" * 32, "xxh128:", HASH[:-1], HASH.replace("0", "O"), "md5:" + "0" * 32, 7, None):
        a.refused(400, 'hashes: that of "x": expected "xxh128:"', "post_checkpoint", {
            "uuid": key, "metadata": {"steps_completed": steps}, "hashes": {"x": bad}})
    for path in ("other", "code/"):
        a.refused(400, f'hashes: "{path}" is no file of `resources`', "post_checkpoint", {
            "uuid": key, "metadata": {"steps_completed": steps}, "resources": {"code/": "0"}, "hashes": {path: HASH}})
    return key


def first_alloc(user, task):
    return next(x["allocationId"] for x in user.call("get_task", taskId=task)["task"]["allocations"] if x["allocationId"].startswith(task + ".1."))


def one_trial(c, user, agent):
    """Flows (a), (b) and (c): created, followed, paused, activated, completed."""
    made = create(user)
    exp = made["experiment"]["id"]
    assert made["config"]["searcher"]["name"] == "single" and made["warnings"] == []
    trial = wait_until(lambda: user.call("get_experiment_trials", experimentId=exp)["trials"], 10, "the first trial")[0]["id"]
    follower = Follower(user, trial)
    order = agent.next("start")
    alloc, container, task = order["alloc"], order["container"], order["task"]["task_id"]
    a = Api(c.port, alloc=order["task"]["token"])
    agent.run(order)
    rank(a, task, alloc, container, trial, exp)
    for _ in range(2):  # a repeat of a line with an offset is one line
        log(a, task, alloc, container, "hello\n", 1)
    wait_until(lambda: [x for x in follower.lines if x["log"] == "hello\n"], 5, "the line at the follower")
    train(a, trial, 1, 100, 100, 0.5)
    assert user.call("get_experiment", experimentId=exp)["experiment"]["state"] == "STATE_RUNNING"
    assert user.call("get_trial", trialId=trial)["trial"]["state"] == "STATE_RUNNING"
    isolation(c, a, alloc, trial, exp)
    key = pause(user, agent, a, order, exp, task, alloc)
    order = agent.next("start")
    assert order["alloc"].startswith(task + ".2.") and order["task"]["env"]["DET_LATEST_CHECKPOINT"] == key
    old, a = a, Api(c.port, alloc=order["task"]["token"])
    agent.run(order)
    stale(old, trial)
    finish(user, agent, a, order, exp, trial, task)
    follower.join(120)
    assert not follower.is_alive(), "the follower outlived its trial"
    assert len([x for x in follower.lines if x["log"] == "hello\n"]) == 1
    line = next(x for x in follower.lines if x["log"] == "hello\n")
    assert line["message"] == f"[2024-05-06T07:08:09.250000Z] {container[:8]} [rank=0] || ERROR: hello\n", line["message"]
    return exp, trial, task


def isolation(c, a, alloc, trial, exp):
    """A task's token reaches nothing but its own."""
    for op, params in [("get_trial", {"trialId": trial + 1}), ("get_experiment", {"experimentId": exp + 1}),
                       ("ack_preemption", {"allocationId": "x.9"}), ("get_context_directory", {"taskId": "other"}),
                       ("post_progress", {"trialId": trial + 1}), ("get_users", {}), ("kill_trial", {"id": trial})]:
        a.refused(403, "", op, **params)
    a.refused(400, "malformed", "ack_preemption", allocationId="nodot")


def pause(user, agent, a, order, exp, task, alloc):
    signal = []
    path = f"/api/v1/allocations/{alloc}/signals/preemption?timeout_seconds=60"  # in the spelling that harnesses use
    watch = threading.Thread(target=lambda: signal.append(json.loads(a.raw("GET", path)[1])))
    watch.start()
    assert user.call("pause_experiment", id=exp) == {}
    assert user.call("get_experiment", experimentId=exp)["experiment"]["state"] == "STATE_PAUSED"
    watch.join(120)
    assert signal == [{"preempt": True}], signal
    a.call("ack_preemption", allocationId=alloc)
    a.call("post_runner_metadata", {"state": "checkpointing"}, trialId=int(order["task"]["env"]["DET_TRIAL_ID"]))
    key = checkpoint(a, task, alloc, 100)
    agent.exit(order)
    assert user.call("pause_experiment", id=exp) == {}  # again: no harm
    wait_until(lambda: user.call("get_tasks")["allocationIdToSummary"] == {}, 10, "the allocation to end")
    assert user.call("activate_experiment", id=exp) == {}
    return key


def stale(old, trial):
    """What the old run still says is refused."""
    old.refused(409, "", "post_metrics", metrics(trial, 1, 200, "training", {"loss": 9.0}), trialId=trial)
    old.refused(409, "", "get_searcher_operation", trialId=trial)
    old.refused(409, "", "post_runner_metadata", {"state": "training", "epochLength": 7}, trialId=trial)


def finish(user, agent, a, order, exp, trial, task):
    alloc, container = order["alloc"], order["container"]
    a.call("rendezvous", allocationId=alloc, resourcesId=container)
    train(a, trial, 2, 200, 200, 0.4)
    a.call("post_runner_metadata", {"state": "validating", "epochLength": "100"}, trialId=trial)
    for bad in (-1, 1e300, 0.5, 1 << 63, True, [100]):
        a.refused(400, "epochLength", "post_runner_metadata", {"state": "validating", "epochLength": bad}, trialId=trial)
    a.call("post_runner_metadata", {"state": "validating"}, trialId=trial)
    assert user.call("get_trial", trialId=trial)["trial"]["epochLength"] == 100
    report = metrics(trial, 2, 200, "validation", {"loss": 0.25, "acc": 0.9})
    for _ in range(2):
        a.call("post_metrics", report, trialId=trial)
    a.refused(400, "", "post_metrics", metrics(trial, 2, 200, "validation", {"loss": 0.5}), trialId=trial)
    a.refused(400, "group", "post_metrics", metrics(trial, 2, 200, "a.b", {"loss": 0.5}), trialId=trial)
    assert a.call("get_best_searcher_validation_metric", experimentId=exp) == {"metric": 0.25}
    a.refused(400, "", "post_completed_operation", {"op": {"length": 7}, "searcherMetric": 0.25}, trialId=trial)
    a.call("post_completed_operation", {"op": {"length": "200"}, "searcherMetric": 0.25}, trialId=trial)
    checkpoint(a, task, alloc, 200)
    assert a.call("get_searcher_operation", trialId=trial)["completed"] is True
    a.call("ack_preemption", allocationId=alloc)
    a.call("post_profiler_metrics", {"batches": [{"values": [1.5], "batches": [3], "timestamps": ["2024-01-01T00:00:00Z"], "labels": {
        "trialId": trial, "name": "cpu_util", "agentId": "agent-x", "gpuUuid": "", "metricType": "PROFILER_METRIC_TYPE_SYSTEM"}}]})
    assert a.call("get_profiler_series", trialId=trial)[0]["labels"][0]["name"] == "cpu_util"
    assert a.call("get_profiler_metrics", **{"labels__trialId": trial, "labels__name": "cpu_util"})[0]["batch"]["values"] == [1.5]
    agent.exit(order)
    wait_until(lambda: user.call("get_experiment", experimentId=exp)["experiment"]["state"] == "STATE_COMPLETED", 20, "the end")


def reads(user, exp, trial, task):
    """Flow (d), and the rest of the read side, of an experiment that is done."""
    e = user.call("get_experiment", experimentId=exp)
    assert e["jobSummary"] is None
    e = e["experiment"]
    assert e["numTrials"] == 1 and e["trialIds"] == [trial] and e["labels"] == ["first", "second"] and e["bestTrialId"] == trial
    listed = user.call("get_experiments", archived=False, limit=200, offset=0, users=["admin"])
    assert [x["id"] for x in listed["experiments"]] == [exp] and listed["pagination"]["total"] == 1
    assert user.call("get_experiments", limit=-2)["pagination"] == {"offset": 0, "limit": -2, "startIndex": 0, "endIndex": 0, "total": 1}
    assert user.call("get_experiments", name="FLO", labels=["second"], states=["STATE_COMPLETED"], experimentIdFilter__gte=exp)["experiments"]
    assert not user.call("get_experiments", labels=["third"])["experiments"]
    t = user.call("get_trial", trialId=trial)["trial"]
    assert t["state"] == "STATE_COMPLETED" and t["totalBatchesProcessed"] == 200 and t["restarts"] == 0
    assert t["bestValidation"]["metrics"]["avgMetrics"] == {"loss": 0.25, "acc": 0.9} and t["searcherMetricValue"] == 0.25
    assert t["summaryMetrics"]["avg_metrics"]["loss"]["count"] == 2 and t["bestCheckpoint"]["totalBatches"] == 200
    assert all(isinstance(n, str) for n in t["bestCheckpoint"]["resources"].values()) and t["bestCheckpoint"]["resources"]
    w = user.call("get_trial_workloads", trialId=trial, limit=500)["workloads"]
    assert [list(x)[0] for x in w] == ["training", "checkpoint", "training", "validation", "checkpoint"], w
    assert len(user.call("get_trial_workloads", trialId=trial, filter="FILTER_OPTION_CHECKPOINT")["workloads"]) == 2
    assert len(user.call("get_metrics", trialIds=[trial])[0]["metrics"]) == 3
    assert user.call("get_validation_metrics", trialIds=[trial])[0]["metrics"][0]["metrics"]["validation_metrics"]["acc"] == 0.9
    user.call("get_training_metrics", trialIds=[trial])
    user.refused(400, "trialIds", "get_metrics")
    assert len(user.call("get_validation_history", experimentId=exp)["validationHistory"]) == 1
    assert user.call("get_experiment_labels")["labels"] == ["first", "second"]
    files(user, exp)
    logs(user, trial, task)
    return checkpoints(user, exp, trial)


def files(user, exp):
    assert base64.b64decode(user.call("get_model_def", experimentId=exp)["b64Tgz"])[:2] == b"\x1f\x8b"
    tree = user.call("get_model_def_tree", experimentId=exp)["files"]
    assert {f["path"]: [g["path"] for g in f["files"]] for f in tree} == {"model_def.py": [], "sub": ["sub/b.txt"]}, tree
    assert base64.b64decode(user.call("get_model_def_file", {"path": "sub/b.txt"}, experimentId=exp)["file"]) == b"b"
    user.refused(404, "nothing.py", "get_model_def_file", {"path": "nothing.py"}, experimentId=exp)
    assert user.call("download_file", experimentId=exp, path="model_def.py") == b"x = 1\n"
    assert user.call("download_model_def", experimentId=exp)[:2] == b"\x1f\x8b"


def very_many_files(user):
    """Each in a folder of its own, so that every folder has all the others beside it."""
    names = [f"d{i:05d}" for i in range(MANY_FOLDERS)]
    config = CONFIG.replace("name: flow", "name: very many files").replace("model_def:T", "ls -R")
    exp = create(user, config, activate=False, modelDefinition=[file(f"{n}/{end}", "x") for end in "ab" for n in names])["experiment"]["id"]
    tree = user.call("get_model_def_tree", experimentId=exp)["files"]
    assert sorted(f["path"] for f in tree) == names
    assert all([g["path"] for g in f["files"]] == [f["path"] + "/a", f["path"] + "/b"] for f in tree)
    user.call("kill_experiment", id=exp)


def logs(user, trial, task):
    lines = user.call("trial_logs", trialId=trial)
    assert any(x.get("source") == "master" for x in lines)
    assert [x["log"] for x in user.call("trial_logs", trialId=trial, levels=["LOG_LEVEL_ERROR"], stdtypes=["stdout"], rankIds=[0])] == ["hello\n"]
    assert user.call("trial_logs", trialId=trial, searchText="hell", timestampAfter="2024-05-06T07:08:09Z", timestampBefore="2025-01-01T00:00:00Z")
    assert not user.call("trial_logs", trialId=trial, containerIds=["none"])
    newest = user.call("trial_logs", trialId=trial, orderBy="ORDER_BY_DESC", limit=1)
    assert [x["id"] for x in newest] == [lines[-1]["id"]]
    assert len(user.call("task_logs", taskId=task)) == len(lines)
    assert user.call("task_logs", taskId=task, allocationIds=[first_alloc(user, task)], follow=True)
    assert user.call("trial_logs_fields", trialId=trial)[0]["rankIds"] == [0]
    assert user.call("task_logs_fields", taskId=task, follow=True)[0]["allocationIds"]
    user.refused(400, "exclude each other", "trial_logs", trialId=trial, limit=5, follow=True)
    user.refused(404, "", "trial_logs", trialId=999)


def checkpoints(user, exp, trial):
    mine = user.call("get_experiment_checkpoints", id=exp, sortByAttr="SORT_BY_BATCH_NUMBER", orderBy="ORDER_BY_DESC")["checkpoints"]
    best = [k for k in mine if k["state"] == "STATE_COMPLETED"][0]
    assert best["metadata"]["steps_completed"] == 200 and best["resources"] == {"state_dict.pth": "1000", "code/": "0"}
    assert best["training"]["searcherMetric"] == 0.25 and best["training"]["trialId"] == trial
    assert user.call("get_trial_checkpoints", id=trial, sortByMetric="loss")["pagination"]["total"] == 2
    user.refused(400, "not both", "get_trial_checkpoints", id=trial, sortByMetric="loss", sortByAttr="SORT_BY_UUID")
    key = best["uuid"]
    assert user.call("get_checkpoint", checkpointUuid=key)["checkpoint"]["hashes"] == {"state_dict.pth": HASH}
    user.refused(400, "not a UUID", "get_checkpoint", checkpointUuid="zz")
    user.refused(404, "", "get_checkpoint", checkpointUuid=str(uuid.uuid4()))
    changed = user.call("post_checkpoint_metadata", {"checkpoint": {"uuid": key, "metadata": {"steps_completed": 200, "mine": 1}}}, checkpoint__uuid=key)
    assert changed["checkpoint"]["metadata"]["mine"] == 1
    status, data, _ = user.raw("GET", f"/checkpoints/{key}", headers={"Accept": "application/gzip"})
    assert status == 501 and b"not on the master's host" in data, (status, data)
    assert user.raw("GET", f"/checkpoints/{key}")[0] == 415
    return key


def collect(user, agent, exp, keep):
    """The policy's collection, a deletion by hand and the experiment's own deletion run as zero-slot tasks."""
    order = agent.next("start")
    assert order["task"]["kind"] == "CHECKPOINT_GC" and keep not in order["task"]["gc"]["uuids"]
    gc_done(user, agent, order)
    user.refused(404, "", "delete_checkpoints", {"checkpointUuids": [str(uuid.uuid4())]})
    user.call("remove_checkpoint_files", {"checkpointUuids": [keep], "checkpointGlobs": []})
    user.refused(400, "empty", "remove_checkpoint_files", {"checkpointUuids": [keep], "checkpointGlobs": [""]})
    user.call("delete_checkpoints", {"checkpointUuids": [keep]})
    order = agent.next("start")
    assert order["task"]["gc"]["uuids"] == [keep]
    gc_done(user, agent, order)
    assert user.call("get_checkpoint", checkpointUuid=keep)["checkpoint"]["state"] == "STATE_DELETED"
    assert user.call("delete_experiment", experimentId=exp) == {}
    order = agent.next("start")  # what rests in the quarantine goes with its experiment
    assert order["task"]["gc"]["action"] == "purge" and keep in order["task"]["gc"]["uuids"], order["task"]["gc"]
    gc_done(user, agent, order)

    def gone():
        try:
            user.call("get_experiment", experimentId=exp)
            return False
        except Failed as e:
            return e.status == 404
    wait_until(gone, 20, "the experiment to be gone")


def gc_done(user, agent, order):
    a = Api(user.port, alloc=order["task"]["token"])
    agent.run(order)
    a.call("patch_checkpoints", {"checkpoints": [{"uuid": k, "resources": {"resources": {}}} for k in order["task"]["gc"]["uuids"]]})
    agent.exit(order)


def main():
    with Cluster(agents=0) as c:
        c.login()
        user = Api(c.port, c.token)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        session(user, c.port)
        exp, trial, task = one_trial(c, user, agent)
        keep = reads(user, exp, trial, task)
        assert len(user.call("get_task", taskId=task)["task"]["allocations"]) == 2
        user.call("get_allocation", allocationId=first_alloc(user, task))
        assert user.call("get_task_accelerators", taskId=task)["acceleratorData"][0]["acceleratorType"] == "cpu"
        collect(user, agent, exp, keep)
        very_many_files(user)
        agent.close()
    print("test_api_flows: passed")


main()
