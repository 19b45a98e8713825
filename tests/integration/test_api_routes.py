"""The rest of the routes, and what they refuse: users, edits, many at once, agents, pools, jobs, bad requests."""
import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api, Failed  # noqa: E402

CONFIG = """
name: routes
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: random, metric: loss, max_trials: 2, max_length: {batches: 100}}
resources: {slots_per_trial: 1}
"""


def hashed(text):
    return hashlib.sha512(("GubPEmmotfiK9TMD6Zdw" + text).encode()).hexdigest()


def entry(path, content=b"x", kind=48):
    return {"path": path, "type": kind, "content": base64.b64encode(content).decode(), "mtime": "0", "mode": 33188, "uid": 0, "gid": 0}


def create(user, config=CONFIG, files=None, **more):
    return user.call("create_experiment", {"config": config, "modelDefinition": files or [], "activate": False, **more})["experiment"]["id"]


def users(c, admin):
    made = admin.call("post_user", {"user": {"username": "ann", "admin": False, "active": True}, "password": hashed("one"), "isHashed": True})["user"]
    assert made["active"] and not made["admin"]
    admin.refused(400, "already exists", "post_user", {"user": {"username": "ann", "admin": False, "active": True}})
    for bad in ("", "a", "a b", "x" * 200):
        admin.refused(400, "username", "post_user", {"user": {"username": bad}})
    anyone = Api(c.port)
    ann = Api(c.port, anyone.call("login", {"username": "ann", "password": hashed("one"), "isHashed": True})["token"])
    assert ann.call("get_user", userId=made["id"])["user"]["username"] == "ann"
    assert admin.call("get_user_by_username", username="ann")["user"]["id"] == made["id"]
    admin.refused(404, "", "get_user_by_username", username="bob")
    admin.refused(404, "", "get_user", userId=999)
    admin.refused(400, "integer", "get_user", userId="abc")
    ann.refused(403, "", "post_user", {"user": {"username": "eve"}})
    ann.refused(403, "", "patch_user", {"admin": True}, userId=made["id"])
    ann.refused(403, "", "set_user_password", json.dumps(hashed("x")), userId=1)
    ann.refused(403, "", "get_master_config")
    assert ann.call("patch_user", {"displayName": "Ann"}, userId=made["id"])["user"]["displayName"] == "Ann"
    agent = {"agentUid": 1000, "agentGid": 1000, "agentUser": "ann", "agentGroup": "ann"}
    assert admin.call("patch_user", {"agentUserGroup": agent}, userId=made["id"])["user"]["agentUserGroup"] == agent
    admin.refused(400, "agentUserGroup.agentGid is required", "patch_user", {"agentUserGroup": {"agentUid": 1}}, userId=made["id"])
    ann.call("set_user_password", json.dumps(hashed("two")), userId=made["id"])
    ann.call("get_me")  # the session that changed it stays
    ann.refused(400, "blank", "set_user_password", '""', userId=made["id"])
    anyone.refused(401, "", "login", {"username": "ann", "password": hashed("one"), "isHashed": True})
    assert anyone.call("legacy_login", {"username": "ann", "password": "two"})["token"]
    status, data, r = anyone.raw("POST", "/api/v1/auth/login", {"username": "ann", "password": "two"})
    cookie = r.getheader("Set-Cookie")
    assert status == 200 and cookie.startswith("auth=") and json.loads(data)["user"]["username"] == "ann"
    assert anyone.raw("GET", "/api/v1/me", headers={"Cookie": cookie.split(";")[0]})[0] == 200
    listed = admin.call("get_users", name="AN", active=True, admin=False, sortBy="SORT_BY_USER_NAME")
    assert [u["username"] for u in listed["users"]] == ["ann"], listed
    assert admin.call("get_users", offset=-1)["pagination"]["startIndex"] == 2
    admin.refused(400, "out of bounds", "get_users", offset=50)
    admin.call("patch_user", {"active": False}, userId=made["id"])
    ann.refused(401, "", "get_me")
    admin.refused(404, "", "patch_user", {"active": False}, userId=999)


def lives(admin, anyone):
    got = admin.call("get_lives")
    assert got["lives"][-1]["lastBatch"] is None and not got["lives"][-1]["isNew"] and got["refused"] == [], got
    assert admin.call("get_strays", limit=5) == {"strays": [], "total": 0}
    admin.refused(400, "1 to 1000", "get_strays", limit=0)
    assert admin.call("delete_strays", allocationId="1.x.1")["removed"] == 0
    anyone.refused(401, "", "get_lives")


def bad_configurations(admin):
    admin.refused(400, "config is required", "create_experiment", {})
    text = admin.refused(400, "mistakes", "create_experiment", {"config": "name: 7\nsearcher: {name: single, metricc: x}\nfoo: 1"})
    assert "foo" in text and "metricc" in text and "entrypoint" in text, text
    admin.refused(400, "line", "create_experiment", {"config": "a: [1"})
    for path in ("../x", "/etc/passwd", "a/../../b", ""):
        admin.refused(400, "modelDefinition[1]", "create_experiment", {"config": CONFIG, "modelDefinition": [entry("ok"), entry(path)]})
    admin.refused(400, "type 50", "create_experiment", {"config": CONFIG, "modelDefinition": [entry("l", kind=50)]})
    admin.refused(400, "modelDefinition[0]", "create_experiment", {"config": CONFIG, "modelDefinition": [{"path": "a", "content": "!!"}]})
    admin.refused(404, "parentId", "create_experiment", {"config": CONFIG, "parentId": 999})
    admin.refused(404, "project", "create_experiment", {"config": CONFIG, "projectId": 999})
    admin.refused(400, "", "create_experiment", {"config": CONFIG.replace("slots_per_trial: 1", "slots_per_trial: 64")})
    assert admin.call("get_experiments")["experiments"] == []
    made = admin.call("create_experiment", {"config": CONFIG, "validateOnly": True})
    assert made["experiment"]["id"] == 0 and made["config"]["resources"]["resource_pool"] == "default"
    assert admin.call("get_experiments")["experiments"] == []


def bad_requests(c, admin):
    for method, path, status in [("GET", "/api/v1/nothing", 404), ("PUT", "/api/v1/experiments", 405), ("GET", "/api/v1/trials/x", 400),
                                 ("GET", "/api/v1/trials/99999999999", 404), ("GET", "/api/v1/experiments?sortBy=WRONG", 400),
                                 ("GET", "/api/v1/experiments?limit=x", 400), ("GET", "/api/v1/experiments?states=STATE_ACTIV", 400),
                                 ("GET", "/api/v1/experiments?archived=perhaps", 400), ("GET", "/api/v1/users/%ff/by-username", 400),
                                 ("GET", "/api/v1/experiments?name=%ff", 400), ("GET", "/api/v1/tasks/%ff/logs", 400)]:
        got, data, _ = admin.raw(method, path)
        assert got == status, (method, path, got, data)
        error = json.loads(data)["error"]
        assert set(error) == {"code", "reason", "error"} and error["error"], error
    got, data, _ = admin.raw("POST", "/api/v1/experiments", '{"config":\n "x", }')
    assert got == 400 and b"line 2" in data, data
    assert admin.raw("POST", "/api/v1/job-queues", b"[" * 200000)[0] == 400
    assert admin.raw("POST", "/api/v1/job-queues", b'{"a":"' + b"x" * 2000000 + b'"}')[0] == 413
    assert Api(c.port, "wrong").raw("GET", "/api/v1/me")[0] == 401
    assert Api(c.port, alloc="wrong").raw("GET", "/api/v1/me")[0] == 401
    assert admin.raw("GET", "/api/v1/me/")[0] == 200  # a trailing slash is stripped
    cut_short(c, admin)


def cut_short(c, admin):
    """A body that ends before its length applies nothing."""
    before = admin.call("get_experiments")["pagination"]["total"]
    body = json.dumps({"config": CONFIG, "activate": False})
    s = socket.create_connection(("127.0.0.1", c.port))
    s.sendall((f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin.token}\r\n"
               f"Content-Length: {len(body) + 10}\r\n\r\n" + body).encode())
    s.close()
    assert admin.call("get_experiments")["pagination"]["total"] == before


def edits(admin):
    exp = create(admin, files=[entry("a.py"), entry("model_def.py")])
    got = admin.call("patch_experiment", {"id": exp, "name": "new", "description": "d", "notes": "n", "labels": ["x"]}, experiment__id=exp)["experiment"]
    assert (got["name"], got["description"], got["notes"], got["labels"]) == ("new", "d", "n", ["x"])
    assert got["config"]["name"] == "new"
    got = admin.call("patch_experiment", {"name": None, "description": "e"}, experiment__id=exp)["experiment"]
    assert (got["name"], got["description"], got["notes"]) == ("new", "e", "n")
    admin.refused(400, "blank", "patch_experiment", {"name": "  "}, experiment__id=exp)
    admin.refused(400, "weight", "patch_experiment", {"resources": {"weight": 0}}, experiment__id=exp)
    got = admin.call("patch_experiment", {"resources": {"maxSlots": 1, "weight": 2.5}}, experiment__id=exp)["experiment"]
    assert got["config"]["resources"]["max_slots"] == 1 and got["config"]["resources"]["weight"] == 2.5
    admin.refused(400, "saveTrialLatest is required", "patch_experiment", {"checkpointStorage": {"saveExperimentBest": 1, "saveTrialBest": 1}}, experiment__id=exp)
    got = admin.call("patch_experiment", {"checkpointStorage": {"saveExperimentBest": 3, "saveTrialBest": 2, "saveTrialLatest": 1}}, experiment__id=exp)
    assert got["experiment"]["config"]["checkpoint_storage"]["save_experiment_best"] == 3
    admin.refused(404, "", "patch_experiment", {"name": "x"}, experiment__id=999)
    for _ in range(2):
        assert admin.call("put_experiment_label", experimentId=exp, label="a/b c")["labels"] == ["x", "a/b c"]
    for _ in range(2):
        assert admin.call("delete_experiment_label", experimentId=exp, label="x")["labels"] == ["a/b c"]
    fork = create(admin, parentId=exp)
    assert admin.call("get_experiment", experimentId=fork)["experiment"]["forkedFrom"] == exp
    assert admin.call("get_model_def_tree", experimentId=fork)["files"][0]["path"] == "a.py"
    return exp, fork


def states(admin, exp, fork):
    admin.refused(400, "", "archive_experiment", id=exp)
    admin.refused(400, "", "delete_experiment", experimentId=exp)
    admin.refused(404, "", "pause_experiment", id=999)
    admin.refused(404, "", "kill_experiment", id=999)
    r = admin.call("activate_experiments", {"experimentIds": [exp, fork, 999]})["results"]
    assert [x["id"] for x in r] == [exp, fork, 999] and [bool(x["error"]) for x in r] == [False, False, True], r
    assert admin.call("get_experiments", states=["STATE_RUNNING"])["pagination"]["total"] == 2  # what is stored is ACTIVE
    assert {x["id"] for x in admin.call("pause_experiments", {"filters": {"name": "rou"}})["results"]} == {fork}
    admin.call("cancel_experiment", id=fork)
    admin.call("cancel_experiment", id=fork)
    admin.call("kill_experiments", {"filters": {"states": ["STATE_ACTIVE"]}})


def stopped(admin, exp, fork):
    for e in (exp, fork):
        wait_until(lambda: admin.call("get_experiment", experimentId=e)["experiment"]["state"] == "STATE_CANCELED", 20, f"{e} to end")
    admin.refused(404, "finished", "activate_experiment", id=exp)
    admin.refused(400, "", "pause_experiment", id=exp)
    assert admin.call("kill_experiment", id=exp) == {}
    admin.call("cancel_experiments", {"experimentIds": [exp]})
    admin.call("archive_experiment", id=exp)
    admin.refused(400, "", "archive_experiment", id=exp)
    assert admin.call("get_experiments", archived=True)["pagination"]["total"] == 1
    admin.call("unarchive_experiment", id=exp)
    admin.refused(400, "", "unarchive_experiment", id=exp)
    admin.call("archive_experiments", {"experimentIds": [exp]})
    admin.call("unarchive_experiments", {"experimentIds": [exp]})
    trial = admin.call("get_experiment_trials", experimentId=exp)["trials"][0]["id"]
    assert admin.call("kill_trial", id=trial) == {}  # finished: nothing to do
    admin.refused(404, "", "kill_trial", id=999)
    admin.refused(400, "has ended", "ask_trial_stacks", id=trial)
    admin.refused(404, "", "ask_trial_stacks", id=999)
    admin.refused(404, "", "get_experiment_trials", experimentId=999)


def jobs(admin, exp, fork):
    """While two experiments are live."""
    full = admin.call("get_jobs_v2", resourcePool="default", limit=100)["jobs"]
    assert {j["full"]["entityId"] for j in full} == {str(exp), str(fork)} and full[0]["full"]["username"] == "admin"
    assert admin.call("get_jobs")["pagination"]["total"] == 2
    stats = admin.call("get_job_queue_stats", resourcePools=["default"])["results"]
    assert sum(stats[0]["stats"].values()) == 2, stats
    job = full[0]["full"]["jobId"]
    admin.call("update_job_queue", {"updates": [{"jobId": job, "weight": 3}]})
    assert [j["weight"] for j in admin.call("get_jobs")["jobs"] if j["jobId"] == job] == [3]
    admin.refused(400, "priority", "update_job_queue", {"updates": [{"jobId": job, "priority": 3}]})
    admin.refused(400, "exactly one", "update_job_queue", {"updates": [{"jobId": job}]})
    admin.refused(404, "", "update_job_queue", {"updates": [{"jobId": "none", "weight": 3}]})
    assert admin.call("get_experiment", experimentId=exp)["jobSummary"]["jobsAhead"] >= 0


def agents(admin, name):
    listed = admin.call("get_agents")["agents"]
    assert len(listed) == 1 and set(listed[0]["slots"]) == {f"/agents/{name}/slots/0", f"/agents/{name}/slots/1"}
    admin.call("get_agent", agentId=name)
    admin.refused(404, "", "get_agent", agentId="none")
    assert len(admin.call("get_slots", agentId=name)["slots"]) == 2
    admin.call("get_slot", agentId=name, slotId=1)
    admin.refused(404, "", "get_slot", agentId=name, slotId=7)
    assert admin.call("disable_slot", {"drain": False}, agentId=name, slotId=1)["slot"]["enabled"] is False
    assert admin.call("enable_slot", agentId=name, slotId=1)["slot"]["enabled"] is True
    drained = admin.call("disable_agent", {"drain": True}, agentId=name)["agent"]
    assert drained["enabled"] is False and drained["draining"] is True
    assert admin.call("enable_agent", agentId=name)["agent"]["enabled"] is True
    admin.refused(400, "plain HTTP", "post_join_token", {"agentId": name})
    admin.refused(400, "plain HTTP", "revoke_agent", agentId=name)
    admin.refused(400, "plain HTTP", "rotate_authority")
    pool = admin.call("get_resource_pools")["resourcePools"][0]
    assert pool["slotsAvailable"] == 2 and pool["slotsPerAgent"] == 2 and pool["slotType"] == "TYPE_CPU"
    admin.call("get_tasks_count")


def use(c, admin):
    """Slot use as JSON and CSV, by the database's own sum of it, and what is refused."""
    daily = {"startDate": "2026-01-01", "endDate": "2026-12-31", "period": "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"}
    time = {"timestampAfter": "2020-01-01T00:00:00Z", "timestampBefore": "2035-01-01T00:00:00Z"}
    today = c.sql("SELECT (now() AT TIME ZONE 'UTC')::date").strip()
    wanted = c.sql("SELECT count(*), sum(slots * extract(epoch FROM end_time - start_time)) FROM slot_uses").split("|")
    runs = admin.call("resource_allocation_raw", **time)["resourceEntries"]
    assert len(runs) == int(wanted[0]) and {r["username"] for r in runs} == {"admin"} and all(r["endTime"] >= r["startTime"] for r in runs), runs
    start = min(r["startTime"][:10] for r in runs)
    for period, form in (("DAILY", today), ("MONTHLY", today[:7])):
        days = admin.call("resource_allocation_aggregated", startDate=start[:len(form)], endDate=form, period="RESOURCE_ALLOCATION_AGGREGATION_PERIOD_" + period)["resourceEntries"]
        assert days[0]["periodStart"] == start[:len(form)] and days[-1]["periodStart"] == form, days
        for seconds in (lambda d: d["seconds"], lambda d: sum(d["byUsername"].values()), lambda d: sum(d["byResourcePool"].values()),
                        lambda d: sum(d["byWorkspace"].values())):
            assert abs(sum(map(seconds, days)) - float(wanted[1])) < 1e-3, (days, wanted)
    assert len(admin.call("resource_allocation_aggregated", **daily)["resourceEntries"]) == 365
    for op, head in (("raw", "experiment_id,kind,username,labels,slots,start_time,end_time,seconds"), ("s_csv", "allocation_id,task_type,")):
        rows = admin.call("download_allocation" + (op if op == "s_csv" else "_" + op), **time).decode().split("\n")
        assert rows[0].startswith(head) and len(rows) == len(runs) + 2, rows
    rows = admin.call("download_allocation_aggregated", **{**daily, "startDate": start, "endDate": today}).decode().splitlines()
    assert rows[0] == "aggregation_type,aggregation_key,date,seconds" and sum(r.startswith("total,,") for r in rows) >= 1, rows
    assert c.det("resources", "raw", *time.values()).stdout.splitlines()[0].startswith("experiment_id,")
    assert len(json.loads(c.det("res", "agg", "2026-01", "2026-12", "--monthly", "--json").stdout)) == 12
    r = c.det("res", "agg", "2026-01", "2026-12", check=False)
    assert r.returncode == 1 and 'startDate: "2026-01" is not a day, as 2026-01-31' in r.stderr, r.stderr
    for bad, words in (({"period": ""}, "period"), ({"endDate": "2025-01-01"}, "before startDate"), ({"startDate": "x"}, "startDate")):
        admin.refused(400, words, "resource_allocation_aggregated", **{**daily, **bad})
    assert admin.call("resource_allocation_raw", **{**time, "timestampAfter": "1970-01-01T00:00:00Z"})["resourceEntries"] == runs
    admin.refused(400, "timestampBefore", "resource_allocation_raw", timestampAfter=time["timestampAfter"])
    admin.refused(400, "before timestampAfter", "resource_allocation_raw", timestampAfter=time["timestampBefore"], timestampBefore=time["timestampAfter"])
    return runs


def task_side(c, admin, agent, order):
    """What a running task may ask beside the flows; and what a hostile one is told."""
    agent.run(order)
    alloc, container, token = order["alloc"], order["container"], order["task"]["token"]
    trial, task = int(order["task"]["env"]["DET_TRIAL_ID"]), order["task"]["task_id"]
    a = Api(c.port, alloc=token)
    assert a.call("all_gather", {"requestUuid": "u", "numPeers": 1, "data": {"k": 1}}, allocationId=alloc)["data"] == [{"k": 1}]
    a.refused(400, "numPeers", "all_gather", {"requestUuid": "u", "numPeers": 0}, allocationId=alloc)
    a.call("allocation_ready", allocationId=alloc)
    a.call("allocation_waiting", allocationId=alloc)
    a.call("post_training_metrics", {"trialId": trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1}}}, trialId=trial)
    a.call("post_validation_metrics", {"trialId": trial, "stepsCompleted": 1, "metrics": {"avg_metrics": {"loss": "NaN"}}}, trialId=trial)
    report = {"trialId": trial, "trialRunId": 1, "stepsCompleted": 2, "metrics": {"avgMetrics": {"epoch": "first"}}}
    a.refused(400, "epoch", "post_training_metrics", report, trialId=trial)
    a.refused(400, "stepsCompleted", "post_training_metrics", {**report, "stepsCompleted": "many"}, trialId=trial)
    a.refused(400, "metrics is required", "post_training_metrics", {"trialId": trial}, trialId=trial)
    a.refused(400, "progress", "post_progress", "-1", trialId=trial)
    a.refused(400, "reason", "post_early_exit", {"reason": "EXITED_REASON_NONE"}, trialId=trial)
    key = str(uuid.uuid4())
    a.refused(400, "steps_completed", "post_checkpoint", {"uuid": key, "metadata": {}})
    a.refused(400, "UUID", "post_checkpoint", {"uuid": "../x", "metadata": {"steps_completed": 1}})
    a.refused(400, "state", "post_checkpoint", {"uuid": key, "metadata": {"steps_completed": 1}, "state": "STATE_ERROR"})
    admin.refused(403, "", "post_checkpoint", {"uuid": key, "metadata": {"steps_completed": 1}})
    for other in (a, admin):  # a trial's own word about a store is not asked for
        other.refused(403, "collecting task", "note_unknown_checkpoints", {"place": "/ckpt", "done": True})
    a.refused(403, "", "adopt_checkpoint", {"uuid": key})
    unknown(admin, key)
    a.refused(400, "at least one", "post_task_logs", {"logs": []})
    for odd in ([], 5, "x", [5]):
        a.refused(400, "", "post_task_logs", odd)
        a.refused(400, "", "post_task_logs_plain", odd)
    a.refused(400, "taskId", "post_task_logs", {"logs": [{"log": "x"}]})
    a.refused(400, "id", "post_task_logs", {"logs": [{"task_id": task, "id": 5, "log": "x"}]})
    a.refused(400, "logs[1]", "post_task_logs", {"logs": [{"task_id": task, "log": "x"}, {"task_id": "other", "log": "x"}]})
    a.refused(403, "", "post_task_logs", {"logs": [{"task_id": "other", "log": "x"}]})
    a.call("mark_daemon", allocationId=alloc, resourcesId=container)
    a.call("post_early_exit", {"reason": "EXITED_REASON_INVALID_HP"}, trialId=trial)
    agent.exit(order)


def unknown(admin, key):
    """What lies in a store and is not known: nobody has looked yet."""
    admin.refused(404, "det store list", "look_through_store", {"place": "/no/such"})
    admin.refused(400, "place", "look_through_store", {"place": 7})
    admin.refused(400, "place", "get_unknown_checkpoints")
    admin.refused(404, "nobody has had", "get_unknown_checkpoints", place="/no/such")
    admin.refused(400, "UUID", "adopt_checkpoint", {"uuid": "../x"})
    admin.refused(400, "trialId", "adopt_checkpoint", {"uuid": key, "trialId": "one"})
    for more in ({}, {"trialId": 1}, {"trialId": 999, "remove": True}):
        admin.refused(400, "nothing was changed", "adopt_checkpoint", {"uuid": key, **more})


def covered(clients):
    """Every operation of the contract is asked here or in another test, by its name or by its path."""
    tests = subprocess.run(["grep", "-rhE", "--include=*.py", "--include=*.c", "(call|raw|api|request|refused)\\(|/", os.path.join(HERE, "..")],
                           text=True, capture_output=True).stdout
    called = set().union(*(x.called for x in clients)) | set(re.findall(r'"([a-z]\w+)"', tests))
    for op, (_, path, _) in Api.contract.ops.items():
        word = [x for x in path.split("/") if "{" not in x][-1]  # "undelete", "searcher_events"
        assert op in called or re.search(r"\b" + word + r"\b", tests), f"not tried: {op} {path}"


def main():
    with Cluster(agents=0) as c:
        c.login()
        admin = Api(c.port, c.token)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        users(c, admin)
        lives(admin, Api(c.port))
        bad_configurations(admin)
        bad_requests(c, admin)
        agents(admin, "agent-x")
        exp, fork = edits(admin)
        jobs(admin, exp, fork)
        admin.call("activate_experiment", id=exp)
        task_side(c, admin, agent, agent.next("start"))
        states(admin, exp, fork)
        while admin.call("get_tasks")["allocationIdToSummary"]:
            order = agent.orders.get(timeout=120)
            if order["order"] == "signal":
                agent.exit(order, "killed")
        stopped(admin, exp, fork)
        used = use(c, admin)
        assert exp in [r["experimentId"] for r in used], used
        admin.call("delete_experiments", {"experimentIds": [exp, 999]})
        agent.exit(agent.next("start"))  # it reported metrics: a task looks for its TensorBoard files
        wait_until(lambda: exp not in [e["id"] for e in admin.call("get_experiments")["experiments"]], 20, "the deletion")
        assert use(c, admin) == used  # its use outlives it
        admin.call("logout")
        admin.refused(401, "", "get_me")
        covered([admin])
        agent.close()
    print("test_api_routes: passed")


main()
