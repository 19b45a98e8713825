"""Each value that proto/openapi.yaml knows, of a wrong kind: every such query parameter and every member of every body is refused with 400
and its name, and nothing has changed.

What the contract calls an integer, a boolean, a time or one of some names comes as a word that is none of them; a member of a body as a list
or an object that it is not. A route that grows a parameter is asked too. ANYTHING names what is taken as it comes, and why."""
import json
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import people  # noqa: E402
from cluster import Cluster  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api  # noqa: E402
from walk import COLLECTS, CONFIG, Work  # noqa: E402

WORD = "no-such-value"
IN_THE_PATH = "the path says it, and it is not read here"
UNREAD = "clients of Determined send it, and nothing here is decided by it"
FREE = "whatever the ranks hand on to each other"
ANYTHING = {
    ("get_experiments", "showTrialData"): UNREAD, ("get_profiler_metrics", "follow"): UNREAD, ("get_profiler_series", "follow"): UNREAD,
    ("get_resource_pools", "unbound"): UNREAD, ("get_users", "roleIdAssignedDirectlyToUser"): UNREAD,
    ("post_checkpoint", "training"): UNREAD, ("all_gather", "data"): FREE, ("all_gather", "allocationId"): IN_THE_PATH,
    ("disable_agent", "agentId"): IN_THE_PATH, ("disable_slot", "agentId"): IN_THE_PATH, ("disable_slot", "slotId"): IN_THE_PATH,
    ("move_model", "modelName"): IN_THE_PATH, ("patch_experiment", "id"): IN_THE_PATH, ("patch_trial", "trialId"): IN_THE_PATH,
    ("post_model_version", "modelName"): IN_THE_PATH, ("post_searcher_operations", "experimentId"): IN_THE_PATH,
    ("put_group", "groupId"): IN_THE_PATH, ("post_accelerators", "allocationId"): IN_THE_PATH,
    **{(op, name): UNREAD for op in ("create_experiment", "put_external_experiment")
       for name in ("gitRemote", "gitCommit", "gitCommitter", "gitCommitDate")},
}
THEN = "2026-01-01T00:00:00Z"
REQUIRED = {"timestampAfter": THEN, "timestampBefore": THEN, "startDate": "2026-01-01", "endDate": "2026-01-02",
            "period": "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY", "metricName": "loss", "metricType": "METRIC_TYPE_TRAINING"}
# Which rows a refusal leaves as they were.
TABLES = ("experiments", "trials", "checkpoints", "users", "groups", "group_members", "role_assignments", "workspaces", "projects", "templates", "models",
          "model_versions", "page_views", "webhooks", "webhook_triggers", "metrics", "task_logs", "profiler_metrics", "agent_join_tokens", "user_settings", "stores")


def schema_of(contract, s):
    """With what it refers to in its place."""
    while "$ref" in s or len(s.get("allOf", ())) == 1:
        s = contract.find(s["$ref"]) if "$ref" in s else s["allOf"][0]
    return s


def is_strict(contract, s):
    """Whether WORD is no value of it."""
    s = schema_of(contract, s)
    if s.get("type") == "array":
        return is_strict(contract, s["items"])
    return s.get("type") in ("integer", "boolean", "number") or "enum" in s or s.get("format") == "date-time"


def parameters(contract):
    """(route, parameter)"""
    for op, (_, _, spec) in sorted(contract.ops.items()):
        yield from ((op, p["name"]) for p in spec.get("parameters", []) if p["in"] == "query" and is_strict(contract, p["schema"]))


def members(contract):
    """(route, member, what it is not)"""
    for op, (_, _, spec) in sorted(contract.ops.items()):
        body = spec.get("requestBody")
        s = schema_of(contract, body["content"]["application/json"]["schema"]) if body else {}
        for name, of in s.get("properties", {}).items():
            kind = schema_of(contract, of).get("type")
            if kind:
                yield op, name, {"a": 1} if kind == "array" else [1]


class Asked:
    def __init__(self, c, agent):
        ids = people.add(c, "ann", "bob")
        self.admin = Api(c.port, c.token)
        self.work = Work(c.port, self.admin, agent, ids)
        self.task = Api(c.port, alloc=self.work.order["task"]["token"])

    def address(self, op, asked):
        method, path, spec = self.admin.contract.ops[op]
        query, known = {}, {p["name"] for p in spec.get("parameters", [])}
        for p in spec.get("parameters", []):
            if p["in"] == "path":
                path = path.replace("{%s}" % p["name"], str(self.work.variable(path, p["name"])))
            elif p["name"] in REQUIRED:
                query[p["name"]] = REQUIRED[p["name"]]
        query.update({name: v for name, v in (("ids", self.work.exp), ("trialIds", self.work.trial), ("metricNames", "loss")) if name in known})
        query.update(asked)
        return method, path + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")

    def body(self, op):
        """One that would be taken."""
        whole = {"adopt_checkpoint": {"uuid": str(uuid.uuid4()), "place": "/x"}, "adopt_store": {"place": "/x"},
                 "post_accelerators": {"acceleratorData": {"nodeName": "n", "acceleratorUuids": []}}, "post_early_exit": {"reason": "EXITED_REASON_INVALID_HP"},
                 "post_metrics": {"metrics": {"trialId": self.work.trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {}}}, "group": "g"},
                 "post_user": {"user": {"username": "zoe"}}, "preview_hp_search": {"config": {}}, "put_trial": {"externalTrialId": "x"}}
        found = whole.get(op) or self.work.body(op)
        return found if isinstance(found, dict) else {}

    def refused(self, name, method, path, body):
        """By whom it may be asked: a person, or a trial's task. The last word of what it names is told."""
        for who in (self.admin, self.task):
            status, data, _ = who.raw(method, path, body)
            if status != 403:
                break
        v = json.loads(data) if status != 200 else {"message": "it was taken"}
        text = v["error"]["error"] if "error" in v else v["message"]
        assert status == 400 and name in text, (method, path, body, status, text)


def rows(c):
    return {t: c.sql(f"SELECT count(*), md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM {t} x") for t in TABLES}


def main():
    with Cluster(agents=0) as c:
        c.login()
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        a = Asked(c, agent)
        before, unused = rows(c), set(ANYTHING)
        for op, name in parameters(a.admin.contract):
            if (op, name) not in ANYTHING:
                a.refused(name, *a.address(op, {name: WORD}), None)
            unused.discard((op, name))
        for op, name, value in members(a.admin.contract):
            if (op, name) not in ANYTHING and op not in COLLECTS:
                a.refused(name, *a.address(op, {}), {**a.body(op), name: value})
            unused.discard((op, name))
        assert not unused, f"no such value: {unused}"
        assert rows(c) == before, (rows(c), before)
        agent.close()
    print("test_api_wrong_values: passed")


if __name__ == "__main__":
    main()
