"""Who may do what: every route as every kind of person, and as a task; by which setting; what the refused are told."""
import json
import os
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import people  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api  # noqa: E402
from walk import (CLUSTER_ADMIN, COLLECTS, CONFIG, EDITOR, EDITOR_RESTRICTED, HIDDEN, MANY, TRIAL, VIEWER, WORKSPACE_ADMIN,  # noqa: E402
                  WORKSPACE_CREATOR, Work, grants, log_in)

# Asked by everybody without a token, by administrators only, and what everybody may do though it is no GET.
OPEN = {"info", "health", "readiness", "prometheus", "legacy_login", "login", "exchange_login_link", "get_master", "get_telemetry"}
ADMIN = {"post_user", "get_audit", "get_master_config", "get_lives", "get_strays", "delete_strays", "cleanup_logs", "enable_agent", "disable_agent", "post_join_token", "revoke_agent", "rotate_authority",
         "get_webhooks", "post_webhook", "get_webhook_key", "delete_webhook", "test_webhook",
         "enable_slot", "disable_slot", "adopt_store", "look_through_store", "get_unknown_checkpoints", "adopt_checkpoint",
         "post_group", "put_group", "delete_group", "assign_groups", "resource_allocation_raw", "resource_allocation_aggregated",
         "download_allocation_raw", "download_allocations_csv", "download_allocation_aggregated"} | COLLECTS
READS = {"search_groups", "search_roles", "search_roles_assignable", "get_roles_by_id"}
EVERYBODY = READS | {"preview_search", "preview_hp_search", "get_model_def_file", "logout", "make_login_link", "post_user_setting",
             "reset_user_setting", "create_experiment", "put_external_experiment", "post_template", "post_workspace", "post_project", "post_model", "post_view"}
# GETs in which a person would speak for the trial.
SPOKEN = {"rendezvous", "preemption_signal"}
# By the setting `basic` everybody may do these too.
SHARED = {"activate_experiment", "pause_experiment", "cancel_experiment", "kill_experiment", "archive_experiment", "unarchive_experiment",
          "continue_experiment", "patch_experiment", "put_experiment_label", "delete_experiment_label", "post_searcher_operations",
          "kill_trial", "ask_trial_stacks", "undelete_checkpoints", "post_checkpoint_metadata", "update_job_queue", "put_template",
          "patch_template", "patch_model", "archive_model", "unarchive_model", "post_model_version", "patch_model_version"} | MANY - {"delete_experiments", "move_experiments"}


class Walk(Work):
    """With bob, who has an experiment of his own, and what runs for it."""

    def __init__(self, c):
        self.c = c
        c.login()
        ids = people.add(c, "ann", "bob")
        self.bob, self.nobody = log_in(c.port, "bob"), Api(c.port)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        super().__init__(c.port, Api(c.port, c.token), agent, ids)
        self.bobs, order = self.start(self.bob)
        self.task = Api(c.port, alloc=order["task"]["token"])


def is_write(op, method):
    return method != "GET" and op not in OPEN | EVERYBODY or op in SPOKEN


def walk(w):
    w.each(w.nobody, lambda op, m: "in" if op in OPEN else 401, leave={"login", "legacy_login"})
    w.each(w.bob, lambda op, m: 404 if op in HIDDEN else 403 if op in ADMIN or is_write(op, m) else "in", leave={"logout"})
    # A task of bob's: only what tasks ask, and that of its own trial.
    w.each(w.task, lambda op, m: "in" if op in OPEN | {"get_me", "logout", "patch_checkpoints"} else 403, leave={"login", "legacy_login", "logout"}, tells=False)
    fine = w.ann.call("get_experiment", experimentId=w.exp)["experiment"]
    assert fine["state"] == "STATE_RUNNING" and fine["labels"] == [] and fine["notes"] == "", fine
    w.each(w.ann, lambda op, m: 403 if op in ADMIN | TRIAL else "in", leave={"rendezvous", "logout"})
    w.each(w.admin, lambda op, m: 403 if op in TRIAL | COLLECTS else "in", leave={"rendezvous", "logout", "patch_user", "set_user_password"})


def told(w):
    """What, where, and what to do; of what is not there, that it is not."""
    text = w.bob.refused(403, "experiment", "kill_experiment", id=w.exp)
    assert text == f"you may not start, pause, stop or queue experiment {w.exp}: it belongs to ann; its owner or an administrator, or who has the " \
        'role EditorRestricted in workspace "Uncategorized", may', text
    w.bob.refused(404, "experiment 999 not found", "kill_experiment", id=999)
    w.bob.refused(404, "not found", "delete_checkpoints", {"checkpointUuids": [str(uuid.uuid4())]})
    w.bob.refused(400, "", "kill_experiment", id="x")
    got = w.bob.call("kill_experiments", {"experimentIds": [w.exp, w.bobs, 999]})["results"]
    assert "ann" in got[0]["error"] and got[1]["error"] == "" and "not found" in got[2]["error"], got
    w.bob.refused(403, "only an administrator", "collect_checkpoints", {})
    w.bob.call("collect_checkpoints", {"dryRun": True})
    w.bob.call("put_template", {"config": {"description": "mine"}}, template__name="bobs")
    w.bob.call("put_template", {"config": {"description": "mine too"}}, template__name="bobs")
    w.ann.refused(403, "belongs to bob", "put_template", {"config": {}}, template__name="bobs")
    env = {"DET_USER": "bob", "DET_PASS": "bob's own", "DET_PASS_FILE": ""}
    r = w.c.det("experiment", "kill", str(w.exp), check=False, env=env)
    assert r.returncode == 1 and "belongs to ann" in r.stderr, (r.returncode, r.stderr)


def tokens(w):
    """A token acts as its owner, but makes no other; it ends when it is told to, when its time is over, and with its owner."""
    made = w.ann.call("post_token", {"description": "ci", "lifespan": "48h"})
    key, info = made["token"], made["tokenInfo"]
    assert key.startswith("det_") and info["active"] and info["userId"] == w.ids["ann"] and info["description"] == "ci", made
    ci = Api(w.c.port, key)
    assert ci.call("get_me")["user"]["username"] == "ann"
    ci.call("put_experiment_label", experimentId=w.exp, label="l")
    ci.call("delete_experiment_label", experimentId=w.exp, label="l")
    (row,) = w.admin.call("get_audit", operation="put_experiment_label")["entries"]
    assert row["tokenId"] == info["id"] and row["username"] == "ann", row
    ci.refused(403, "access token", "post_token", {})
    ci.refused(403, "access token", "set_user_password", json.dumps("another one"), userId=w.ids["ann"])
    ci.refused(403, "access token", "patch_token", {"setRevoked": False}, tokenId=info["id"])
    ci.refused(400, "revoke", "logout")
    w.bob.refused(404, f"token {info['id']} not found", "patch_token", {"setRevoked": True}, tokenId=info["id"])
    w.bob.refused(404, "token 999 not found", "patch_token", {"setRevoked": True}, tokenId=999)
    assert w.bob.call("get_tokens")["tokenInfo"] == [] and w.bob.call("get_tokens", username="ann")["tokenInfo"] == []
    assert info["id"] in [t["id"] for t in w.admin.call("get_tokens", username="ann")["tokenInfo"]]
    wait_until(lambda: [t for t in w.admin.call("get_tokens", username="ann")["tokenInfo"] if t["id"] == info["id"] and t["lastUsedAt"]], 20, "when it was used")
    for lifespan in ("1d", "0h", "-5h", "48", "9000h"):
        w.ann.refused(400, "lifespan", "post_token", {"lifespan": lifespan})
    assert w.ann.call("patch_token", {"setRevoked": True}, tokenId=info["id"])["tokenInfo"]["revokedAt"]
    ci.refused(401, "invalid credentials", "get_me")
    assert info["id"] not in [t["id"] for t in w.ann.call("get_tokens")["tokenInfo"]]
    assert info["id"] in [t["id"] for t in w.ann.call("get_tokens", showInactive=True)["tokenInfo"]]
    made = w.ann.call("post_token")
    short = Api(w.c.port, made["token"])

    def remembered(seconds):
        """Whether the token, which ends so soon, was looked up before."""
        w.c.sql(f"UPDATE access_tokens SET expires_at = now() + interval '{seconds} s' WHERE id = {made['tokenInfo']['id']}")
        return short.raw("GET", "/api/v1/me")[0] == 200
    assert any(remembered(seconds) for seconds in (1.5, 6, 24))  # a machine may stand still for longer than the first
    wait_until(lambda: short.raw("GET", "/api/v1/me")[0] == 401, 20, "the token to end although it was remembered")
    by_hand(w)


def by_hand(w):
    env = {"DET_USER": "bob", "DET_PASS": "bob's own", "DET_PASS_FILE": ""}
    key = w.c.det("token", "create", "--expiration-days", "2", "--description", "by hand", env=env).stdout.strip()
    assert w.c.det("user", "whoami", env={"DET_USER_TOKEN": key}).stdout.split() == ["bob"]
    listed = json.loads(w.c.det("token", "list", "--json", env=env).stdout)
    assert [t["description"] for t in listed] == ["by hand"] and "by hand" in w.c.det("token", "list", "bob").stdout
    w.c.det("token", "revoke", str(listed[0]["id"]), env=env)
    r = w.c.det("user", "whoami", env={"DET_USER_TOKEN": key}, check=False)
    assert r.returncode == 1 and "invalid credentials" in r.stderr, r.stderr
    assert "no tokens" in w.c.det("token", "list", env=env).stdout
    assert "revoked" in w.c.det("token", "list", "--show-inactive", env=env).stdout


def roles(w):
    """What a role opens, where, to whom, and that it ends when it is taken away."""
    bob = w.ids["bob"]
    rename = {"name": "renamed"}
    w.admin.call("add_assignments", grants(EDITOR_RESTRICTED, 1, group=w.group))
    w.bob.call("patch_experiment", rename, experiment__id=w.exp)  # by the group
    w.bob.refused(403, 'role Editor in workspace "Uncategorized"', "delete_experiment", experimentId=w.exp)
    w.bob.refused(403, "ann", "archive_project", id=w.project)
    w.admin.call("put_group", {"removeUsers": [bob]}, groupId=w.group)
    w.bob.refused(403, "ann", "patch_experiment", rename, experiment__id=w.exp)
    w.admin.call("assign_groups", {"userIds": [bob], "addGroups": [w.group], "removeGroups": []})
    w.bob.call("patch_experiment", rename, experiment__id=w.exp)
    mine = w.bob.call("get_permissions_summary")
    assert mine["assignments"] == [{"roleId": EDITOR_RESTRICTED, "scopeWorkspaceIds": [1], "scopeCluster": False}], mine
    types = {kind: {t.removeprefix("PERMISSION_TYPE_") for t in mine[kind]} for kind in ("everybody", "owner", "workspaceOwner")}
    assert types["everybody"] == {"CREATE_EXPERIMENT", "VIEW_EXPERIMENT_METADATA", "CREATE_WORKSPACE"}, types
    assert types["owner"] - types["everybody"] == {"UPDATE_EXPERIMENT", "UPDATE_EXPERIMENT_METADATA", "DELETE_EXPERIMENT", "UPDATE_WORKSPACE"}, types
    assert types["workspaceOwner"] - types["everybody"] == {"UPDATE_WORKSPACE", "ASSIGN_ROLES"}, types
    (of_bob,) = w.ann.call("get_roles_of_user", userId=bob)["roles"]
    assert of_bob["groupRoleAssignments"][0]["groupId"] == w.group and of_bob["userRoleAssignments"] == [], of_bob
    assert w.ann.call("get_roles_of_group", groupId=w.group)["assignments"] == mine["assignments"]
    here = w.ann.call("get_roles_of_workspace", workspaceId=1, name="FRI")
    assert [g["groupId"] for g in here["groups"]] == [w.group] and here["usersAssignedDirectly"] == [] and here["assignments"] == [of_bob], here
    assert w.ann.call("get_roles_of_workspace", workspaceId=1, name="zoe") == {"groups": [], "usersAssignedDirectly": [], "assignments": []}
    w.ann.refused(404, "", "get_roles_of_workspace", workspaceId=999)
    (shown,) = w.ann.call("get_roles_by_id", {"roleIds": [EDITOR_RESTRICTED]})["roles"]
    assert shown == of_bob, (shown, of_bob)
    w.admin.call("remove_assignments", grants(EDITOR_RESTRICTED, 1, group=w.group))
    w.bob.refused(403, "ann", "patch_experiment", rename, experiment__id=w.exp)
    w.admin.refused(404, "no such assignment", "remove_assignments", grants(EDITOR_RESTRICTED, 1, group=w.group))
    given(w, bob)
    groups(w, bob)


def given(w, bob):
    """Who made a workspace gives roles in it, and nowhere else; an administrator by his role is one at once, and no longer."""
    w.ann.call("add_assignments", grants(VIEWER, w.workspace, user=bob))
    w.ann.call("remove_assignments", grants(VIEWER, w.workspace, user=bob))
    w.ann.refused(403, "give and take roles in workspace 1", "add_assignments", grants(EDITOR, 1, user=bob))
    w.ann.refused(403, "in the whole cluster", "add_assignments", grants(EDITOR, user=bob))
    w.ann.refused(400, "whole cluster only", "add_assignments", grants(CLUSTER_ADMIN, w.workspace, user=bob))
    w.bob.refused(403, "roles in workspace", "add_assignments", grants(WORKSPACE_ADMIN, w.workspace, user=bob))
    w.admin.refused(404, "not there", "add_assignments", grants(EDITOR, 999, user=bob))
    w.admin.refused(404, "no role 60", "add_assignments", grants(60, user=bob))
    w.admin.refused(404, "no role 60", "get_roles_by_id", {"roleIds": [60]})
    w.admin.refused(400, "one of them", "add_assignments", {"userRoleAssignments": [], "groupRoleAssignments": []})
    w.admin.call("add_assignments", grants(CLUSTER_ADMIN, user=bob))
    w.bob.call("get_master_config")
    w.bob.call("put_experiment_label", experimentId=w.exp, label="l")
    w.bob.call("delete_experiment_label", experimentId=w.exp, label="l")
    w.admin.call("remove_assignments", grants(CLUSTER_ADMIN, user=bob))
    w.bob.refused(403, "administrator", "get_master_config")


def groups(w, bob):
    w.admin.refused(409, "already", "post_group", {"name": "Friends"})
    w.admin.refused(404, "not there", "post_group", {"name": "strangers", "addUsers": [bob, 999]})
    w.admin.refused(400, "blank", "post_group", {"name": " "})
    w.admin.refused(400, "blank", "post_group", {"name": 7})
    w.admin.refused(404, "", "put_group", {"name": "x"}, groupId=999)
    w.bob.refused(400, "limit", "search_groups", {"limit": 0})
    found = w.bob.call("search_groups", {"limit": 5, "name": "FRIENDS"})
    assert found["groups"] == [{"group": {"groupId": w.group, "name": "friends"}, "numMembers": 1}] and found["pagination"]["total"] == 1, found
    assert w.bob.call("search_groups", {"limit": 5, "userId": w.ids["ann"]})["groups"] == []
    assert [u["username"] for u in w.bob.call("get_group", groupId=w.group)["group"]["users"]] == ["bob"]
    assert [r["name"] for r in w.bob.call("search_roles_assignable", {"limit": 9, "workspaceId": 1})["roles"]] == \
        ["WorkspaceAdmin", "Viewer", "Editor", "EditorRestricted"]
    assert len(w.bob.call("search_roles", {"limit": 9})["roles"]) == 6
    gone = w.admin.call("post_group", {"name": "gone", "addUsers": [bob]})["group"]["groupId"]
    w.admin.call("add_assignments", grants(EDITOR, group=gone))
    w.bob.call("patch_experiment", {"name": "by the group"}, experiment__id=w.exp)
    w.admin.call("delete_group", groupId=gone)
    w.bob.refused(403, "ann", "patch_experiment", {"name": "x"}, experiment__id=w.exp)
    w.admin.refused(404, "", "delete_group", groupId=gone)


def verbs(w):
    """det user-group and det rbac: names go in, names come out, and what is refused says so."""
    ann = {"DET_USER": "ann", "DET_PASS": "ann's own", "DET_PASS_FILE": ""}

    def said(*words, **kw):
        return w.c.det(*words, **kw).stdout

    def refused(text, *words, **kw):
        r = w.c.det(*words, check=False, **kw)
        assert r.returncode == 1 and text in r.stderr and not r.stdout, (words, r)
    out = said("user-group", "create", "lab", "--add-user", "ann", "--add-user", "bob")
    group = w.admin.call("search_groups", {"limit": 1, "name": "lab"})["groups"][0]["group"]["groupId"]
    assert out == f"user group with name lab and ID {group} created, ann, bob were added to it\n", out
    assert said("user-group", "remove-user", "lab", "ann").splitlines()[1] == \
        f"user removed from the group with username ann and ID {w.ids['ann']}"
    assert "lab" not in said("user-group", "list", "--groups-user-belongs-to", "ann")
    listed = json.loads(said("user-group", "ls", "--groups-user-belongs-to", "bob", "--json"))["groups"]
    assert {"group": {"groupId": group, "name": "lab"}, "numMembers": 1} in listed, listed
    assert "added to the group with username ann" in said("user-group", "add-user", "LAB", "bob,ann")
    assert f"with ID {group} name changed from lab to group" in said("user-group", "change-name", "lab", "group")
    assert [u["username"] for u in json.loads(said("user-group", "describe", "group", "--json"))["users"]] == ["ann", "bob"]
    assert [line.split()[1] for line in said("user-group", "describe", "group").splitlines()[2:]] == ["ann", "bob"]
    refused("could not find users for usernames zoe, max", "user-group", "add-user", "group", "zoe,bob,max")
    refused("could not find user group name lab", "user-group", "describe", "lab")
    refused("only an administrator", "user-group", "add-user", "group", "ann", env=ann)
    assert said("rbac", "assign-role", "editor", "-g", "group", "-w", "anns") == \
        f"assigned role 'Editor' with ID {EDITOR} to group 'group' with ID {group} to workspace anns\n"
    assert said("rbac", "assign-role", "Viewer", "--username-to-assign", "bob") == \
        f"assigned role 'Viewer' with ID {VIEWER} to user 'bob' with ID {w.ids['bob']} globally\n"
    shown(said, refused, ann)
    refused("nothing was deleted", "user-group", "delete", "group", input="n\n")
    said("user-group", "delete", "group", "--yes")
    assert "user has no role assignments" in said("rbac", "list-users-roles", "bob")


def shown(said, refused, ann):
    """What the verbs tell of these two roles, and that one who owns a workspace gives them in it, and nowhere else."""
    rows = [line.split() for line in said("rbac", "list-users-roles", "bob").splitlines()[1:]]
    assert [str(VIEWER), "Viewer", "(the", "whole", "cluster)"] in rows and [str(EDITOR), "Editor", "group", "anns"] in rows, rows
    assert said("rbac", "list-groups-roles", "group").splitlines()[1].split() == [str(EDITOR), "Editor", "anns"]
    out = said("rbac", "describe-role", "Editor")
    assert "PERMISSION_TYPE_DELETE_EXPERIMENT" in out and "anns" in out.partition("assigned to groups")[2] and "not assigned to any users" in out, out
    assert len(json.loads(said("rbac", "describe-role", "Editor", "--json"))["groupRoleAssignments"]) == 1
    mine = said("rbac", "my-permissions", env=ann)
    assert mine.startswith("permissions assigned over workspace 'anns'") and "start, pause and stop" in mine, mine
    assert "ClusterAdmin" in said("rbac", "list-roles") and "ClusterAdmin" not in said("rbac", "list-roles", "--exclude-global-roles")
    said("rbac", "assign-role", "Viewer", "-u", "bob", "-w", "anns", env=ann)
    said("rbac", "unassign-role", "Viewer", "-u", "bob", "-w", "anns", env=ann)
    refused("give and take roles in workspace 1", "rbac", "assign-role", "Viewer", "-u", "bob", "-w", "Uncategorized", env=ann)
    refused("in the whole cluster", "rbac", "assign-role", "Viewer", "-u", "bob", env=ann)
    refused("no such assignment", "rbac", "unassign-role", "Editor", "-u", "bob")
    refused("must provide exactly one of", "rbac", "assign-role", "Editor")
    refused("must provide exactly one of", "rbac", "assign-role", "Editor", "-u", "bob", "-g", "group")
    refused("could not find role name Boss", "rbac", "assign-role", "Boss", "-u", "bob")
    refused("could not find users for usernames zoe", "rbac", "assign-role", "Editor", "-u", "zoe")
    refused('workspace "nowhere" not found', "rbac", "assign-role", "Editor", "-u", "bob", "-w", "nowhere")
    said("rbac", "unassign-role", "Viewer", "-u", "bob")


def by_roles_only():
    """With rbac whoever makes anything needs a role, in the workspace or in the whole cluster; his own he may still tend to."""
    with Cluster(agents=0, env={"DET_SECURITY_AUTHZ_TYPE": "rbac"}) as c:
        c.login()
        admin, ids = Api(c.port, c.token), people.add(c, "ann")
        ann = Api(c.port, Api(c.port).call("login", {"username": "ann", "password": "ann's own"})["token"])
        w = admin.call("post_workspace", {"name": "lab"})["workspace"]["id"]
        p = admin.call("post_project", {"name": "p"}, workspaceId=w)["project"]["id"]
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        new, template = {"config": CONFIG, "modelDefinition": [], "activate": False}, {"config": {"description": "d"}}

        def nothing():
            ann.refused(403, "add anything to project 1", "create_experiment", new)
            ann.refused(403, "role EditorRestricted", "create_experiment", {**new, "projectId": p})
            ann.refused(403, "WorkspaceCreator", "post_workspace", {"name": "anns"})
            ann.refused(403, "workspace", "post_project", {"name": "q"}, workspaceId=w)
            ann.refused(403, "workspace 1", "post_template", template, template__name="t")
            ann.refused(403, "workspace 1", "put_template", template, template__name="t")
        nothing()
        admin.call("add_assignments", grants(VIEWER, user=ids["ann"]))
        nothing()
        admin.call("add_assignments", grants(EDITOR_RESTRICTED, w, user=ids["ann"]))
        exp = ann.call("create_experiment", {**new, "projectId": p})["experiment"]["id"]
        ann.refused(403, "may not move", "move_experiment", {"destinationProjectId": 1}, experimentId=exp)
        admin.call("add_assignments", grants(EDITOR, w, user=ids["ann"]))
        ann.refused(403, "add anything to project 1", "move_experiment", {"destinationProjectId": 1}, experimentId=exp)
        ann.refused(403, "add anything to project 1", "move_experiments", {"experimentIds": [exp], "destinationProjectId": 1})
        for role in (EDITOR, EDITOR_RESTRICTED):
            admin.call("remove_assignments", grants(role, w, user=ids["ann"]))
        ann.call("kill_experiment", id=exp)
        ann.refused(403, "may not delete", "delete_experiment", experimentId=exp)
        admin.call("add_assignments", grants(WORKSPACE_CREATOR, user=ids["ann"]))
        own = ann.call("post_workspace", {"name": "anns"})["workspace"]["id"]
        assert ann.call("post_project", {"name": "mine"}, workspaceId=own)["project"]["workspaceId"] == own
        agent.close()


def audited(w):
    """After the walk: each change that somebody asked for is there, with who, from where and how it was answered; no secret is."""
    def entries(**which):
        return w.admin.call("get_audit", limit=10000, **which)["entries"]
    wait_until(lambda: all(e["status"] for e in entries()), 10, "the last status")
    reports = {"post_metrics", "post_training_metrics", "post_validation_metrics", "post_metrics_batch", "post_progress", "post_profiler_metrics", "post_runner_metadata"}
    quiet = OPEN | READS | reports | {"patch_trial", "post_task_logs", "post_task_logs_plain"} | {"preview_search", "preview_hp_search", "get_model_def_file", "post_user_setting", "reset_user_setting"}
    for who in ("ann", "bob"):
        done = {e["operation"]: e for e in entries(username=who)}
        missing = {op for op, (m, _, _) in w.admin.contract.ops.items() if m != "GET" and op not in quiet | ADMIN | {"logout"}} - set(done)
        assert not missing, (who, missing)
        assert done["login"]["status"] == 200 and done["kill_experiment"]["status"] == (200 if who == "ann" else 403), done
        assert {e["address"] for e in done.values()} == {"127.0.0.1"}
    (kill,) = [e for e in entries(username="bob", operation="kill_experiments") if len(e["detail"]["experimentIds"]) == 3]
    assert kill["detail"]["experimentIds"] == [w.exp, w.bobs, 999] and kill["path"] == "/api/v1/experiments/kill", kill
    made = entries(operation="post_user")
    assert {"active": True, "username": "ann"} in [e["detail"].get("user") for e in made if e["detail"]], made
    assert "own" not in w.c.sql("SELECT string_agg(detail::text, ' ') FROM audit"), "a password is in the audit log"
    assert entries(before=entries()[1]["id"])[0] == entries()[2]
    assert entries(since="2999-01-01T00:00:00Z") == []
    w.bob.refused(403, "administrator", "get_audit")
    w.admin.refused(400, "before", "get_audit", before="x")
    out = w.c.det("master", "audit", "--user", "bob", "--operation", "kill_experiments").stdout
    assert "bob" in out and "127.0.0.1" in out and "POST /api/v1/experiments/kill" in out and f"[{w.exp}" in out, out
    first = w.c.det("master", "audit", "--limit", "2", "--csv")
    assert f"--before {entries()[1]['id']}\n" in first.stderr, first.stderr
    older = json.loads(w.c.det("master", "audit", "--limit", "2", "--before", entries()[1]["id"], "--json").stdout)["entries"]
    assert older == entries()[2:4], older
    forgotten(w.c)


def forgotten(c):
    """What is older than the setting says goes, soon after a start."""
    c.sql("UPDATE audit SET at = at - interval '400 days' WHERE username = 'bob'")
    c.stop("master")
    c.start_master()
    wait_until(lambda: c.sql("SELECT count(*) FROM audit WHERE username = 'bob'") == "0", 20, "old lines of the audit log to go")
    assert int(c.sql("SELECT count(*) FROM audit")) > 100


def by_owner():
    with Cluster(agents=0) as c:
        w = Walk(c)
        told(w)
        tokens(w)
        roles(w)
        verbs(w)
        walk(w)
        audited(w)
        w.agent.close()


def basic():
    """One setting opens pause, kill and edit to everybody; deletion, moves and speaking for a trial stay."""
    with Cluster(agents=0, env={"DET_SECURITY_AUTHZ_TYPE": "basic"}) as c:
        w = Walk(c)
        w.each(w.bob, lambda op, m: 404 if op in HIDDEN else 403 if op in ADMIN or is_write(op, m) and op not in SHARED else "in", leave={"logout"})
        w.agent.close()


def main():
    by_owner()
    basic()
    by_roles_only()
    print("test_access: passed")


main()
