"""Where experiments belong and what they start from: workspaces, projects, moves, templates; what the web page keeps for a
user; a checkpoint as one archive."""
import concurrent.futures
import contextlib
import io
import json
import os
import socket
import sys
import tarfile
import uuid
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import people  # noqa: E402
from cluster import SLOWER, Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from masters import Session  # noqa: E402
from openapi import Api  # noqa: E402
from walk import VIEWER, grants, log_in  # noqa: E402

LARGER = 8 if os.environ.get("DET_SANITIZED") else 1  # what is freed is kept for a while
CONFIG = """
name: places
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: single, metric: loss, max_length: {batches: 100}}
"""


def create(user, config=CONFIG, **more):
    made = user.call("create_experiment", {"config": config, "modelDefinition": [], "activate": False, **more})
    if not more.get("validateOnly") and not more.get("activate"):
        same(made["experiment"], user.call("get_experiment", experimentId=made["experiment"]["id"])["experiment"])
    return made


def same(made, read):
    """What the POST answers from memory is what is stored."""
    differing = {k: (made.get(k), read.get(k)) for k in made.keys() | read.keys() if made.get(k, "-") != read.get(k, "-")}
    assert not differing, differing


def remembered(user):
    """A place that is remembered is not remembered longer than it is so."""
    labels = "labels: [z, a, \"\\u00e9\\\"\"]\ndescription: \"two\\nlines\"\n"
    numbers = "data: {a: 1.0e-3, b: 1e20, c: [1.0, -0.0, 3, null, true], d: 0.1}\n"
    many = CONFIG.replace("name: single", "name: random, max_trials: 3").replace("lr: 0.25", "lr: {type: double, minval: 0, maxval: 1}")
    files = [{"path": "model_def.py", "type": 48, "content": "eCA9IDEK", "mtime": "1690000000", "mode": 33188}]
    parent = create(user, CONFIG + labels + numbers, modelDefinition=files)["experiment"]
    assert create(user, parentId=parent["id"])["experiment"]["forkedFrom"] == parent["id"]
    create(user, many)
    space = user.call("post_workspace", {"name": "Brief"})["workspace"]["id"]
    project = user.call("post_project", {"name": "p"}, workspaceId=space)["project"]["id"]
    by_name = CONFIG + "workspace: Brief\nproject: p\n"
    for name, verb in (("project", project), ("workspace", space)):
        for _ in range(2):
            assert create(user, projectId=project)["experiment"]["projectName"] == "p"
            create(user, by_name)
        user.call("archive_" + name, id=verb)
        user.refused(400, "archived", "create_experiment", {"config": CONFIG, "projectId": project})
        user.refused(400, "archived", "create_experiment", {"config": by_name})
        user.call("unarchive_" + name, id=verb)
    user.call("patch_user", {"displayName": "The Admin"}, userId=1)
    assert create(user)["experiment"]["displayName"] == "The Admin"
    user.call("patch_user", {"displayName": ""}, userId=1)
    user.call("archive_workspace", id=space)


def places(user):
    first = user.call("get_workspaces")["workspaces"]
    assert [(w["id"], w["name"], w["immutable"]) for w in first] == [(1, "Uncategorized", True)], first
    vision = user.call("post_workspace", {"name": "Vision"})["workspace"]
    assert vision["username"] == "admin" and not vision["immutable"]
    user.refused(409, "already", "post_workspace", {"name": "VISION"})
    for bad in ("", "   ", "x" * 81):
        user.refused(400, "name", "post_workspace", {"name": bad})
    for field, lost in (("checkpointStorageConfig", {"checkpointStorageConfig": {"type": "shared_fs", "host_path": "/x"}}),
                        ("agentUserGroup", {"agent_user_group": {"agentUid": 7}}), ("defaultComputePool", {"defaultComputePool": "gpu"}),
                        ("defaultAuxPool", {"defaultAuxPool": "cpu"})):
        told = user.refused(501, "not kept", "post_workspace", {"name": "lossy", **lost})
        assert field + ":" in told and "leave it out" in told, told  # its name, and what to do
    assert user.call("get_workspaces", name="lossy")["workspaces"] == []
    project = user.call("post_project", {"name": "digits", "description": "d"}, workspaceId=vision["id"])["project"]
    assert project["workspaceName"] == "Vision" and project["numExperiments"] == 0 and project["notes"] == []
    user.refused(409, "already", "post_project", {"name": "Digits"}, workspaceId=vision["id"])
    user.refused(404, "", "post_project", {"name": "x"}, workspaceId=1)
    user.refused(404, "", "post_project", {"name": "x"}, workspaceId=999)
    assert user.call("get_workspaces", name="vision")["pagination"]["total"] == 1
    assert user.call("get_workspaces", nameCaseSensitive="vision")["workspaces"] == []
    assert [w["id"] for w in user.call("get_workspaces", sortBy="SORT_BY_NAME", orderBy="ORDER_BY_DESC")["workspaces"]] == [vision["id"], 1]
    assert [p["id"] for p in user.call("get_workspace_projects", id=0)["projects"]] == [1, project["id"]]
    assert [p["id"] for p in user.call("get_workspace_projects", id=vision["id"], users=["admin"], sortBy="SORT_BY_NAME")["projects"]] == [project["id"]]
    assert user.call("get_workspace_projects", id=0, users=["nobody"])["projects"] == []
    user.refused(400, "out of bounds", "get_workspaces", offset=50)
    assert user.call("get_workspace", id=vision["id"])["workspace"]["numProjects"] == 1
    assert user.call("get_project", id=project["id"])["project"]["name"] == "digits"
    user.refused(404, "", "get_workspace", id=999)
    user.refused(404, "", "get_project", id=999)
    return vision["id"], project["id"]


def changed(c, user, workspace, project):
    """Another name, another description; what is not named stays. Neither of what every cluster has, nor of what is archived."""
    before = user.call("get_project", id=project)["project"]
    assert user.call("patch_project", {"description": "what it is for"}, id=project)["project"] == {**before, "description": "what it is for"}
    renamed = user.call("patch_project", {"name": "letters", "description": None}, id=project)["project"]
    assert renamed == {**before, "name": "letters", "description": "what it is for"} == user.call("get_project", id=project)["project"]
    assert user.call("patch_project", {"name": "LETTERS"}, id=project)["project"]["name"] == "LETTERS"  # the same but for its case
    assert user.call("patch_project", {"name": "digits", "description": ""}, id=project)["project"]["description"] == ""
    other = user.call("post_project", {"name": "other"}, workspaceId=workspace)["project"]["id"]
    user.refused(409, "already", "patch_project", {"name": "Digits"}, id=other)
    user.call("archive_project", id=other)
    place = user.call("patch_workspace", {"name": "Sight"}, id=workspace)["workspace"]
    assert place["name"] == "Sight" == user.call("get_project", id=project)["project"]["workspaceName"]
    create(user, CONFIG + "workspace: Sight\nproject: digits\n", validateOnly=True)
    user.refused(404, "not found", "create_experiment", {"config": CONFIG + "workspace: Vision\nproject: digits\n", "validateOnly": True})
    user.refused(409, "already", "patch_workspace", {"name": "uncategorized"}, id=workspace)
    assert user.call("patch_workspace", {"name": "Vision"}, id=workspace)["workspace"] == {**place, "name": "Vision"}
    for what, id in (("workspace", workspace), ("project", project)):
        for bad in ("", "  ", "x" * 81):
            user.refused(400, "name: 1 to 80", "patch_" + what, {"name": bad}, id=id)
        user.refused(400, "name", "patch_" + what, {"name": 7}, id=id)
        user.refused(404, what + " 999 not found", "patch_" + what, {"name": "x"}, id=999)
        user.refused(400, "make another", "patch_" + what, {"name": "x"}, id=1)
    user.refused(501, "defaultAuxPool: not kept", "patch_workspace", {"name": "lossy", "defaultAuxPool": "cpu"}, id=workspace)
    for what, id in (("project", project), ("workspace", workspace)):
        user.call("archive_" + what, id=id)
        user.refused(400, "unarchive", "patch_project", {"name": "x"}, id=project)
        user.call("unarchive_" + what, id=id)
    user.call("archive_workspace", id=workspace)
    user.refused(400, "unarchive", "patch_workspace", {"name": "x"}, id=workspace)
    user.call("unarchive_workspace", id=workspace)
    people.add(c, "piet")
    piet = log_in(c.port, "piet")
    piet.refused(403, "belongs to admin", "patch_project", {"name": "x"}, id=project)
    piet.refused(403, "belongs to admin", "patch_workspace", {"name": "x"}, id=workspace)
    assert user.call("get_workspace", id=workspace)["workspace"]["name"] == "Vision"
    last = c.sql("SELECT operation, detail->>'name' FROM audit WHERE operation = 'patch_workspace' AND status = 200 ORDER BY epoch DESC, n DESC LIMIT 1")
    assert last == "patch_workspace|Vision", last



def belongs(user, workspace, project):
    """By name in the configuration, by id in the request; moved; never into what is archived."""
    by_name = create(user, CONFIG + "workspace: Vision\nproject: digits\n")["experiment"]
    by_id = create(user, projectId=project)["experiment"]
    assert by_name["projectId"] == by_id["projectId"] == project and by_name["workspaceName"] == "Vision"
    assert {e["id"] for e in user.call("get_experiments", projectId=project)["experiments"]} == {by_name["id"], by_id["id"]}
    assert user.call("move_experiment", {"destinationProjectId": 1}, experimentId=by_id["id"]) == {}
    assert user.call("get_experiment", experimentId=by_id["id"])["experiment"]["projectId"] == 1
    moved = user.call("move_experiments", {"experimentIds": [by_id["id"], 999], "destination_project_id": project})["results"]
    assert [bool(r["error"]) for r in moved] == [False, True], moved
    user.refused(404, "project 999 not found", "move_experiment", {"destinationProjectId": 999}, experimentId=by_id["id"])
    user.refused(404, "not found", "move_experiment", {"destinationProjectId": 1}, experimentId=999)
    user.refused(400, "required", "move_experiment", {}, experimentId=by_id["id"])
    user.refused(404, "project 999 not found", "get_experiments", projectId=999)
    for text, request in (("projectId: project 999", {"projectId": 999}), ("parentId: experiment 999", {"parentId": 999}),
                          ('project "x" of workspace "Vision"', {"config": CONFIG + "workspace: Vision\nproject: x\n"})):
        user.refused(404, text + " not found", "create_experiment", {"config": CONFIG, **request})
    assert user.call("archive_workspace", id=workspace) == {}
    assert user.call("get_project", id=project)["project"]["archived"] is True
    user.refused(400, "archived", "create_experiment", {"config": CONFIG, "projectId": project})
    user.refused(404, "archived", "post_project", {"name": "more"}, workspaceId=workspace)
    other = create(user)["experiment"]["id"]
    user.refused(400, "archived", "move_experiment", {"destinationProjectId": project}, experimentId=other)
    assert {e["id"] for e in user.call("get_experiments", archived=False)["experiments"]} == {other}
    user.call("unarchive_workspace", id=workspace)
    user.call("archive_project", id=project)
    assert user.call("get_workspace_projects", id=workspace, archived=False)["projects"] == []
    user.call("unarchive_project", id=project)
    user.refused(404, "", "archive_workspace", id=1)
    user.refused(404, "", "archive_project", id=1)


def deleted(c, user):
    """What is empty; else it is said what is in it. What every cluster has stays."""
    space = user.call("post_workspace", {"name": "Brittle"})["workspace"]["id"]
    project = user.call("post_project", {"name": "p"}, workspaceId=space)["project"]["id"]
    by_name = {"config": CONFIG + "labels: [gone]\nworkspace: Brittle\nproject: p\n", "modelDefinition": [], "activate": False}
    exp = user.call("create_experiment", by_name)["experiment"]["id"]
    user.refused(400, f"project {project} holds 1 experiment (archived ones count)", "delete_project", id=project)
    user.call("post_model", {"name": "brittle", "workspaceId": space})
    user.call("post_template", {"name": "brittle", "config": {"debug": True}, "workspaceId": space}, template__name="brittle")
    user.refused(400, f"workspace {space} holds 1 project and 1 model and 1 template", "delete_workspace", id=space)
    user.call("move_experiment", {"destinationProjectId": 1}, experimentId=exp)
    piet = log_in(c.port, "piet")
    piet.refused(403, "belongs to admin", "delete_project", id=project)
    piet.refused(403, "belongs to admin", "delete_workspace", id=space)
    user.call("archive_project", id=project)  # no hindrance
    assert user.call("delete_project", id=project) == {"completed": True}
    user.refused(404, f"project {project} not found", "delete_project", id=project)
    user.refused(404, "not found", "get_project", id=project)
    user.refused(404, "not found", "create_experiment", by_name)  # it is remembered no longer
    user.refused(404, "not found", "create_experiment", {"config": CONFIG, "projectId": project})
    user.refused(404, "not found", "move_experiment", {"destinationProjectId": project}, experimentId=exp)
    assert c.sql(f"SELECT (SELECT count(*) FROM experiment_counts WHERE project_id = {project}), (SELECT count(*) FROM label_counts WHERE project_id = {project})") == "0|0"
    user.call("delete_model", modelName="brittle")
    user.call("delete_template", templateName="brittle")
    view = user.call("post_view", {"name": "brittle", "address": "/det/jobs", "workspaceId": space})["view"]["id"]
    user.call("add_assignments", grants(VIEWER, space, user=user.call("get_user_by_username", username="piet")["user"]["id"]))
    assert user.call("delete_workspace", id=space) == {"completed": True}
    assert user.call("get_view", viewId=view)["view"]["workspaceId"] == 0
    user.call("delete_view", viewId=view)
    user.refused(404, f"workspace {space} not found", "delete_workspace", id=space)
    user.refused(404, "", "post_project", {"name": "p"}, workspaceId=space)
    again = user.call("post_workspace", {"name": "Brittle"})["workspace"]["id"]
    assert again > space
    user.call("delete_workspace", id=again)
    user.refused(400, "cannot be deleted", "delete_workspace", id=1)
    user.refused(400, "cannot be deleted", "delete_project", id=1)


def overtaken(c, user):
    """Whoever is faster: an experiment stands in a project that is there, and the master lives on."""
    space = user.call("post_workspace", {"name": "Contested"})["workspace"]["id"]
    made = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for i in range(10):
            project = user.call("post_project", {"name": f"p{i}"}, workspaceId=space)["project"]["id"]
            body = {"config": CONFIG, "modelDefinition": [], "activate": False, "projectId": project}
            asked = [pool.submit(user.raw, "POST", "/api/v1/experiments", body) for _ in range(3)] + [pool.submit(user.raw, "DELETE", f"/api/v1/projects/{project}")]
            statuses = [a.result()[0] for a in asked]
            assert set(statuses) <= {200, 400, 404}, statuses
            made += [json.loads(a.result()[1])["experiment"]["id"] for a in asked[:3] if a.result()[0] == 200]
    stand = {e["id"]: e["projectName"] for e in user.call("get_experiments", limit=-1)["experiments"]}
    assert set(made) <= stand.keys(), (made, stand)
    # What the core writes for a project that is gone meanwhile.
    last = c.sql("SELECT max(id) FROM projects")
    late = "INSERT INTO experiments (id, job_id, owner_id, project_id, state, start_time, name, config, original_config) "
    refused = f"project {int(last) + 1000} not found: it has been deleted"
    c.sql(f"DO $$ BEGIN {late} VALUES (-5, 'late', 1, {int(last) + 1000}, 'PAUSED', now(), 'late', '{{}}', ''); RAISE 'it was taken'; "
          f"EXCEPTION WHEN foreign_key_violation THEN ASSERT SQLERRM = '{refused}', SQLERRM; END $$")


def answer_while(c, pool, sql, first, then):
    """Two requests, method, path and body: the first's status, and the second's answer, as the first waits for what sql locks."""
    user = Api(c.port, c.token)
    with Session(c, "BEGIN; " + sql):
        asked = pool.submit(user.raw, *first)
        wait_until(lambda: asked.done() or int(c.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")) > 0, 20, "a lock is waited for")
        answer = Api(c.port, c.token).raw(*then)[:2]
    return asked.result()[0], *answer


def contested(c, user, unmanaged):
    """While one is made in a project, that is not deleted; while that is deleted, none is made in it, nor in another.
    A statement waits for a while only, then it has failed: on a slow machine it is tried again."""
    space = user.call("post_workspace", {"name": f"Contested {unmanaged}"})["workspace"]["id"]
    kept = gone = False
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for i in range(20):
            project = user.call("post_project", {"name": f"p{i}"}, workspaceId=space)["project"]["id"]
            delete = ("DELETE", f"/api/v1/projects/{project}", None)
            make = ("POST", "/api/v1/experiments", {"config": CONFIG, "modelDefinition": [], "activate": False, "unmanaged": unmanaged, "projectId": project})
            if i % 2:
                first, status, text = answer_while(c, pool, "LOCK TABLE experiments IN EXCLUSIVE MODE", make, delete)
                refusal = 400, b"something has just come into it"
            else:
                first, status, text = answer_while(c, pool, f"SELECT FROM projects WHERE id = {project} FOR UPDATE", delete, make)
                refusal = 404, f"project {project} not found".encode()
            is_refused = status == refusal[0] and refusal[1] in text
            # The second may succeed only where the first had been given up.
            assert first in (200, 503) and (is_refused or status == 503 or (status == 200 and first == 503)), (i, first, status, text)
            kept, gone = kept or (is_refused and i % 2 == 1), gone or (is_refused and i % 2 == 0)
            if kept and gone:
                break
    assert kept and gone, (kept, gone)


def templates(user):
    config = {"max_restarts": 7, "resources": {"priority": 3}, "environment": {"environment_variables": ["A=1"]}}
    made = user.call("post_template", {"name": "base", "config": config}, template__name="base")["template"]
    assert made["config"]["max_restarts"] == 7 and made["workspaceId"] == 1
    user.refused(409, "there already", "post_template", {"config": {}}, template__name="base")
    user.refused(400, "differs", "post_template", {"name": "x", "config": {}}, template__name="y")
    text = user.refused(400, "max_restartz", "post_template", {"config": {"max_restartz": 1, "debug": 5}}, template__name="bad")
    assert "debug" in text, text
    user.refused(400, "object", "post_template", {"config": []}, template__name="bad")
    user.refused(404, "workspace 99 not found", "post_template", {"config": {}, "workspaceId": 99}, template__name="bad")
    user.refused(400, "workspaceId", "put_template", {"config": {}, "workspaceId": 1}, template__name="bad")
    user.call("put_template", {"config": {"debug": True}}, template__name="second")
    assert user.call("put_template", {"config": {"debug": False}}, template__name="second")["template"]["config"] == {"debug": False}
    assert user.call("patch_template", {"max_restarts": 2}, templateName="second")["template"]["config"] == {"max_restarts": 2}
    assert user.call("get_template", templateName="base")["template"]["config"]["resources"] == {"priority": 3}
    user.refused(404, '"none" not found', "patch_template", {"debug": True}, templateName="none")
    assert [t["name"] for t in user.call("get_templates", orderBy="ORDER_BY_DESC")["templates"]] == ["second", "base"]
    assert [t["name"] for t in user.call("get_templates", name="AS", sortBy="SORT_BY_NAME")["templates"]] == ["base"]
    assert user.call("get_templates", limit=-2)["pagination"]["total"] == 2
    assert user.call("get_templates", offset=-1)["templates"][0]["name"] == "second"
    made = create(user, CONFIG + "resources: {weight: 2}\nmax_restarts: 1\n", template="base", validateOnly=True)["config"]
    assert (made["max_restarts"], made["resources"]["priority"], made["resources"]["weight"]) == (1, 3, 2), made
    assert "A=1" in json.dumps(made["environment"]["environment_variables"]), made
    stored = create(user, template="base")["experiment"]
    assert stored["config"]["max_restarts"] == 7 and stored["originalConfig"] == CONFIG
    user.refused(404, 'template "none" not found', "create_experiment", {"config": CONFIG, "template": "none"})
    assert user.call("delete_template", templateName="second") == {}
    user.refused(404, 'template "second" not found', "delete_template", templateName="second")
    user.refused(404, 'template "second" not found', "get_template", templateName="second")


def settings(c, user):
    assert user.call("get_user_setting")["settings"] == []
    kept = [{"key": "k", "storagePath": "a/b", "value": "1"}, {"key": "k", "storagePath": "", "value": "{}"}]
    assert user.call("post_user_setting", {"settings": kept}) == {}
    user.call("post_user_setting", {"settings": [{"key": "k", "storage_path": "a/b", "value": "2"}, {"key": "k", "storagePath": "a/b", "value": "3"}]})
    assert user.call("get_user_setting")["settings"] == [kept[1], {**kept[0], "value": "3"}]
    user.refused(400, "settings", "post_user_setting", {})
    user.refused(400, "settings[0].key is required", "post_user_setting", {"settings": [{"value": "1"}]})
    user.refused(400, "settings[1]", "post_user_setting", {"settings": [kept[0], {"key": ""}]})
    assert len(user.call("get_user_setting")["settings"]) == 2
    assert user.call("reset_user_setting") == {}
    assert user.call("get_user_setting")["settings"] == []


def views(c, user):
    """Its owner's alone, until he shows it in a workspace; then everybody sees it, and only he changes it."""
    people.add(c, "vera")
    vera = log_in(c.port, "vera")
    mine = user.call("post_view", {"name": "b", "address": "/det/experiments?search=x"})["view"]
    assert (mine["username"], mine["workspaceId"], mine["workspaceName"]) == ("admin", 0, ""), mine
    user.call("post_view", {"name": "A", "address": "/det/clusters"})
    hers = vera.call("post_view", {"name": "b", "address": "/det/jobs"})["view"]
    assert [v["name"] for v in user.call("get_views")["views"]] == ["A", "b"]
    for op in ("get_view", "patch_view", "delete_view"):
        for who, view in ((vera, mine["id"]), (user, hers["id"]), (user, 0)):  # administrators neither
            who.refused(404, f"view {view} not found", op, *[{"name": "c"}] * (op == "patch_view"), viewId=view)
    assert user.call("patch_view", {"workspaceId": 1}, viewId=mine["id"])["view"] == {**mine, "workspaceId": 1, "workspaceName": "Uncategorized"}
    assert [(v["name"], v["username"]) for v in vera.call("get_views")["views"]] == [("b", "vera"), ("b", "admin")]
    assert vera.call("get_view", viewId=mine["id"])["view"]["address"] == mine["address"]
    vera.refused(403, "belongs to admin", "patch_view", {"name": "c"}, viewId=mine["id"])
    vera.refused(403, "belongs to admin", "delete_view", viewId=mine["id"])
    user.refused(409, "already", "patch_view", {"name": "A"}, viewId=mine["id"])
    user.refused(409, "already", "post_view", {"name": "A", "address": "/det/jobs"})
    user.refused(404, "workspace 999 not found", "patch_view", {"workspaceId": 999}, viewId=mine["id"])
    for bad in ({"name": "c"}, {"address": "/det/x"}, {"name": "c", "address": "//elsewhere.invalid"}, {"name": "c", "address": "/det/x", "workspaceId": -1}):
        user.refused(400, "", "post_view", bad)
    assert user.call("patch_view", {"name": "c", "workspaceId": 0}, viewId=mine["id"])["view"] == {**mine, "name": "c"}
    assert len(vera.call("get_views")["views"]) == 1 and user.call("get_views", name="C", limit=-1)["pagination"]["total"] == 1
    assert vera.call("delete_view", viewId=hers["id"]) == {}
    c.sql("INSERT INTO page_views (user_id, name, address) SELECT 1, 'n' || n, '/det/x' FROM generate_series(3, 200) n")
    user.refused(400, "delete one", "post_view", {"name": "one more", "address": "/det/x"})
    assert len(user.call("get_views")["views"]) == 100 and len(user.call("get_views", limit=-1)["views"]) == 200


def archives(c, user, agent):
    """From a store on the master's own host."""
    create(user, CONFIG.replace("name: places", "name: run"), activate=True)
    order = agent.next("start")
    agent.run(order)
    task = Api(c.port, alloc=order["task"]["token"])
    key = str(uuid.uuid4())
    task.call("post_checkpoint", {"uuid": key, "taskId": order["task"]["task_id"], "allocationId": order["alloc"],
                                  "resources": {"state_dict.pth": "5", "code/": "0", "code/m.py": "3"}, "metadata": {"steps_completed": 1}})
    os.makedirs(c.path("checkpoints", key, "code"))
    for name, data in (("state_dict.pth", b"state"), ("code/m.py", b"x=1")):
        with open(c.path("checkpoints", key, name), "wb") as f:
            f.write(data)
    status, data, r = user.raw("GET", f"/checkpoints/{key}", headers={"Accept": "application/gzip"})
    assert status == 200 and r.getheader("Content-Type") == "application/gzip" and f"{key}.tgz" in r.getheader("Content-Disposition")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert sorted(tar.getnames()) == ["code", "code/m.py", "state_dict.pth"] and tar.extractfile("state_dict.pth").read() == b"state"
    status, data, r = user.raw("GET", f"/checkpoints/{key}", headers={"Accept": "application/zip"})
    assert status == 200 and r.getheader("Content-Type") == "application/zip" and f"{key}.zip" in r.getheader("Content-Disposition")
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        assert z.testzip() is None and z.read("code/m.py") == b"x=1"
    assert user.raw("GET", f"/checkpoints/{uuid.uuid4()}", headers={"Accept": "application/zip"})[0] == 404
    assert user.raw("GET", "/checkpoints/zz", headers={"Accept": "application/zip"})[0] == 400
    large(c, user, key)
    agent.exit(order)


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def ask(c, key):
    s = socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER)
    s.sendall(f"GET /checkpoints/{key} HTTP/1.1\r\nHost: x\r\nAccept: application/gzip\r\nAuthorization: Bearer {c.token}\r\nConnection: close\r\n\r\n".encode())
    return s


def rest(s):
    """What comes until the connection ends, by a reset too."""
    got = []
    with s, contextlib.suppress(ConnectionResetError):
        while piece := s.recv(1 << 20):
            got.append(piece)
    return b"".join(got)


def large(c, user, key):
    """A checkpoint of any size is sent as it is packed; the master keeps little of it, whoever reads it how slowly, or goes."""
    path, pid = c.path("checkpoints", key, "optimizer.pt"), c.procs["master"].pid
    with open(path, "wb") as f:
        f.truncate(2 << 30)
    before, size, most = resident_kb(pid), 0, 0
    _, answer = user.open("GET", f"/checkpoints/{key}", headers={"Accept": "application/gzip"})
    with tarfile.open(fileobj=answer, mode="r|gz") as tar:
        for member in tar:
            file = tar.extractfile(member)
            while file and (piece := file.read(16 << 20)):
                size, most = size + len(piece), max(most, resident_kb(pid))
    assert size == (2 << 30) + len(b"state") + len(b"x=1"), size
    assert most - before < LARGER * (64 << 10), f"{before} kB before, {most} kB while it was sent"
    with open(path, "wb") as f:  # what no compression makes small
        for _ in range(64):
            f.write(os.urandom(1 << 20))
    threads = len(os.listdir(f"/proc/{pid}/task"))
    asked = [ask(c, key) for _ in range(20)]  # at once: who reads nothing for 10 s is cut, and makes room
    with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:  # nor does one wait for another's answer: it would be cut
        answers = list(pool.map(lambda s: s.recv(12), asked))
    user.call("get_me")
    assert resident_kb(pid) - before < LARGER * (160 << 10), "16 readers who do not read"
    refused = [s for s, answer in zip(asked, answers) if answer == b"HTTP/1.1 503"]
    assert answers.count(b"HTTP/1.1 200") == 20 - len(refused) >= 16 and refused, answers
    assert b"under way" in rest(refused[0])
    for s in asked:
        s.close()
    wait_until(lambda: len(os.listdir(f"/proc/{pid}/task")) <= threads + 1, 60, "the end of those who have gone")
    s = ask(c, key)
    assert s.recv(12) == b"HTTP/1.1 200"
    os.truncate(path, 32 << 20)  # in the middle of it: it must not seem whole
    got = rest(s)
    assert len(got) < 40 << 20 and not got.endswith(b"0\r\n\r\n"), len(got)
    wait_until(lambda: "ended in the middle" in open(c.path("master.log")).read(), 20, "a line in the log")


def main():
    with Cluster(agents=0) as c:
        c.login()
        user = Api(c.port, c.token)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        workspace, project = places(user)
        changed(c, user, workspace, project)
        belongs(user, workspace, project)
        deleted(c, user)
        overtaken(c, user)
        for unmanaged in (False, True):
            contested(c, user, unmanaged)
        remembered(user)
        templates(user)
        settings(c, user)
        views(c, user)
        archives(c, user, agent)
        agent.close()
    print("test_api_places: passed")


main()
