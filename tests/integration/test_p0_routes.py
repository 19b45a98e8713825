"""Every route that clients of Determined need, by a table: what it answers (checked against proto/openapi.yaml), and what
it refuses: no token, a wrong one, one of the wrong kind, ids that are no numbers or of nothing, broken bodies, other methods."""
import base64
import hashlib
import json
import os
import re
import sys
import urllib.parse
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api, Failed  # noqa: E402

CONFIG = """
name: table
labels: [p0]
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: single, metric: loss, max_length: {batches: 100}}
"""

# What the contract calls P0: the routes that must be there.
P0 = """
GET /info | GET /experiments/{}/model_def | GET /checkpoints/{}
POST auth/login | POST auth/logout | GET auth/user | GET me | GET users | GET users/{} | GET users/{}/by-username | POST users
POST users/{}/password | PATCH users/{} | GET master | GET master/telemetry | GET master/config | GET master/logs
POST experiments | GET experiments | GET experiments/{} | GET experiments/{}/trials | GET experiments/{}/model_def
GET experiments/{}/file_tree | POST experiments/{}/file | GET experiments/{}/validation-history
GET experiments/{}/searcher/best_searcher_validation_metric | GET experiments/{}/checkpoints | GET experiment/labels
POST experiments/{}/activate | POST experiments/{}/pause | POST experiments/{}/cancel | POST experiments/{}/kill
POST experiments/{}/archive | POST experiments/{}/unarchive | DELETE experiments/{} | POST experiments/activate
POST experiments/pause | POST experiments/cancel | POST experiments/kill | POST experiments/archive | POST experiments/unarchive
DELETE experiments/delete | POST experiments/continue | POST experiments/move | POST experiments/{}/move | PATCH experiments/{} | PUT experiments/{}/labels/{}
DELETE experiments/{}/labels/{} | GET trials/{} | GET trials/{}/workloads | GET trials/{}/checkpoints | GET trials/{}/logs
GET trials/{}/logs/fields | POST trials/{}/kill | GET trials/metrics/trial_metrics | GET trials/metrics/training_metrics
GET trials/metrics/validation_metrics | GET trials/{}/searcher/operation | POST trials/{}/progress
POST trials/{}/searcher/completed_operation | POST trials/{}/early_exit | POST trials/{}/runner/metadata | POST trials/{}/metrics
POST trials/{}/training_metrics | POST trials/{}/validation_metrics | POST checkpoints | POST trials/profiler/metrics
GET trials/{}/profiler/available_series | GET trials/{}/profiler/metrics | GET tasks/{}/context_directory
POST allocations/{}/acceleratorData | GET allocations/{}/resources/{}/rendezvous | GET allocations/{}/signals/preemption
POST allocations/{}/signals/ack_preemption | POST allocations/{}/all_gather | POST allocations/{}/resources/{}/daemon
POST allocations/{}/ready | POST allocations/{}/waiting | POST task/logs | GET allocations/{} | GET checkpoints/{}
POST checkpoints/{}/metadata | PATCH checkpoints | POST checkpoints/rm | DELETE checkpoints | GET tasks | GET tasks/{}
GET tasks/count | GET tasks/{}/acceleratorData | GET tasks/{}/logs | GET tasks/{}/logs/fields | GET agents | GET agents/{}
GET agents/{}/slots | GET agents/{}/slots/{} | POST agents/{}/enable | POST agents/{}/disable | POST agents/{}/slots/{}/enable
POST agents/{}/slots/{}/disable | GET resource-pools | GET job-queues-v2 | GET job-queues | GET job-queues/stats | POST job-queues
"""
INTEGERS = {"experimentId", "trialId", "userId", "experiment.id", "labels.trialId"}
STREAMED = {"trial_logs", "task_logs", "trial_logs_fields", "task_logs_fields", "master_logs"}


def hashed(text):
    return hashlib.sha512(("GubPEmmotfiK9TMD6Zdw" + text).encode()).hexdigest()


def listed():
    """The operations of P0, by the contract's paths."""
    by_path = {(m, re.sub(r"{[^}]*}", "{}", p)): op for op, (m, p, _) in Api.contract.ops.items()}
    out = []
    for row in re.split(r"[|\n]", P0.strip()):
        method, path = row.split()
        path = path if path.startswith("/") else "/api/v1/" + path
        assert (method, path) in by_path, f"no such route: {method} {path}"
        out.append(by_path[(method, path)])
    return out


def filled(path, values):
    """The path with its variables replaced: by name, else something of the right form."""
    def one(m):
        name = m.group(1)
        known = {"allocationId": "x.1", "resourcesId": "r", "taskId": "t", "agentId": "none", "slotId": "0", "label": "l",
                 "checkpointUuid": str(uuid.UUID(int=5)), "checkpoint.uuid": str(uuid.UUID(int=5)), "username": "none"}
        return urllib.parse.quote(str(values.get(name, known.get(name, 999999))), safe="")
    return re.sub(r"{([^}]+)}", one, path)


def is_integer(op, name):
    path = Api.contract.ops[op][1]
    return name in INTEGERS or name == "id" and ("/experiments/" in path or "/trials/" in path)


def refusals(c, admin, plain, task):
    """The same for all of them: who may not, and what cannot be read."""
    anyone, forged = Api(c.port), Api(c.port, "forged")
    for op in listed():
        method, path, spec = Api.contract.ops[op]
        target = filled(path, {})
        auth = spec["x-auth"]
        if auth != "none":
            for api in (anyone, forged):
                status, data, _ = api.raw(method, target)
                assert status == 401, f"{op} without a token: {status} {data[:200]}"
            if auth in ("user", "admin"):
                status, data, _ = task.raw(method, target)
                assert status == 403, f"{op} with a task's token: {status} {data[:200]}"
            if auth == "admin":
                status, data, _ = plain.raw(method, target)
                assert status == 403, f"{op} by somebody: {status} {data[:200]}"
        for name in re.findall(r"{([^}]+)}", path):
            if is_integer(op, name):
                status, data, _ = admin.raw(method, filled(path, {name: "12x"}))
                assert status == 400, f"{op} with {name} 12x: {status} {data[:200]}"
        if method in ("POST", "PATCH") and "requestBody" in spec and auth != "none":
            who = task if op in ("post_checkpoint",) else admin
            status, data, _ = who.raw(method, target, "{broken")
            assert status in (400, 403, 404), f"{op} with a broken body: {status} {data[:200]}"


def others(admin):
    """Methods that a path does not have, paths that are not there, the slash at the end."""
    for path in {Api.contract.ops[op][1] for op in listed()}:
        methods = {m for m, p, _ in Api.contract.ops.values() if re.sub(r"{[^}]*}", "{}", p) == re.sub(r"{[^}]*}", "{}", path)}
        # A literal path may also fit a pattern of variables: /experiments/delete has what /experiments/{id} has.
        patterns = [re.sub(r"{[^}]*}", "[^/]+", p) for _, p, _ in Api.contract.ops.values()]
        fitting = {m for (m, p, _), pattern in zip(Api.contract.ops.values(), patterns) if re.fullmatch(pattern, filled(path, {}))}
        for method in sorted({"GET", "POST", "PUT", "PATCH", "DELETE"} - methods - fitting):
            status, data, _ = admin.raw(method, filled(path, {}))
            assert status == 405, f"{method} {path}: {status}"
            assert set(json.loads(data)["error"] if path.startswith("/api/") else {"code", "reason", "error"}) == {"code", "reason", "error"}
    for path, shape in (("/api/v1/no/such", "error"), ("/api/v2/me", "error"), ("/nothing", "message")):
        status, data, _ = admin.raw("GET", path)
        assert status == 404 and list(json.loads(data)) == [shape], (path, data)
    assert admin.raw("GET", "/api/v1/experiments/?limit=1")[0] == 200


class World:
    """One experiment that runs on a stand-in agent, and one that is paused."""
    def __init__(self, c, admin, agent):
        files = [{"path": "model_def.py", "type": 48, "content": base64.b64encode(b"x").decode(), "mtime": "0", "mode": 33188, "uid": 0, "gid": 0}]
        self.c, self.admin, self.agent = c, admin, agent
        self.exp = admin.call("create_experiment", {"config": CONFIG, "activate": True, "modelDefinition": files})["experiment"]["id"]
        self.order = agent.next("start")
        agent.run(self.order)
        self.alloc, self.container, self.task_id = self.order["alloc"], self.order["container"], self.order["task"]["task_id"]
        self.trial = int(self.order["task"]["env"]["DET_TRIAL_ID"])
        self.task = Api(c.port, alloc=self.order["task"]["token"])
        self.paused = admin.call("create_experiment", {"config": CONFIG, "activate": False, "modelDefinition": files})["experiment"]["id"]
        self.ckpt = str(uuid.uuid4())

    def report(self, steps, loss):
        return {"trialId": self.trial, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": {"loss": loss}}}


def running(w):
    """(who, operation, body, parameters) of what is asked while a trial runs, in the order of its life."""
    t, a = w.task, w.admin
    labels = {"trialId": w.trial, "name": "cpu", "agentId": "", "gpuUuid": "", "metricType": "PROFILER_METRIC_TYPE_SYSTEM"}
    alloc, trial, exp = {"allocationId": w.alloc}, {"trialId": w.trial}, {"experimentId": w.exp}
    return [
        (t, "get_me", None, {}), (t, "get_context_directory", None, {"taskId": w.task_id}),
        (t, "post_accelerators", {"acceleratorData": {"containerId": w.container, "allocationId": w.alloc, "taskId": w.task_id,
                                                      "nodeName": "n", "acceleratorType": "cpu", "acceleratorUuids": []}}, alloc),
        (t, "rendezvous", None, {**alloc, "resourcesId": w.container}), (t, "preemption_signal", None, {**alloc, "timeoutSeconds": 0}),
        (t, "all_gather", {"requestUuid": "u", "numPeers": 1, "data": {}}, alloc), (t, "allocation_ready", {}, alloc),
        (t, "allocation_waiting", None, alloc), (t, "mark_daemon", None, {**alloc, "resourcesId": w.container}),
        (t, "get_allocation", None, alloc), (t, "get_trial", None, trial), (t, "get_searcher_operation", None, trial),
        (t, "post_runner_metadata", {"state": "training"}, trial), (t, "post_progress", "50", trial),
        (t, "post_training_metrics", w.report(50, 0.5), trial),
        (t, "post_metrics", {"metrics": w.report(100, 0.25), "group": "training"}, trial), (t, "post_validation_metrics", w.report(100, 0.25), trial),
        (t, "get_best_searcher_validation_metric", None, exp),
        (t, "post_profiler_metrics", {"batches": [{"values": [1], "batches": [1], "timestamps": ["2024-01-01T00:00:00Z"], "labels": labels}]}, {}),
        (t, "get_profiler_series", None, trial), (t, "get_profiler_metrics", None, {"labels.trialId": w.trial, "labels__name": "cpu"}),
        (t, "post_checkpoint", {"uuid": w.ckpt, "taskId": w.task_id, "allocationId": w.alloc, "resources": {"a": "1"}, "metadata": {"steps_completed": 100}}, {}),
        (t, "post_task_logs", {"logs": [{"task_id": w.task_id, "log": "line\n", "rank_id": 0}]}, {}),
        (t, "post_task_logs_plain", [{"task_id": w.task_id, "log": "line\n", "rank_id": 0}], {}),
        (a, "get_experiment_trials", None, exp), (a, "get_model_def", None, exp), (a, "get_model_def_tree", None, exp),
        (a, "get_model_def_file", {"path": "model_def.py"}, exp), (a, "download_model_def", None, exp), (a, "get_validation_history", None, exp),
        (a, "get_experiment_checkpoints", None, {"id": w.exp}), (a, "get_experiment_labels", None, {}), (a, "get_experiments", None, {"limit": 1}),
        (a, "get_experiment", None, exp), (a, "get_trial_workloads", None, trial), (a, "get_trial_checkpoints", None, {"id": w.trial}),
        (a, "trial_logs", None, trial), (a, "trial_logs_fields", None, trial), (a, "task_logs", None, {"taskId": w.task_id}),
        (a, "task_logs_fields", None, {"taskId": w.task_id}), (a, "get_metrics", None, {"trialIds": [w.trial]}),
        (a, "get_training_metrics", None, {"trialIds": [w.trial]}), (a, "get_validation_metrics", None, {"trialIds": [w.trial]}),
        (a, "get_checkpoint", None, {"checkpointUuid": w.ckpt}),
        (a, "post_checkpoint_metadata", {"checkpoint": {"uuid": w.ckpt, "metadata": {"steps_completed": 100}}}, {"checkpoint__uuid": w.ckpt}),
        (a, "get_tasks", None, {}), (a, "get_task", None, {"taskId": w.task_id}), (a, "get_tasks_count", None, {}),
        (a, "get_task_accelerators", None, {"taskId": w.task_id}), (a, "get_jobs", None, {}), (a, "get_jobs_v2", None, {"resourcePool": "default"}),
        (a, "get_job_queue_stats", None, {"resourcePools": ["default"]}),
        (t, "post_completed_operation", {"op": {"length": "100"}, "searcherMetric": 0.25}, trial), (t, "ack_preemption", {}, alloc),
    ]


def cluster_side(w):
    a, ids = w.admin, {"experimentIds": [w.paused]}
    agent, slot = {"agentId": "agent-x"}, {"agentId": "agent-x", "slotId": 1}
    job = a.call("get_jobs")["jobs"][0]["jobId"]
    return [
        (Api(w.c.port), "info", None, {}), (Api(w.c.port), "get_master", None, {}), (Api(w.c.port), "get_telemetry", None, {}),
        (a, "get_master_config", None, {}), (a, "master_logs", None, {"limit": 1}), (a, "current_user", None, {}), (a, "get_users", None, {}),
        (a, "get_user", None, {"userId": 1}), (a, "get_user_by_username", None, {"username": "admin"}),
        (a, "post_user", {"user": {"username": "bob", "active": True}}, {}), (a, "patch_user", {"displayName": "B"}, {"userId": 4}),
        (a, "set_user_password", json.dumps(hashed("b")), {"userId": 4}),
        (a, "get_agents", None, {}), (a, "get_agent", None, agent), (a, "get_slots", None, agent), (a, "get_slot", None, slot),
        (a, "disable_slot", {"drain": True}, slot), (a, "enable_slot", None, slot), (a, "disable_agent", {"drain": True}, agent),
        (a, "enable_agent", None, agent), (a, "get_resource_pools", None, {}), (a, "update_job_queue", {"updates": [{"jobId": job, "weight": 2}]}, {}),
        (a, "patch_experiment", {"description": "d"}, {"experiment__id": w.exp}), (a, "put_experiment_label", None, {"experimentId": w.exp, "label": "x"}),
        (a, "delete_experiment_label", None, {"experimentId": w.exp, "label": "x"}),
        (a, "activate_experiments", {"experimentIds": []}, {}), (a, "pause_experiments", ids, {}), (a, "pause_experiment", None, {"id": w.paused}),
        (a, "move_experiment", {"destinationProjectId": 1}, {"experimentId": w.paused}), (a, "move_experiments", {**ids, "destinationProjectId": 1}, {}),
        (a, "cancel_experiment", None, {"id": w.paused}), (a, "cancel_experiments", ids, {}), (a, "kill_experiment", None, {"id": w.paused}),
        (a, "kill_experiments", ids, {}), (a, "archive_experiment", None, {"id": w.paused}), (a, "unarchive_experiment", None, {"id": w.paused}),
        (a, "archive_experiments", ids, {}), (a, "unarchive_experiments", ids, {}), (a, "disable_agent", {"drain": True}, agent),
        (a, "continue_experiment", {"id": w.paused}, {}), (a, "kill_experiment", None, {"id": w.paused}), (a, "enable_agent", None, agent),
        (a, "delete_experiment", None, {"experimentId": w.paused}),
        (a, "delete_experiments", {"experimentIds": []}, {}), (a, "activate_experiment", None, {"id": w.exp}),
        (w.task, "post_early_exit", {"reason": "EXITED_REASON_INVALID_HP"}, {"trialId": w.trial}), (a, "kill_trial", None, {"id": w.trial}),
        (a, "remove_checkpoint_files", {"checkpointUuids": [w.ckpt], "checkpointGlobs": []}, {}),
        (w.task, "patch_checkpoints", {"checkpoints": [{"uuid": w.ckpt}]}, {}), (a, "delete_checkpoints", {"checkpointUuids": []}, {}),
    ]


def answers(rows, called):
    for who, op, body, params in rows:
        params = {k.replace(".", "__"): v for k, v in params.items()}
        try:
            who.call(op, body, **params)
        except Failed as e:
            raise AssertionError(f"{op} {params}: {e}")
        called.add(op)


def download(w):
    """A checkpoint's archive: none of the master's host here, so the refusal; and what the client must accept."""
    path = f"/checkpoints/{w.ckpt}"
    for accept in ("application/gzip", "application/zip"):
        assert w.admin.raw("GET", path, headers={"Accept": accept})[0] == 501
    for headers in ({}, {"Accept": "text/html"}):
        assert w.admin.raw("GET", path, headers=headers)[0] == 415


def ended(w):
    """A token reads nothing once its allocation has ended."""
    w.agent.exit(w.order)
    wait_until(lambda: w.alloc not in w.admin.call("get_tasks")["allocationIdToSummary"], 20, "the allocation to end")
    for op, params in (("get_me", {}), ("get_trial", {"trialId": w.trial}), ("get_searcher_operation", {"trialId": w.trial}),
                       ("get_context_directory", {"taskId": w.task_id}), ("get_checkpoint", {"checkpointUuid": w.ckpt})):
        w.task.refused(409, "has ended", op, **params)
    w.task.call("post_task_logs", {"logs": [{"task_id": w.task_id, "log": "the last words\n"}]})


def main():
    with Cluster(agents=0) as c:
        c.login()
        admin = Api(c.port, c.token)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        admin.call("post_user", {"user": {"username": "ann", "active": True}, "password": hashed("a"), "isHashed": True})
        plain = Api(c.port, Api(c.port).call("login", {"username": "ann", "password": hashed("a"), "isHashed": True})["token"])
        w = World(c, admin, agent)
        refusals(c, admin, plain, w.task)
        others(admin)
        called = {"login", "create_experiment"}
        answers(running(w), called)
        download(w)
        answers(cluster_side(w), called)
        ended(w)
        answers([(plain, "logout", None, {})], called)
        missing = set(listed()) - called - {"download_checkpoint"}
        assert not missing, f"not tried: {sorted(missing)}"
        agent.close()
    print(f"test_p0_routes: {len(listed())} routes passed")


main()
