"""The flows of Determined's Python client, byte for byte as it asks: one kept-alive connection, bodies without a Content-Type,
no body at all for an empty one, snake_case where it sends that, null for what is not set. Answers are checked against
proto/openapi.yaml: fields, not their order. The rest of each flow is what it does when it is refused."""
import base64
import hashlib
import http.client
import io
import json
import os
import sys
import tarfile
import threading
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import SLOWER, TERMINAL, Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Contract  # noqa: E402

CONTRACT = Contract()
SALT = "GubPEmmotfiK9TMD6Zdw"
CONFIG = """name: flow
entrypoint: model_def:T
hyperparameters:
  global_batch_size: 32
searcher:
  name: single
  metric: loss
  max_length:
    batches: 937
max_restarts: 1
"""


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Session:
    """As requests.Session sends it."""
    def __init__(self, port, token=None, alloc=None):
        self.port, self.headers = port, {"User-Agent": "python-requests/2.31.0", "Accept-Encoding": "gzip, deflate", "Accept": "*/*", "Connection": "keep-alive"}
        if token:
            self.headers["Authorization"] = "Bearer " + token
        if alloc:
            self.headers["Grpc-Metadata-x-allocation-token"] = "Bearer " + alloc
        self.conn, self.dials = None, 0

    def send(self, method, path, body=None):
        if not self.conn:
            self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=100 * SLOWER)
            self.dials += 1
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.conn.putrequest(method, path, skip_host=False, skip_accept_encoding=True)
        for k, v in self.headers.items():
            self.conn.putheader(k, v)
        if data is not None or method in ("POST", "PATCH", "PUT"):
            self.conn.putheader("Content-Length", str(len(data or b"")))
        self.conn.endheaders(data)
        return self.conn.getresponse()

    def call(self, op, method, path, body=None):
        """op: of openapi.yaml, whose answer this must be."""
        r = self.send(method, path, body)
        text = r.read()
        if r.status != 200:
            v = json.loads(text)
            if path.startswith("/api/"):
                CONTRACT.check(CONTRACT.doc["components"]["schemas"]["Error"], v, op)
            raise ApiError(r.status, v)
        assert r.getheader("Content-Type") == "application/json", r.getheaders()
        v = json.loads(text)
        CONTRACT.check(CONTRACT.ops[op][2]["responses"]["200"]["content"]["application/json"]["schema"], v, op)
        return v

    def stream(self, op, path):
        """A connection of its own: the stream may last."""
        other = Session(self.port)
        other.headers = self.headers
        r = other.send("GET", path)
        assert r.status == 200, (r.status, r.getheaders())
        for line in r:
            v = json.loads(line)  # every line is JSON: there are no blank ones
            CONTRACT.check(CONTRACT.ops[op][2]["responses"]["200"]["content"]["application/json"]["schema"], v["result"], op)
            yield v["result"]

    def refused(self, status, op, method, path, body=None):
        try:
            self.call(op, method, path, body)
        except ApiError as e:
            assert e.status == status, f"{op}: {e} instead of {status}"
            return e.body
        raise AssertionError(f"{op} was not refused")


def hashed(password):
    return hashlib.sha512((SALT + password).encode()).hexdigest() if password else ""


def login(c):
    """Flow (a), 1 and 2: the version, a token that is stale, the default account, the user's own."""
    s = Session(c.port)
    assert s.call("info", "GET", "/info")["version"] == "0.27.0"
    Session(c.port, "v2.public.stale").refused(401, "get_me", "GET", "/api/v1/me")
    body = s.refused(403, "login", "POST", "/api/v1/auth/login", {"username": "determined", "password": "", "isHashed": True})
    assert body["error"]["reason"] == "PermissionDenied"
    s.refused(401, "login", "POST", "/api/v1/auth/login", {"username": "admin", "password": hashed("wrong"), "isHashed": True})
    s.refused(400, "login", "POST", "/api/v1/auth/login", {"username": "", "password": "", "isHashed": True})
    password = open(c.path("admin.password")).read().strip()
    got = s.call("login", "POST", "/api/v1/auth/login", {"username": "admin", "password": hashed(password), "isHashed": True})
    assert got["user"]["username"] == "admin" and s.dials == 1, "one connection for all of it, refusals too"
    user = Session(c.port, got["token"])
    assert user.call("get_me", "GET", "/api/v1/me")["user"]["admin"] is True
    return user


def entry(path, data=b"", kind=48, mode=33188):
    return {"path": path, "type": kind, "content": base64.b64encode(data).decode(), "mtime": "1690000000", "mode": mode, "uid": 0, "gid": 0}


def submit(user, config=CONFIG, activate=True, validate=False):
    return user.call("create_experiment", "POST", "/api/v1/experiments", {
        "activate": activate, "config": config, "gitCommit": None, "gitCommitDate": None, "gitCommitter": None, "gitRemote": None,
        "modelDefinition": [entry("model_def.py", b"x = 1\n"), entry("data", kind=53, mode=16877), entry("data/a.txt", b"a")],
        "parentId": None, "projectId": None, "template": None, "unmanaged": None, "validateOnly": validate})


def follow_first_trial(user):
    """Flow (a), 3 to 5."""
    made = submit(user)
    exp = made["experiment"]["id"]
    assert made["experiment"]["state"] in ("STATE_ACTIVE", "STATE_QUEUED") and made["warnings"] == []
    assert made["config"]["searcher"]["max_length"] == {"batches": 937} and made["experiment"]["originalConfig"] == CONFIG

    def trials():
        return user.call("get_experiment_trials", "GET", f"/api/v1/experiments/{exp}/trials")["trials"]
    trial = min(t["id"] for t in wait_until(trials, 10, "the first trial"))
    lines = []
    thread = threading.Thread(target=lambda: lines.extend(user.stream("trial_logs", f"/api/v1/trials/{trial}/logs?follow=true")), daemon=True)
    thread.start()
    return exp, trial, lines, thread


class Task:
    """Flow (b): what runs in a container."""
    def __init__(self, c, agent, order):
        self.order, self.agent = order, agent
        self.alloc, self.container, self.task = order["alloc"], order["container"], order["task"]["task_id"]
        env = order["task"]["env"]
        self.trial, self.exp, self.run = int(env["DET_TRIAL_ID"]), int(env["DET_EXPERIMENT_ID"]), int(env["DET_TRIAL_RUN_ID"])
        assert env["DET_ALLOCATION_ID"] == self.alloc and env["DET_TASK_ID"] == self.task and env["DET_SESSION_TOKEN"], env
        self.env, self.s = env, Session(c.port, alloc=order["task"]["token"])
        self.shipper = Session(c.port, alloc=order["task"]["token"])
        self.preempted = threading.Event()

    def prepare(self):
        """1 to 8, until the searcher's operation."""
        assert self.shipper.call("get_me", "GET", "/api/v1/me")["user"]["username"] == "admin"
        tgz = base64.b64decode(self.s.call("get_context_directory", "GET", f"/api/v1/tasks/{self.task}/context_directory")["b64Tgz"])
        with tarfile.open(fileobj=io.BytesIO(tgz)) as tar:
            assert sorted(x.rstrip("/") for x in tar.getnames()) == ["data", "data/a.txt", "model_def.py"], tar.getnames()
        base = f"/api/v1/allocations/{self.alloc}"
        self.s.call("post_accelerators", "POST", base + "/acceleratorData", {"allocationId": self.alloc, "acceleratorData": {
            "containerId": self.container, "allocationId": self.alloc, "nodeName": "n", "taskId": self.task, "acceleratorType": "cpu", "acceleratorUuids": []}})
        info = self.s.call("rendezvous", "GET", f"{base}/resources/{self.container}/rendezvous")["rendezvousInfo"]
        assert len(info["addresses"]) == len(info["slots"]) == 1 and info["rank"] == 0
        assert self.s.call("preemption_signal", "GET", base + "/signals/preemption?timeout_seconds=0") == {"preempt": False}
        threading.Thread(target=self.watch, daemon=True).start()
        assert self.s.call("get_trial", "GET", f"/api/v1/trials/{self.trial}")["trial"]["id"] == self.trial
        return self.operation()

    def watch(self):
        watcher = Session(self.s.port)
        watcher.headers = self.s.headers
        try:
            while not watcher.call("preemption_signal", "GET", f"/api/v1/allocations/{self.alloc}/signals/preemption?timeout_seconds=60")["preempt"]:
                pass
            self.preempted.set()
        except (ApiError, OSError, http.client.HTTPException):
            pass  # the allocation has ended

    def operation(self):
        return self.s.call("get_searcher_operation", "GET", f"/api/v1/trials/{self.trial}/searcher/operation")

    def state(self, name):
        self.s.call("post_runner_metadata", "POST", f"/api/v1/trials/{self.trial}/runner/metadata", {"state": name})

    def report(self, group, steps, values, batches=None):
        metrics = {"avgMetrics": values, **({"batchMetrics": batches} if batches else {})}
        self.s.call("post_metrics", "POST", f"/api/v1/trials/{self.trial}/metrics", {"group": group, "metrics": {
            "metrics": metrics, "stepsCompleted": steps, "trialId": self.trial, "trialRunId": self.run}})

    def train(self, first, last):
        self.state("training")
        for steps in [*range(first, last, 100), last]:
            self.report("training", steps, {"loss": 1 / steps}, [{"loss": 1 / steps}])
            self.s.call("post_progress", "POST", f"/api/v1/trials/{self.trial}/progress", json.dumps(float(steps)).encode())

    def ship(self, *lines):
        """As the log shipper does: snake_case, nulls, a time with an offset."""
        self.shipper.call("post_task_logs", "POST", "/api/v1/task/logs", {"logs": [{
            "timestamp": "2024-05-06T09:08:09.250000+02:00", "stdtype": "stdout", "task_id": self.task, "allocation_id": self.alloc,
            "container_id": self.container, "agent_id": "agent-x", "source": "task", "log": x, "rank_id": 0, "level": None} for x in lines]})

    def checkpoint(self, steps):
        self.state("checkpointing")
        key = str(uuid.uuid4())
        self.s.call("post_checkpoint", "POST", "/api/v1/checkpoints", {
            "allocationId": self.alloc, "metadata": {"determined_version": "0.27.0", "format": "pickle", "framework": "torch-1.13.1", "steps_completed": steps},
            "resources": {"code/": 0, "code/model_def.py": 6, "state_dict.pth": 1000}, "state": "STATE_COMPLETED", "taskId": self.task, "training": None,
            "uuid": key, "reportTime": "2024-05-06T07:08:10.25Z"})
        return key

    def acknowledge(self):
        self.s.call("ack_preemption", "POST", f"/api/v1/allocations/{self.alloc}/signals/ack_preemption", {"allocationId": self.alloc})


def first_half(t, user):
    """To the pause: training is shipped, and the state seen from outside."""
    op = t.prepare()
    assert op["op"]["validateAfter"]["length"] == "937" and op["completed"] is False
    t.ship("hello\n", "two\n")
    t.train(100, 400)
    best = f"/api/v1/experiments/{t.exp}/searcher/best_searcher_validation_metric"
    t.s.refused(404, "get_best_searcher_validation_metric", "GET", best)
    t.s.refused(400, "post_completed_operation", "POST", f"/api/v1/trials/{t.trial}/searcher/completed_operation", {"op": {"length": 5}, "searcherMetric": 1})
    assert user.call("get_trial", "GET", f"/api/v1/trials/{t.trial}")["trial"]["state"] == "STATE_RUNNING"


def pause_and_resume(c, user, agent, t):
    """Flow (c)."""
    assert user.call("pause_experiment", "POST", f"/api/v1/experiments/{t.exp}/pause") == {}
    assert user.call("get_experiment", "GET", f"/api/v1/experiments/{t.exp}")["experiment"]["state"] == "STATE_PAUSED"
    assert user.call("get_trial", "GET", f"/api/v1/trials/{t.trial}")["trial"]["state"] == "STATE_PAUSED"
    assert t.preempted.wait(10 * SLOWER), "the long poll did not tell of the pause"
    t.acknowledge()
    key = t.checkpoint(400)
    t.report("training", 500, {"loss": 0.5})  # past the checkpoint: rolled back by the next run
    agent.exit(t.order)
    user.call("pause_experiment", "POST", f"/api/v1/experiments/{t.exp}/pause")
    assert user.call("activate_experiment", "POST", f"/api/v1/experiments/{t.exp}/activate") == {}
    user.call("activate_experiment", "POST", f"/api/v1/experiments/{t.exp}/activate")
    order = agent.next("start")
    agent.run(order)
    new = Task(c, agent, order)
    assert new.run == t.run + 1 and new.alloc.startswith(f"{t.task}.{t.run + 1}.") and new.env["DET_LATEST_CHECKPOINT"] == key, new.env
    assert new.env["DET_STEPS_COMPLETED"] == "400", new.env
    t.s.refused(409, "get_searcher_operation", "GET", f"/api/v1/trials/{t.trial}/searcher/operation")
    t.s.refused(409, "post_metrics", "POST", f"/api/v1/trials/{t.trial}/metrics", {"group": "training", "metrics": {
        "metrics": {"avgMetrics": {"loss": 9}}, "stepsCompleted": 600, "trialId": t.trial, "trialRunId": t.run}})
    assert new.prepare()["op"]["validateAfter"]["length"] == "937", "the same operation again"
    return new


def second_half(user, agent, t):
    """Flow (b), 9 to 22."""
    t.train(500, 937)
    t.state("validating")
    t.report("validation", 937, {"loss": 0.12, "accuracy": 0.9})
    complete = f"/api/v1/trials/{t.trial}/searcher/completed_operation"
    t.s.call("post_completed_operation", "POST", complete, {"op": {"length": 937}, "searcherMetric": 0.12})
    t.s.refused(400, "post_completed_operation", "POST", complete, {"op": {"length": 936}, "searcherMetric": 0.12})
    t.checkpoint(937)
    assert t.operation()["completed"] is True
    t.ship("bye\n")
    t.acknowledge()
    agent.exit(t.order)
    wait(user, t.exp)


def wait(user, exp, state="STATE_COMPLETED"):
    def done():
        now = user.call("get_experiment", "GET", f"/api/v1/experiments/{exp}")["experiment"]["state"]
        return now if now in TERMINAL else None
    assert wait_until(done, 30, f"experiment {exp} to end") == state


def reads(user, exp, trial, task):
    """Flow (d)."""
    got = user.call("get_experiments", "GET", "/api/v1/experiments?archived=false&limit=200&offset=0&users=admin")
    assert exp in [e["id"] for e in got["experiments"]] and got["pagination"]["endIndex"] == got["pagination"]["total"]
    e = user.call("get_experiment", "GET", f"/api/v1/experiments/{exp}")
    assert e["jobSummary"] is None and e["experiment"]["progress"] == 1 and e["experiment"]["bestTrialId"] == trial
    t = user.call("get_experiment_trials", "GET", f"/api/v1/experiments/{exp}/trials?limit=1000&offset=0")["trials"][0]
    assert (t["id"], t["state"], t["totalBatchesProcessed"], t["restarts"]) == (trial, "STATE_COMPLETED", 937, 0), t
    w = user.call("get_trial_workloads", "GET", f"/api/v1/trials/{trial}/workloads?limit=500&offset=0&includeBatchMetrics=false")["workloads"]
    steps = [x["training"]["totalBatches"] for x in w if "training" in x]
    assert steps == [100, 200, 300, 400, 500, 600, 700, 800, 900, 937], steps  # 500 of the first run is rolled back
    kept = [x["checkpoint"]["totalBatches"] for x in w if "checkpoint" in x]
    assert kept == [400, 937], kept
    for op, path in (("get_agents", "agents"), ("get_tasks", "tasks"), ("get_resource_pools", "resource-pools"), ("get_master", "master"),
                     ("get_jobs_v2", "job-queues-v2?resourcePool=default&limit=100&offset=0"), ("get_experiment_checkpoints", f"experiments/{exp}/checkpoints"),
                     ("get_task", f"tasks/{task}")):
        user.call(op, "GET", "/api/v1/" + path)
    best = user.call("get_experiment_checkpoints", "GET", f"/api/v1/experiments/{exp}/checkpoints?sortByMetric=loss&orderBy=ORDER_BY_ASC&limit=1&states=STATE_COMPLETED")
    found = user.call("get_checkpoint", "GET", "/api/v1/checkpoints/" + best["checkpoints"][0]["uuid"])["checkpoint"]
    assert found["training"]["searcherMetric"] == 0.12 and found["metadata"]["steps_completed"] == 937
    metrics = [m for x in user.stream("get_validation_metrics", f"/api/v1/trials/metrics/validation_metrics?trialIds={trial}") for m in x["metrics"]]
    assert [m["metrics"]["validation_metrics"]["accuracy"] for m in metrics] == [0.9]
    user.refused(404, "get_experiment", "GET", "/api/v1/experiments/424242")
    user.refused(400, "get_trial", "GET", "/api/v1/trials/first")


def log_lines(lines, thread, trial):
    thread.join(30 * SLOWER)
    assert not thread.is_alive(), "the followed log did not end with its trial"
    own = [x for x in lines if x.get("source") == "task"]
    assert [x["log"] for x in own] == ["hello\n", "two\n", "bye\n"], own
    assert all(x["trialId"] == trial for x in lines)
    assert own[0]["message"] == f"[2024-05-06T07:08:09.250000Z] {own[0]['containerId'][:8]} [rank=0] || hello\n", own[0]["message"]


def paused_and_test(user):
    """create --paused; create --test: validated whole, then shrunk to one batch."""
    exp = submit(user, activate=False)["experiment"]
    assert exp["state"] == "STATE_PAUSED"
    checked = submit(user, validate=True)
    assert checked["experiment"]["id"] == 0 and checked["config"]["name"] == "flow"
    bad = CONFIG.replace("metric: loss", "metrik: loss")
    text = user.refused(400, "create_experiment", "POST", "/api/v1/experiments", {"config": bad, "modelDefinition": [], "validateOnly": True})["error"]["error"]
    assert "searcher.metrik" in text and "searcher.metric" in text, text
    shrunk = submit(user, CONFIG.replace("batches: 937", "batches: 1").replace("max_restarts: 1", "max_restarts: 0"), activate=False)["experiment"]["id"]
    for e in (exp["id"], shrunk):
        user.call("kill_experiment", "POST", f"/api/v1/experiments/{e}/kill")
        wait(user, e, "STATE_CANCELED")


def cancel_and_kill(c, user, agent):
    """Cancel is a pause that does not come back; kill does not ask."""
    exp = submit(user)["experiment"]["id"]
    order = agent.next("start")
    agent.run(order)
    t = Task(c, agent, order)
    t.prepare()
    user.call("cancel_experiment", "POST", f"/api/v1/experiments/{exp}/cancel")
    assert user.call("get_experiment", "GET", f"/api/v1/experiments/{exp}")["experiment"]["state"] == "STATE_STOPPING_CANCELED"
    assert t.preempted.wait(10 * SLOWER)
    t.acknowledge()
    agent.exit(order)
    wait(user, exp, "STATE_CANCELED")
    user.call("cancel_experiment", "POST", f"/api/v1/experiments/{exp}/cancel")  # over already: no harm
    user.refused(404, "activate_experiment", "POST", f"/api/v1/experiments/{exp}/activate")
    user.refused(400, "pause_experiment", "POST", f"/api/v1/experiments/{exp}/pause")
    exp = submit(user)["experiment"]["id"]
    order = agent.next("start")
    agent.run(order)
    user.call("kill_experiment", "POST", f"/api/v1/experiments/{exp}/kill")
    assert agent.next("signal")["alloc"] == order["alloc"]
    agent.exit(order, "killed")
    wait(user, exp, "STATE_CANCELED")


def main():
    began = time.monotonic()
    with Cluster(agents=0) as c:
        user = login(c)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        exp, trial, lines, thread = follow_first_trial(user)
        order = agent.next("start")
        agent.run(order)
        t = Task(c, agent, order)
        assert (t.exp, t.trial) == (exp, trial)
        first_half(t, user)
        t = pause_and_resume(c, user, agent, t)
        second_half(user, agent, t)
        log_lines(lines, thread, trial)
        reads(user, exp, trial, t.task)
        gc = agent.next("start")  # the policy's collection: the first checkpoint is neither best nor latest
        assert gc["task"]["kind"] == "CHECKPOINT_GC"
        agent.run(gc)
        agent.exit(gc)
        paused_and_test(user)
        cancel_and_kill(c, user, agent)
        agent.close()
    print(f"test_flows_client: passed in {time.monotonic() - began:.0f} s")


main()
