#!/usr/bin/env python3
"""The job queue over REST and `det job`: pools of master.yaml, order, moves, what is refused."""
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ApiError, Cluster  # noqa: E402

CONFIG = """
name: {name}
entrypoint: ["true"]
searcher: {{name: single, metric: x, max_length: {{batches: 1}}}}
resources: {{slots_per_trial: 1, resource_pool: "{pool}"}}
max_restarts: 0
"""
SETTINGS = """
resource_pools:
  - pool_name: line
    description: one after another
    max_aux_containers_per_agent: 7
    scheduler: {type: priority, fitting_policy: worst, priority: {default_priority: 30, preemption: true}}
quotas:
  - {user: admin, pool: default, slots: 2}
"""


def queue(c, pool):
    jobs = [j["full"] for j in c.api("GET", f"/job-queues-v2?resourcePool={pool}")["jobs"]]
    assert [j["summary"]["jobsAhead"] for j in jobs] == list(range(len(jobs)))
    return [j["name"] for j in jobs]


def refused(c, status, text, *updates):
    try:
        c.api("POST", "/job-queues", {"updates": list(updates)})
    except ApiError as e:
        assert e.status == status and text in e.text, e
    else:
        raise AssertionError(f"not refused: {updates}")


def pools(c):
    line = [p for p in c.api("GET", "/resource-pools")["resourcePools"] if p["name"] == "line"][0]
    assert line["description"] == "one after another" and line["schedulerType"] == "SCHEDULER_TYPE_PRIORITY"
    assert line["schedulerFittingPolicy"] == "FITTING_POLICY_WORST" and line["auxContainerCapacityPerAgent"] == 7
    assert line["details"]["priorityScheduler"]["defaultPriority"] == 30 and line["details"]["priorityScheduler"]["preemption"]


def moves(c, ids):
    def post(**u):
        c.api("POST", "/job-queues", {"updates": [u]})
    post(jobId=ids["c"], aheadOf=ids["a"])
    assert queue(c, "line") == ["c", "a", "b"]
    post(jobId=ids["c"], behindOf=ids["a"])
    assert queue(c, "line") == ["a", "c", "b"]
    post(jobId=ids["b"], priority=5)
    assert queue(c, "line") == ["b", "a", "c"]
    refused(c, 400, "itself", {"jobId": ids["a"], "aheadOf": ids["a"]})
    refused(c, 400, "weight", {"jobId": ids["a"], "weight": 2})
    refused(c, 400, "exactly one", {"jobId": ids["a"], "priority": 2, "aheadOf": ids["b"]})
    refused(c, 404, "job", {"jobId": ids["a"], "aheadOf": "no-such-job"})
    refused(c, 404, "moon", {"jobId": ids["a"], "resourcePool": "moon"})
    refused(c, 404, "job", {"jobId": ids["a"], "priority": 1}, {"jobId": "none", "priority": 1})
    refused(c, 404, "updates[1]", {"jobId": ids["a"], "priority": 1}, {"jobId": ids["b"], "resourcePool": "moon"})
    refused(c, 400, "itself", {"jobId": ids["a"], "priority": 1}, {"jobId": ids["b"], "behindOf": ids["b"]})
    refused(c, 400, "updates[1]: job b is in pool line, not in default", {"jobId": ids["a"], "resourcePool": "default"}, {"jobId": ids["a"], "aheadOf": ids["b"]})
    refused(c, 400, "updates[1]: job b is in pool default", {"jobId": ids["b"], "resourcePool": "default"}, {"jobId": ids["a"], "aheadOf": ids["b"]})
    refused(c, 400, "updates[1].priority", {"jobId": ids["a"], "resourcePool": "default"}, {"jobId": ids["a"], "priority": 4})
    refused(c, 400, "at most 1000", *[{"jobId": ids["a"], "priority": 4}] * 1001)
    assert queue(c, "line") == ["b", "a", "c"], "all updates of a call or none"
    c.api("POST", "/job-queues", {"updates": [{"jobId": ids["a"], "resourcePool": "default"}, {"jobId": ids["a"], "weight": 3}]})
    assert queue(c, "line") == ["b", "c"] and queue(c, "default") == ["a"]
    c.api("POST", "/job-queues", {"updates": [{"jobId": ids["a"], "resourcePool": "line"}, {"jobId": ids["a"], "aheadOf": ids["c"]}]})
    assert queue(c, "line") == ["b", "a", "c"]


def set_aside(c, ids):
    """Who is paused keeps the place, delays nobody and says so; activated it is where it was."""
    c.api("POST", f"/experiments/{ids['b']}/pause")
    jobs = [j["full"] for j in c.api("GET", "/job-queues-v2?resourcePool=line")["jobs"]]
    assert [(j["name"], j["isPaused"], j["summary"]["jobsAhead"]) for j in jobs] == [("b", True, 0), ("a", False, 0), ("c", False, 1)], jobs
    assert c.api("GET", f"/experiments/{ids['a']}")["jobSummary"]["jobsAhead"] == 0
    stats = c.api("GET", "/job-queues/stats?resourcePools=line")["results"][0]["stats"]
    pool = next(p for p in c.api("GET", "/resource-pools")["resourcePools"] if p["name"] == "line")["stats"]
    assert stats == pool == {"queuedCount": 2, "scheduledCount": 0, "pausedCount": 1}, (stats, pool)
    lines = [line.split() for line in c.det("job", "list", "--resource-pool", "line").stdout.splitlines()[1:]]
    assert "PAUSED" in lines[0] and "PAUSED" not in lines[1] + lines[2] and [line[0] for line in lines[1:]] == ["1", "2"], lines
    c.api("POST", f"/experiments/{ids['b']}/activate")
    assert queue(c, "line") == ["b", "a", "c"]


def shown_states(c):
    """A search knows the states that only the master's core does; grouped it is the same. What runs elsewhere runs."""
    far = c.api("POST", "/experiments", {"config": CONFIG.format(name="elsewhere", pool="line"), "unmanaged": True, "activate": True})
    c.api("POST", "/trials", {"experimentId": far["experiment"]["id"], "unmanaged": True})  # groups are of trials
    c.api("POST", f"/experiments/{ids_by_name(c)['b']}/pause")

    def found(op, *states):
        fields = [{"kind": "field", "columnName": "state", "operator": op, "value": s} for s in states]
        tree = {"filterGroup": {"kind": "group", "conjunction": "or", "children": fields}, "showArchived": True}
        query = urllib.parse.urlencode({"filter": json.dumps(tree), "sort": "id=asc"})
        groups = c.api("GET", "/experiments-groups?by=name&" + query)["groups"]
        names = [e["experiment"]["name"] for e in c.api("GET", "/experiments-search?" + query)["experiments"]]
        assert sorted(v for g in groups for v in g["values"]) == sorted(names), (groups, names)
        return names
    assert found("=", "QUEUED") == ["a", "c"] and found("=", "RUNNING") == ["elsewhere"]
    assert found("!=", "STATE_QUEUED") == ["b", "elsewhere"] and found("!=", "RUNNING") == ["a", "b", "c"]
    assert found("=", "ACTIVE") == ["a", "c", "elsewhere"] and found("=", "PULLING", "STARTING") == []
    assert found("=", "QUEUED", "RUNNING", "PAUSED") == ["a", "b", "c", "elsewhere"]
    c.api("POST", f"/experiments/{ids_by_name(c)['b']}/activate")
    assert found("=", "QUEUED") == ["a", "b", "c"]


def ids_by_name(c):
    return {e["name"]: e["id"] for e in c.api("GET", "/experiments")["experiments"]}


def quota(c):
    big = CONFIG.format(name="big", pool="default").replace("slots_per_trial: 1", "slots_per_trial: 3")
    try:
        c.api("POST", "/experiments", {"config": big, "modelDefinition": [], "activate": True})
    except ApiError as e:
        assert e.status == 400 and "quota of user admin" in e.text, e
    else:
        raise AssertionError("beyond the quota, and not refused")


def resources(c, number):
    return c.api("GET", f"/experiments/{number}")["experiment"]["config"]["resources"]


def command_line(c, numbers):
    out = c.det("job", "list", "--resource-pool", "line").stdout
    assert "PRIORITY" in out and [line.split()[3] for line in out.splitlines()[1:]] == ["b", "a", "c"], out
    c.det("job", "update", numbers["b"], "--behind-of", numbers["c"])
    assert queue(c, "line") == ["a", "c", "b"]
    c.det("job", "update-batch", f"{numbers['c']}.priority=7", f"{numbers['b']}.ahead-of={numbers['c']}")
    assert queue(c, "line") == ["b", "c", "a"]
    assert c.det("job", "update", numbers["b"], check=False).returncode == 2
    for words in (("job", "update", numbers["b"], "-p", "3.7"), ("experiment", "set", "priority", numbers["b"], "3.7"),
                  ("experiment", "set", "max-slots", numbers["b"], "9" * 30)):
        r = c.det(*words, check=False)
        assert r.returncode and "whole number" in r.stderr, r
    r = c.det("job", "update", numbers["a"], "-w", "inf", check=False)
    assert r.returncode and "expected a number" in r.stderr, r
    c.det("job", "update", numbers["a"], "--resource-pool", "default")
    assert queue(c, "line") == ["b", "c"] and queue(c, "default") == ["a"]
    c.det("job", "update", numbers["a"], "-w", "2.5")
    # The stored configuration follows what was changed, and loses nothing by it.
    b, a = resources(c, numbers["b"]), resources(c, numbers["a"])
    assert b["priority"] == 7 and b["resource_pool"] == "line", b
    assert a["weight"] == 2.5 and a["resource_pool"] == "default" and a["max_slots"] is None, a
    c.det("experiment", "set", "gc-policy", numbers["a"], "-y", "--save-experiment-best", "1", "--save-trial-best", "0", "--save-trial-latest", "0")
    storage = c.api("GET", f"/experiments/{numbers['a']}")["experiment"]["config"]["checkpoint_storage"]
    assert storage["save_experiment_best"] == 1 and "storage_path" in storage, storage
    assert len(c.det("job", "list", "--json").stdout) > 10


def main():
    settings = "/tmp/det-jobs-%d.yaml" % os.getpid()
    with open(settings, "w") as f:
        f.write(SETTINGS)
    try:
        with Cluster(agents=0, master_args=["--config", settings]) as c:
            pools(c)
            exps = {n: c.api("POST", "/experiments", {"config": CONFIG.format(name=n, pool="line"), "modelDefinition": [], "activate": True})["experiment"]
                    for n in "abc"}
            assert queue(c, "line") == ["a", "b", "c"]
            quota(c)
            moves(c, {n: e["jobId"] for n, e in exps.items()})
            set_aside(c, {n: e["id"] for n, e in exps.items()})
            shown_states(c)
            command_line(c, {n: str(e["id"]) for n, e in exps.items()})
            c.stop("master", 9)
            c.start_master()
            c.token = None
            assert queue(c, "line") == ["b", "c"] and queue(c, "default") == ["a"], "kept over a restart"
    finally:
        os.unlink(settings)


if __name__ == "__main__":
    main()
