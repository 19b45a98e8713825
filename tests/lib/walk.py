"""Every route asked about one person's work: what a path and a body name, and how each is answered."""
import json
import os
import re
import uuid

from cluster import SLOWER
from openapi import Api

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CONFIG = """
name: access
entrypoint: model_def:T
searcher: {name: random, metric: loss, max_trials: 1, max_length: {batches: 100}}
resources: {slots_per_trial: 1}
"""
# Refused to people by the handler: what only a trial, and what only a collecting task reports.
TRIAL, COLLECTS = {"post_checkpoint"}, {"note_unknown_checkpoints"}
# Of these nobody else is told that they are there.
HIDDEN = {"patch_token"}
# Answered one by one: 200, with an error in each that is refused.
MANY = {"activate_experiments", "pause_experiments", "cancel_experiments", "kill_experiments", "archive_experiments",
        "unarchive_experiments", "delete_experiments", "move_experiments"}
LAST = ["delete_model_version", "delete_model", "cancel_experiment", "kill_experiment", "kill_trial", "kill_experiments", "cancel_experiments", "delete_experiment", "logout",
        "set_user_password", "delete_checkpoints", "remove_checkpoint_files", "delete_template", "delete_view", "archive_project", "unarchive_project",
        "archive_workspace", "unarchive_workspace", "delete_project", "delete_workspace"]
CLUSTER_ADMIN, WORKSPACE_ADMIN, WORKSPACE_CREATOR, VIEWER, EDITOR, EDITOR_RESTRICTED = range(1, 7)


def rules():
    """{route: (right, subject, where)} of proto/rules.h."""
    with open(os.path.join(TOP, "proto", "rules.h")) as f:
        return {m[0]: m[1:] for m in re.findall(r'X\((\w+), ([A-Z]+), ([A-Z]+), "([^"]*)"\)', f.read())}


def grants(role, workspace=None, user=None, group=None):
    a = {"role": {"roleId": role}, "scopeWorkspaceId": workspace}
    return {"userRoleAssignments": [{"userId": user, "roleAssignment": a}] if user else [],
            "groupRoleAssignments": [{"groupId": group, "roleAssignment": a}] if group else []}


def log_in(port, name):
    return Api(port, Api(port).call("login", {"username": name, "password": name + "'s own"})["token"])


class Work:
    """An experiment of ann's that runs, with all that hangs on it; other: who gets roles and groups in the walk. In a project of hers,
    and in the workspace lab where the experiment is to be in it, else in the first one."""

    def __init__(self, port, admin, agent, ids, name="anns", lab=None, other="bob"):
        self.admin, self.agent, self.ids, self.other = admin, agent, ids, other
        self.ann = log_in(port, "ann")
        self.workspace = lab or self.ann.call("post_workspace", {"name": name})["workspace"]["id"]
        self.project = self.ann.call("post_project", {"name": "p"}, workspaceId=self.workspace)["project"]["id"]
        self.exp, self.order = self.start(self.ann, self.project if lab else 1)
        self.trial = int(self.order["task"]["env"]["DET_TRIAL_ID"])
        self.checkpoint = str(uuid.uuid4())
        Api(port, alloc=self.order["task"]["token"]).call(
            "post_checkpoint", {"uuid": self.checkpoint, "metadata": {"steps_completed": 1}, "resources": {"a": 1}})
        self.job = self.ann.call("get_experiment", experimentId=self.exp)["experiment"]["jobId"]
        self.token = self.ann.call("post_token", {"description": "for the walk"})["tokenInfo"]["id"]
        self.group = self.admin.call("post_group", {"name": name + "'s friends" if lab else "friends", "addUsers": [self.ids[other]]})["group"]["groupId"]
        self.template = name
        self.model = name
        self.view = self.ann.call("post_view", {"name": name, "address": "/det/experiments", "workspaceId": self.workspace})["view"]["id"]
        self.ann.call("post_model", {"name": name, "workspaceId": lab or 1})
        self.ann.call("post_template", {"name": name, "config": {"description": "d"}, "workspaceId": lab or 1}, template__name=name)

    def start(self, who, project=1):
        body = {"config": CONFIG, "modelDefinition": [], "activate": True, "projectId": project}
        exp = who.call("create_experiment", body)["experiment"]["id"]
        while True:
            order = self.agent.orders.get(timeout=20 * SLOWER)
            if order["order"] == "start":
                self.agent.run(order)
            if order["order"] == "start" and order["task"]["env"].get("DET_EXPERIMENT_ID") == str(exp):
                return exp, order
            if order["order"] in ("start", "signal"):  # what a walk before began, or killed
                self.agent.exit(order)

    def variable(self, path, name):
        below = path.split("{" + name + "}")[0].rstrip("/").rsplit("/", 1)[1]
        return {"experiments": self.exp, "trials": self.trial, "checkpoints": self.checkpoint, "allocations": self.order["alloc"],
                "tasks": self.order["task"]["task_id"], "jobs": self.job, "workspaces": self.workspace, "projects": self.project,
                "templates": self.template, "models": self.model, "views": self.view, "webhooks": 999, "versions": 1, "agents": "agent-x", "tokens": self.token, "groups": self.group, "by-group": self.group,
                "by-user": self.ids["ann"], "slots": 0, "labels": "l", "resources": self.order["container"], "workspace": self.workspace,
                "by-external-id": "x", "users": "ann" if name == "username" else self.ids["ann"]}[below]

    def body(self, op):
        exps = {"experimentIds": [self.exp], "destinationProjectId": self.project}
        ckpts = {"checkpointUuids": [self.checkpoint], "checkpointGlobs": ["x"]}
        log = {"taskId": self.order["task"]["task_id"], "timestamp": "2026-01-01T00:00:00Z", "log": "x"}
        return {"create_experiment": {"config": CONFIG, "modelDefinition": [], "projectId": self.project},
                "put_external_experiment": {"config": CONFIG, "unmanaged": True, "projectId": self.project},
                "post_trial": {"experimentId": self.exp}, "put_trial": {"createTrialRequest": {"experimentId": self.exp}},
                "move_experiment": exps, "continue_experiment": {"id": self.exp}, "delete_checkpoints": ckpts, "remove_checkpoint_files": ckpts,
                "undelete_checkpoints": ckpts, "patch_checkpoints": {"checkpoints": [{"uuid": self.checkpoint}]},
                "collect_checkpoints": {"experimentId": self.exp}, "update_job_queue": {"updates": [{"jobId": self.job, "weight": 2}]},
                "post_task_logs": {"logs": [log]}, "post_task_logs_plain": [log],
                "post_profiler_metrics": {"batches": [{"labels": {"trialId": self.trial, "name": "x", "metricType": 1}}]},
                "post_checkpoint": {"taskId": log["taskId"], "uuid": self.checkpoint, "metadata": {"steps_completed": 1}},
                "post_workspace": {"name": "w"}, "patch_workspace": {}, "patch_project": {"description": "e"}, "post_project": {"name": "q"}, "put_template": {"config": {"description": "e"}},
                "post_template": {"config": {"description": "e"}, "workspaceId": self.workspace},
                "post_view": {"name": "v", "address": "/det/clusters", "workspaceId": self.workspace}, "patch_view": {"name": "w"},
                "post_model": {"name": "m", "workspaceId": self.workspace}, "move_model": {"destinationWorkspaceId": self.workspace},
                "post_model_version": {"checkpointUuid": self.checkpoint},
                "post_checkpoint_metadata": {"checkpoint": {"metadata": {"k": 1}}},
                "all_gather": {"requestUuid": "u", "numPeers": 1, "data": {}},
                "search_groups": {"limit": 10}, "search_roles": {"limit": 10}, "search_roles_assignable": {"limit": 10},
                "post_group": {"name": "others"}, "add_assignments": grants(EDITOR, self.workspace, user=self.ids[self.other]),
                "remove_assignments": grants(EDITOR, self.workspace, user=self.ids[self.other]),
                "post_token": {"userId": self.ids["ann"]}, "patch_user": {"displayName": "x"}, "set_user_password": json.dumps("ann's own"),
                }.get(op, exps if op in MANY else {})

    def ask(self, who, op):
        """The status; of one of many, that of its error: 403 where it says so."""
        method, path, spec = who.contract.ops[op]
        for name in [p["name"] for p in spec.get("parameters", []) if p["in"] == "path"]:
            path = path.replace("{%s}" % name, str(self.variable(path, name)))
        if op == "preemption_signal":
            path += "?timeoutSeconds=0"
        if op in ("get_metrics", "get_training_metrics", "get_validation_metrics", "compare_trials"):
            path += f"?trialIds={self.trial}"
        status, data, _ = who.raw(method, path, self.body(op) if method != "GET" else None)
        if op in MANY and status == 200:
            error = json.loads(data)["results"][0]["error"]
            return (403 if "you may not" in error else 200), data
        return status, data

    def each(self, who, expected, leave=(), tells=True):
        """Every route; expected(op, method) is "in", or the status of who is kept out. tells: a person is told whose it is, and who may."""
        ops = sorted(who.contract.ops, key=lambda op: (LAST.index(op) + 1 if op in LAST else 0, op))
        for op in ops:
            if op in leave:
                continue
            status, data = self.ask(who, op)
            want = expected(op, who.contract.ops[op][0])
            good = status not in (401, 403) if want == "in" else status == want
            assert good, f"{op}: {status} {data[:200]}, not {want}"
            if want == 403 and op not in MANY | TRIAL | COLLECTS and tells:
                error = json.loads(data)
                text = error["error"]["error"] if "error" in error else error["message"]
                assert "belongs to" in text and "may" in text or "administrator" in text and " may" in text, (op, text)
