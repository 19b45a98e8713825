"""Each value that proto/openapi.yaml knows, of a wrong kind: every such query parameter and every member of every body is refused with 400
and its name, and nothing has changed.

What the contract calls an integer, a boolean, a time or one of some names comes as a word that is none of them, a member of a body as a list
or an object that it is not. A route that grows a parameter is asked too. ANYTHING names what is taken as it comes, and why; limits() has what
is of the right kind, and refused all the same."""
import json
import os
import sys
import urllib.parse
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
        return method, path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")

    def body(self, op):
        """One that would be taken."""
        whole = {"adopt_checkpoint": {"uuid": str(uuid.uuid4()), "place": "/x"}, "adopt_store": {"place": "/x"},
                 "post_accelerators": {"acceleratorData": {"nodeName": "n", "acceleratorUuids": []}}, "post_early_exit": {"reason": "EXITED_REASON_INVALID_HP"},
                 "post_metrics": {"metrics": {"trialId": self.work.trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {}}}, "group": "g"},
                 "post_user": {"user": {"username": "zoe"}}, "preview_hp_search": {"config": {}}, "put_trial": {"externalTrialId": "x"}}
        found = whole.get(op) or self.work.body(op)
        return found if isinstance(found, dict) else {}

    def limits(self):
        """(route, query, members beside those of body(), what is told): of the right kind, and nothing that can be meant."""
        w, metric = self.work, {"trialId": self.work.trial, "trialRunId": 1, "stepsCompleted": 1}
        return [
            ("update_job_queue", {}, {"updates": [{"jobId": w.job, "priority": 100}]}, "priority: "),
            ("update_job_queue", {}, {"updates": [{"jobId": w.job, "priority": 5}]}, "priority"),
            ("update_job_queue", {}, {"updates": [{"jobId": w.job, "weight": 0}]}, "weight: expected a number above 0"),
            ("update_job_queue", {}, {"updates": [{"jobId": w.job, "weight": 1, "priority": 1}]}, "exactly one of"),
            ("update_job_queue", {}, {"updates": [{"jobId": w.job}] * 1001}, "at most 1000 at once"),
            ("patch_experiment", {}, {"resources": {"priority": 100}}, "resources.priority: 1 to 99"),
            ("patch_experiment", {}, {"resources": {"weight": 0}}, "resources.weight: a number above 0"),
            ("patch_experiment", {}, {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": -1, "saveTrialLatest": 0}}, "not negative"),
            ("patch_experiment", {}, {"labels": ["a", 7]}, "labels[1]: expected a string"),
            ("patch_experiment", {}, {"name": " \t"}, "name: must not be blank"),
            ("create_experiment", {}, {"config": "[1]"}, "expected"),
            ("preview_hp_search", {}, {"seed": 1 << 32}, "seed: expected 0 to 4294967295"),
            ("get_rungs", {"limit": -1}, None, "limit: -1"),
            ("pause_experiments", {}, {"experimentIds": [1] * 10001}, "experimentIds: at most 10000"),
            ("patch_checkpoints", {}, {"checkpoints": [{"uuid": "x"}]}, "is not a UUID"),
            ("patch_checkpoints", {}, {"checkpoints": [{"uuid": w.checkpoint, "resources": {"resources": [1]}}]}, "resources.resources: expected an object"),
            ("patch_checkpoints", {}, {"checkpoints": [{"uuid": w.checkpoint, "resources": {"resources": {"a": -1}}}]}, 'the size of "a" is negative'),
            ("post_checkpoint_metadata", {}, {"checkpoint": {"metadata": [1]}}, "checkpoint.metadata: expected an object"),
            ("delete_checkpoints", {}, {"checkpointUuids": ["x"]}, '"x" is not a UUID'),
            ("remove_checkpoint_files", {}, {"checkpointGlobs": [""]}, "none of them empty"),
            ("collect_checkpoints", {}, {"saveTrialBest": 1}, "need dryRun"),
            ("post_accelerators", {}, {"acceleratorData": {"acceleratorUuids": [7]}}, "acceleratorUuids[0]: expected a string"),
            ("all_gather", {}, {"numPeers": 0}, "numPeers"),
            ("preemption_signal", {"timeoutSeconds": 4000}, None, "timeoutSeconds: 0 to 3600"),
            ("post_task_logs", {}, {"logs": [{"taskId": "", "timestamp": THEN}]}, "taskId is required"),
            ("post_task_logs", {}, {"logs": [{"taskId": w.order["task"]["task_id"], "timestamp": THEN, "log": 7}]}, "log: expected a string"),
            ("post_metrics", {}, {"metrics": {**metric, "stepsCompleted": -1, "metrics": {"avgMetrics": {}}}}, "stepsCompleted"),
            ("post_metrics", {}, {"metrics": {**metric, "metrics": {"avgMetrics": {}, "batchMetrics": 1}}}, "batchMetrics"),
            ("post_early_exit", {}, {"reason": None}, "reason"),
            ("post_runner_metadata", {}, {"state": "x" * 201}, "state: at most 200 bytes"),
            ("put_trial", {}, {"externalTrialId": "x" * 5000}, "externalTrialId: at most"),
            ("put_trial", {}, {"externalTrialId": "a\0b"}, "NUL"),
            ("put_trial", {}, {"externalTrialId": ""}, "externalTrialId: expected a name"),
            ("patch_trial", {}, {"state": "STATE_SLEEPING"}, "state"),
            ("compare_trials", {"timeSeriesFilter.name": "x"}, None, "timeSeriesFilter.name: batches or time"),
            ("compare_trials", {"metricType": "METRIC_TYPE_UNSPECIFIED"}, None, "metricType or group is required"),
            ("compare_trials", {"metricNames": "", "metricIds": "loss"}, None, "is not <group>.<name>"),
            ("search_roles", {}, {"limit": 0}, "limit: 1 to"), ("search_roles_assignable", {}, {"limit": 0}, "limit: 1 to"),
            ("get_roles_by_id", {}, {"roleIds": ["x"]}, "roleIds"), ("post_group", {}, {"name": "g", "addUsers": ["x"]}, "addUsers"),
            ("add_assignments", {}, {"userRoleAssignments": [{}]}, "roleAssignment.role.roleId are required"),
            ("add_assignments", {}, {"userRoleAssignments": [7]}, "roleAssignment.role.roleId are required"),
            ("put_template", {}, {"name": "other"}, "differs from the name in the path"),
            ("put_template", {}, {"workspaceId": 1}, "leave it out when replacing"),
            ("post_template", {}, {"workspaceId": -1}, "workspaceId"),
            ("post_token", {}, {"description": "x" * 201}, "description: 200 bytes at most"),
            ("post_user_setting", {}, {"settings": [{"key": "", "value": "1"}]}, "a key of 1 to 200 bytes"),
            ("post_user_setting", {}, {"settings": []}, "settings"),
            ("patch_user", {}, {"agentUserGroup": {"agentUid": -1, "agentGid": 1, "agentUser": "a", "agentGroup": "a"}}, "ids are not negative"),
            ("adopt_checkpoint", {}, {"uuid": "x"}, "UUID"),
        ]

    def refused(self, name, method, path, body):
        """By whom it may be asked: a person, or a trial's task."""
        for who in (self.admin, self.task):
            status, data, _ = who.raw(method, path, body)
            if status != 403:
                break
        v = json.loads(data) if status != 200 else {"message": "it was taken"}
        text = v["error"]["error"] if "error" in v else v["message"]
        assert status == 400 and name in text, (method, path, body, status, text)


def rows(c):
    return c.sql(" UNION ALL ".join(f"SELECT '{t}', count(*), md5(string_agg(x::text, ' ' ORDER BY x::text)) FROM {t} x" for t in TABLES)).splitlines()


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
        for op, query, more, words in a.limits():
            a.refused(words, *a.address(op, query), None if more is None else {**a.body(op), **more})
        assert not unused, f"no such value: {unused}"
        assert set(rows(c)) == set(before), set(rows(c)) ^ set(before)
        agent.close()
    print("test_api_wrong_values: passed")


if __name__ == "__main__":
    main()
