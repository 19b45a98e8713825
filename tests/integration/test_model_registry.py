"""The model registry: models, their versions, who may change them, and that nothing removes the checkpoint of a version."""
import json
import os
import subprocess
import sys
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import people  # noqa: E402
from cluster import BIN, SLOWER, Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api, Failed  # noqa: E402
from walk import EDITOR, VIEWER, grants, log_in  # noqa: E402

CONFIG = """
name: registry
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: single, metric: loss, max_length: {batches: 100}}
checkpoint_storage: {save_trial_latest: 9}
"""


def checkpoints(c, user, agent, n):
    """An experiment that has ended, of so many checkpoints: its id, and theirs, the oldest first."""
    exp = user.call("create_experiment", {"config": CONFIG, "modelDefinition": [], "activate": True})["experiment"]["id"]
    order = agent.next("start")
    agent.run(order)
    task = Api(c.port, alloc=order["task"]["token"])
    trial, keys = int(order["task"]["env"]["DET_TRIAL_ID"]), [str(uuid.uuid4()) for _ in range(n)]
    for i, key in enumerate(keys):
        task.call("post_checkpoint", {"uuid": key, "taskId": order["task"]["task_id"], "allocationId": order["alloc"],
                                      "resources": {"state_dict.pth": "5"}, "metadata": {"steps_completed": (i + 1) * 10}})
    user.call("kill_trial", id=trial)
    agent.exit(agent.next("signal"), "killed")
    wait_until(lambda: user.call("get_experiment", experimentId=exp)["experiment"]["state"] == "STATE_CANCELED", 20, "the experiment's end")
    return exp, keys


def models(user):
    """Made, read by name in any case and by id, changed, listed; hostile bodies change nothing."""
    first = user.call("post_model", {"name": "Digits", "description": "d", "labels": None, "metadata": None, "notes": None})["model"]
    assert (first["name"], first["workspaceId"], first["username"], first["numVersions"], first["archived"]) == ("Digits", 1, "admin", 0, False), first
    assert first["labels"] == [] and first["metadata"] == {} and first["creationTime"] == first["lastUpdatedTime"], first
    assert user.call("get_model", modelName="dIGITS")["model"] == user.call("get_model", modelName=first["id"])["model"] == first
    user.refused(409, '"DIGITS"', "post_model", {"name": "DIGITS"})
    for bad, words in (("", "not blank"), ("  ", "not blank"), ("a/b", "'/'"), ("12", "only digits"), (" a", "space"), ("a  b", "space"),
                       ("a\nb", "control"), ("x" * 201, "1 to 200"), (".", '"."'), ("..", '".."'), (7, "name"), (["a"], "name")):
        user.refused(400, words, "post_model", {"name": bad})
        if bad != "":
            user.refused(400, words, "patch_model", {"name": bad}, modelName="digits")
    user.refused(400, "name", "post_model", {})
    for body, words in (({"labels": "a"}, "labels"), ({"labels": [1]}, "labels[0]"), ({"labels": ["a", ""]}, "labels[1]"), ({"labels": ["x"] * 101}, "100"),
                        ({"metadata": [1]}, "metadata"), ({"notes": {}}, "notes"), ({"description": 1}, "description"),
                        ({"notes": "x" * 65537}, "notes: 65537 bytes; at most 65536"), ({"description": "\u00e9" * 40000}, "description: 80000 bytes"),
                        ({"metadata": {"k": "x" * 65536}}, "metadata: 65544 bytes as JSON; at most 65536"),
                        ({"workspaceId": -1}, "workspaceId"), ({"workspaceId": "x"}, "workspaceId"), ({"workspaceId": 1, "workspaceName": "x"}, "one of")):
        user.refused(400, words, "post_model", {"name": "bad", **body})
        user.refused(400, words, "patch_model", body, modelName="digits")
    for body in ({"workspaceId": 999}, {"workspaceName": "nowhere"}):
        user.refused(404, "workspace", "post_model", {"name": "bad", **body})
        user.refused(404, "workspace", "patch_model", body, modelName="digits")
    assert user.call("get_model", modelName="digits")["model"] == first, "a refused request changed it"
    edit = {"labels": ["new", "good", "new"], "metadata": {"lr": 0.1, "deep": {"a": [1, None, "\u00e9"]}}, "notes": "# n"}
    got = user.call("patch_model", edit, modelName=first["id"])["model"]
    assert got["labels"] == ["new", "good"] and got["metadata"] == edit["metadata"] and (got["notes"], got["description"]) == ("# n", "d"), got
    assert got["lastUpdatedTime"] > first["lastUpdatedTime"] and got["creationTime"] == first["creationTime"]
    got = user.call("patch_model", {"name": "digits", "metadata": {}, "labels": ["good"], "description": ""}, modelName="Digits")["model"]
    assert got["name"] == "digits" and got["metadata"] == {} and got["description"] == "" and got["notes"] == "# n", got
    for op, body in (("get_model", None), ("patch_model", {}), ("archive_model", None), ("unarchive_model", None), ("delete_model", None),
                     ("get_model_versions", None), ("move_model", {"destinationWorkspaceId": 1}),
                     ("post_model_version", {"checkpointUuid": str(uuid.uuid4())})):
        for name in ("nothing", "999", "9" * 30, "%ff", "'; --"):
            user.refused(404, "not found", op, body, modelName=name)


def lists(user):
    """Filtered, sorted, paged."""
    lab = user.call("post_workspace", {"name": "Lab"})["workspace"]["id"]
    for name, more in (("alpha", {"workspaceName": "lAB", "labels": ["good", "a"]}), ("beta", {"workspaceId": lab, "description": "the Second"})):
        user.call("post_model", {"name": name, **more})

    def names(**query):
        return [m["name"] for m in user.call("get_models", **query)["models"]]
    assert names() == ["digits", "alpha", "beta"]
    assert names(sortBy="SORT_BY_NAME") == ["alpha", "beta", "digits"] == names(sortBy="SORT_BY_NAME", orderBy="ORDER_BY_DESC")[::-1]
    assert names(sortBy="SORT_BY_LAST_UPDATED_TIME", orderBy="ORDER_BY_DESC") == ["beta", "alpha", "digits"] == names(sortBy="SORT_BY_CREATION_TIME")[::-1]
    assert names(sortBy="SORT_BY_WORKSPACE") == ["alpha", "beta", "digits"] and names(sortBy="SORT_BY_DESCRIPTION")[-1] == "beta"
    assert names(sortBy="SORT_BY_NUM_VERSIONS") == ["digits", "alpha", "beta"]
    assert names(name="ALPH") == ["alpha"] and names(description="second") == ["beta"] and names(name="%") == []
    assert names(labels=["good"]) == ["digits", "alpha"] and names(labels=["good", "a"]) == ["alpha"] and names(labels=["b"]) == []
    assert names(workspaceNames=["LAB"]) == ["alpha", "beta"] == names(workspaceIds=[lab]) and names(workspaceIds=[1]) == ["digits"]
    assert names(users=["admin"], userIds=[1]) == names() and names(users=["nobody"]) == [] and names(id=1) == ["digits"]
    page = user.call("get_models", sortBy="SORT_BY_NAME", offset=1, limit=1)
    assert [m["name"] for m in page["models"]] == ["beta"] and page["pagination"] == {"offset": 1, "limit": 1, "startIndex": 1, "endIndex": 2, "total": 3}
    user.refused(400, "out of bounds", "get_models", offset=50)
    user.refused(400, "sortBy", "get_models", sortBy="SORT_BY_COLOUR")
    user.refused(400, "archived", "get_models", archived="perhaps")
    assert user.call("get_model_labels")["labels"] == ["good", "a"] and user.call("get_model_labels", workspaceId=1)["labels"] == ["good"]
    user.call("archive_model", modelName="alpha")
    assert names(archived=True) == ["alpha"] and names(archived=False) == ["digits", "beta"]
    user.refused(400, "archived", "patch_model", {"notes": "x"}, modelName="alpha")
    user.refused(400, "archived", "move_model", {"destinationWorkspaceId": 1}, modelName="alpha")
    user.refused(400, "archived", "post_model_version", {"checkpointUuid": str(uuid.uuid4())}, modelName="alpha")
    user.call("unarchive_model", modelName="alpha")
    user.call("move_model", {"destinationWorkspaceId": 1}, modelName="alpha")
    assert user.call("patch_model", {"workspaceName": "Lab"}, modelName="beta")["model"]["workspaceId"] == lab
    assert user.call("get_model", modelName="alpha")["model"]["workspaceId"] == 1
    user.call("archive_workspace", id=lab)
    for op, body in (("move_model", {"destinationWorkspaceId": lab}), ("patch_model", {"workspaceName": "Lab"})):
        user.refused(400, "is archived", op, body, modelName="alpha")
    user.refused(400, "is archived", "post_model", {"name": "gamma", "workspaceId": lab})
    for bad in ({}, {"destinationWorkspaceId": 0}, {"destinationWorkspaceId": "x"}, {"destinationWorkspaceId": 1 << 40}):
        user.refused(400, "destinationWorkspaceId", "move_model", bad, modelName="alpha")
    user.call("delete_model", modelName="alpha")
    user.refused(404, "not found", "get_model", modelName="alpha")


def versions(user, keys):
    made = user.call("post_model_version", {"modelName": "digits", "checkpointUuid": keys[0], "name": "first", "comment": "c", "labels": ["l"],
                                            "metadata": {"k": 1}, "notes": "n"}, modelName="DIGITS")["modelVersion"]
    assert (made["version"], made["name"], made["comment"], made["labels"], made["metadata"], made["notes"]) == (1, "first", "c", ["l"], {"k": 1}, "n")
    assert made["checkpoint"] == user.call("get_checkpoint", checkpointUuid=keys[0])["checkpoint"] and made["model"]["numVersions"] == 1
    assert user.call("post_model_version", {"checkpointUuid": keys[1]}, modelName="digits")["modelVersion"]["version"] == 2
    assert user.call("get_model_version", modelName=1, modelVersionNum=1)["modelVersion"]["name"] == "first"
    got = user.call("get_model_versions", modelName="digits", sortBy="SORT_BY_VERSION", orderBy="ORDER_BY_DESC", limit=1)
    assert got["model"]["numVersions"] == 2 and [v["version"] for v in got["modelVersions"]] == [2] and got["pagination"]["total"] == 2, got
    assert [v["version"] for v in user.call("get_model_versions", modelName="digits")["modelVersions"]] == [1, 2]
    assert user.call("get_model_versions", modelName="beta")["modelVersions"] == []
    user.refused(400, "out of bounds", "get_model_versions", modelName="digits", offset=3)
    got = user.call("patch_model_version", {"name": "best", "labels": [], "metadata": {"k": 2}, "comment": ""}, modelName="digits", modelVersionNum=1)["modelVersion"]
    assert (got["name"], got["labels"], got["metadata"], got["comment"], got["notes"]) == ("best", [], {"k": 2}, "", "n"), got
    user.refused(400, "stays", "patch_model_version", {"checkpoint": {"uuid": keys[1]}}, modelName="digits", modelVersionNum=1)
    for bad in ({"name": 1}, {"labels": [[]]}, {"metadata": "x"}, {"notes": []}, {"name": "x" * 201}, {"comment": "x" * 65537}, {"notes": "x" * 65537},
                {"metadata": {"k": "x" * 65536}}):
        user.refused(400, next(iter(bad)), "patch_model_version", bad, modelName="digits", modelVersionNum=1)
        user.refused(400, next(iter(bad)), "post_model_version", {"checkpointUuid": keys[0], **bad}, modelName="digits")
    for bad in ("../x", "", 7, None):
        user.refused(400, "UUID", "post_model_version", {"checkpointUuid": bad}, modelName="digits")
    gone = str(uuid.uuid4())
    user.refused(404, gone, "post_model_version", {"checkpointUuid": gone}, modelName="digits")
    for op in ("get_model_version", "patch_model_version", "delete_model_version"):
        body = {} if op == "patch_model_version" else None
        user.refused(404, "no version 9", op, body, modelName="digits", modelVersionNum=9)
        user.refused(400, "integer", op, body, modelName="digits", modelVersionNum="x")
        user.refused(404, "", op, body, modelName="nothing", modelVersionNum=1)
    user.call("archive_model", modelName="digits")
    user.refused(400, "archived", "patch_model_version", {"name": "x"}, modelName="digits", modelVersionNum=1)
    user.call("unarchive_model", modelName="digits")


def large(c, user, key):
    """The largest texts there may be, read one by one and in long lists, which have them once and come in pages."""
    words = {"description": "d" * 65536, "notes": "n" * 65536, "metadata": {"x": [1e300] * 9000}, "labels": ["l"]}
    model = user.call("post_model", {"name": "long", **words})["model"]
    assert {k: model[k] for k in words} == words == {k: user.call("get_model", modelName="long")["model"][k] for k in words}
    made = user.call("post_model_version", {"checkpointUuid": key, "name": "v" * 200, "comment": "c" * 65536}, modelName="long")["modelVersion"]
    assert made["model"]["notes"] == words["notes"] and made["comment"] == "c" * 65536
    c.sql("INSERT INTO model_versions (model_id, version, checkpoint_uuid, user_id, name, comment, notes, labels, metadata) "
          f"SELECT {model['id']}, v, '{key}', 1, '', '', '', '[]', '{{}}' FROM generate_series(2, 450) v")
    for limit, n in ((0, 200), (-1, 200), (1000, 200), (50, 50), (-2, 0)):
        got = user.call("get_model_versions", modelName="long", limit=limit)
        assert [v["version"] for v in got["modelVersions"]] == list(range(1, n + 1)) and got["pagination"]["total"] == 450, (limit, got["pagination"])
        assert {k: got["model"][k] for k in words} == words and got["model"]["numVersions"] == 450
        assert all(v["model"] == {**v["model"], "id": model["id"], "name": "long", "metadata": {}, "numVersions": 450} for v in got["modelVersions"])
    size = len(user.raw("GET", "/api/v1/models/long/versions")[1])
    assert size < 3 * 65536 + 65536 + 200 * 4000, size
    listed = json.loads(c.det("model", "list-versions", "long", "--json").stdout)
    assert [v["version"] for v in listed["modelVersions"]] == list(range(450, 0, -1)) and listed["pagination"]["endIndex"] == 450
    user.call("delete_model", modelName="long")
    c.sql("INSERT INTO models (name, description, notes, labels, metadata, workspace_id, user_id) "
          "SELECT 'many ' || g, '', '', '[]', '{}', 1, 1 FROM generate_series(1, 250) g")
    got = user.call("get_models", name="many ", limit=-1)
    assert len(got["models"]) == 200 and got["pagination"]["total"] == 250, got["pagination"]
    assert len({m["id"] for m in json.loads(c.det("model", "list", "--json").stdout) if m["name"].startswith("many ")}) == 250
    c.sql("DELETE FROM models WHERE name LIKE 'many %'")


def kept(c, user, exp, keys):
    """A version's checkpoint stays, whoever wants it gone, and each is told by which model; its time is over with the version."""
    plan = {x["uuid"]: x["why"] for x in user.call("collect_checkpoints", {"experimentId": exp, "dryRun": True})["checkpoints"]}
    assert len(plan) == 5 and "latest" in plan[keys[0]], plan
    shown = user.call("get_checkpoint", checkpointUuid=keys[0])["modelVersions"]
    assert shown == [{"modelId": 1, "modelName": "digits", "version": 1}] and user.call("get_checkpoint", checkpointUuid=keys[2])["modelVersions"] == []
    both = {"checkpointUuids": [keys[2], keys[0]]}
    text = user.refused(400, 'it is version 1 of model "digits"', "delete_checkpoints", both)
    assert keys[0] in text and "nothing was changed" in text, text
    user.refused(400, "version 1 of model", "remove_checkpoint_files", {**both, "checkpointGlobs": ["*"]})
    user.refused(400, ' of model "digits"', "delete_experiment", experimentId=exp)
    assert c.sql(f"SELECT count(*) FROM checkpoints WHERE experiment_id = {exp} AND gc_step IS NOT NULL") == "0"
    c.sql(f"UPDATE checkpoints SET pinned_until = now() + interval '1 day' WHERE uuid = '{keys[3]}'")
    user.call("patch_experiment", {"checkpointStorage": {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}}, experiment__id=exp)
    stays = f"SELECT uuid FROM checkpoints WHERE experiment_id = {exp} AND state = 'COMPLETED' AND gc_step IS NULL"
    wait_until(lambda: set(c.sql(stays).split()) == {keys[0], keys[1], keys[3]}, 20, "the policy to let go what no version and no pin holds")
    plan = {x["uuid"]: x["why"] for x in user.call("collect_checkpoints", {"experimentId": exp, "dryRun": True})["checkpoints"]}
    assert plan[keys[0]] == plan[keys[1]] == "it is a version of a model" and len(plan) == 3, plan
    c.sql(f"UPDATE checkpoints SET pinned_until = NULL WHERE uuid = '{keys[3]}'")
    user.call("delete_model_version", modelName="digits", modelVersionNum=1)
    assert user.call("post_model_version", {"checkpointUuid": keys[1]}, modelName="digits")["modelVersion"]["version"] == 3, "a number was given twice"
    assert user.call("delete_checkpoints", {"checkpointUuids": [keys[0]]}) == {}
    user.refused(400, "being deleted", "post_model_version", {"checkpointUuid": keys[0]}, modelName="digits")
    c.sql(f"UPDATE checkpoints SET state = 'DELETED' WHERE uuid = '{keys[0]}'")
    user.refused(400, "is DELETED", "post_model_version", {"checkpointUuid": keys[0]}, modelName="digits")


def at_once(c, key):
    """Registered and deleted in one moment: one of the two, never both."""
    users = [Api(c.port, c.token) for _ in range(2)]
    asked = [("post_model_version", {"checkpointUuid": key}, {"modelName": "beta"}), ("delete_checkpoints", {"checkpointUuids": [key]}, {})]
    done = [None, None]

    def ask(i):
        op, body, path = asked[i]
        try:
            users[i].call(op, body, **path)
            done[i] = True
        except Failed as e:
            assert e.status == 400, e
            done[i] = False
    threads = [threading.Thread(target=ask, args=(i,)) for i in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(done) == [False, True], done
    assert c.sql(f"SELECT count(*) FROM model_versions WHERE checkpoint_uuid = '{key}'") == str(int(done[0]))


def holder(c, admin, agent, ann, bob):
    """Who may delete a checkpoint may delete the version that holds it, whose model that may be."""
    _, (hers,) = checkpoints(c, ann, agent, 1)
    cy = log_in(c.port, "cy")
    model = bob.call("post_model_version", {"checkpointUuid": hers}, modelName="bobs")["modelVersion"]["model"]["id"]
    ann.refused(400, 'version 1 of model "bobs"', "delete_checkpoints", {"checkpointUuids": [hers]})
    for op, body, more in (("delete_model", None, {}), ("patch_model_version", {"name": "x"}, {"modelVersionNum": 1}), ("delete_model_version", None, {"modelVersionNum": 9})):
        ann.refused(403, "model bobs: it belongs to bob", op, body, modelName="bobs", **more)
    text = cy.refused(403, "model bobs: it belongs to bob", "delete_model_version", modelName="bobs", modelVersionNum=1)
    assert text.endswith("may, and whoever may delete the checkpoint"), text
    ann.refused(404, "not found", "delete_model_version", modelName="nothing", modelVersionNum=1)
    assert ann.raw("DELETE", "/api/v1/models/%ff/versions/1")[0] == 400
    ann.call("delete_model_version", modelName=model, modelVersionNum=1)
    assert ann.call("delete_checkpoints", {"checkpointUuids": [hers]}) == {}
    assert "delete_model_version" in {e["operation"] for e in admin.call("get_audit", username="ann", limit=100)["entries"]}


def of_another(admin, ann, bob, key):
    """A checkpoint of the administrator's in bob's model: not ann's to take out, but the administrator's."""
    n = bob.call("post_model_version", {"checkpointUuid": key}, modelName="bobs")["modelVersion"]["version"]
    ann.refused(403, "model bobs: it belongs to bob", "delete_model_version", modelName="bobs", modelVersionNum=n)
    admin.call("delete_model_version", modelName="bobs", modelVersionNum=n)
    assert bob.call("get_model_versions", modelName="bobs")["modelVersions"] == []


def rights(c, admin, agent, key):
    """Whose it is, and by which role of its workspace; everybody reads; each change has its line in the audit log."""
    ids = people.add(c, "ann", "bob", "cy")
    ann, bob = log_in(c.port, "ann"), log_in(c.port, "bob")
    place = ann.call("post_workspace", {"name": "Anns"})["workspace"]["id"]
    ann.call("post_model", {"name": "anns", "workspaceId": place})
    ann.call("post_model_version", {"checkpointUuid": key}, modelName="anns")
    writes = [("patch_model", {"notes": "x"}, {}), ("archive_model", None, {}), ("unarchive_model", None, {}), ("move_model", {"destinationWorkspaceId": 1}, {}),
              ("post_model_version", {"checkpointUuid": key}, {}), ("patch_model_version", {"name": "x"}, {"modelVersionNum": 1}),
              ("delete_model_version", None, {"modelVersionNum": 1}), ("delete_model", None, {})]
    for role in (None, VIEWER):
        if role:
            admin.call("add_assignments", grants(role, place, user=ids["bob"]))
        for op, body, more in writes:
            text = bob.refused(403, "model anns: it belongs to ann", op, body, modelName="anns", **more)
            assert 'in workspace "Anns"' in text, text
        assert bob.call("get_model_versions", modelName="anns")["modelVersions"][0]["version"] == 1
    bob.call("post_model", {"name": "bobs"})
    for op, body in (("move_model", {"destinationWorkspaceId": place}), ("patch_model", {"workspaceName": "Anns"})):
        bob.call(op, body, modelName="bobs")
        assert bob.call("get_model", modelName="bobs")["model"]["workspaceId"] == place
    admin.call("add_assignments", grants(EDITOR, place, user=ids["bob"]))
    for op, body, more in writes[:3] + writes[4:]:
        bob.call(op, body, modelName="anns", **more)
    names = {e["operation"] for e in admin.call("get_audit", username="bob", limit=100)["entries"]}
    assert {op for op, _, _ in writes} | {"post_model"} <= names, names
    holder(c, admin, agent, ann, bob)
    of_another(admin, ann, bob, key)


def verbs(c, key):
    """det model, and what det checkpoint says of a version."""
    def said(*words, code=0, feed=""):
        r = c.det(*words, check=False, input=feed)
        assert r.returncode == code, (words, r.returncode, r.stdout, r.stderr)
        return r.stdout if code == 0 else r.stderr
    said("workspace", "create", "Shop & more")
    number = said("model", "create", "net v1", "--description", "what it is", "-w", "shop & MORE", "--labels", "first,old", "--notes", "n", "--metadata", "{}").split()
    assert "  labels       first, old\n" in said("model", "describe", "net v1")
    assert "expected an object" in said("model", "create", "net v2", "--metadata", "[]", code=2)
    assert number[:2] == ["Created", "model"], number
    made = json.loads(said("m", "describe", "NET V1", "--json"))
    assert str(made["id"]) == number[2] and (made["name"], made["description"], made["numVersions"]) == ("net v1", "what it is", 0), made
    out = said("model", "describe", number[2])
    assert "net v1" in out and "what it is" in out and "no versions" in out, out
    assert "already" in said("model", "create", "Net v1", code=1) and "only digits" in said("model", "create", "7", code=1)
    out = said("model", "register-version", "net v1", key)
    assert key in out and "versions     1" in out and "net v1" in out, out
    said("model", "edit", "net v1", "--notes", "to be kept", "--labels", "good,small", "--metadata", '{"a": 1}')
    said("model", "edit", "net v1", "--version", "1", "--comment", "the first", "--labels", "x")
    made = json.loads(said("model", "list-versions", "net v1", "--json"))
    version = made["modelVersions"][0]
    assert (made["model"]["notes"], made["model"]["labels"], made["model"]["metadata"]) == ("to be kept", ["good", "small"], {"a": 1}), made
    assert (version["comment"], version["labels"], version["notes"]) == ("the first", ["x"], ""), version
    for words, why in (((), "nothing to change"), (("--metadata", "[1]"), "object of JSON"), (("--comment", "x"), "--version N"),
                       (("--version", "1", "--description", "x"), "leave --version out"), (("--version", "one", "--notes", "x"), "its number")):
        assert why in said("model", "edit", "net v1", *words, code=2), words
    words = {"name": "second", "comment": "it", "notes": "to be read\nlater", "labels": "small,fast", "metadata": '{"b": 2}'}
    second = json.loads(said("model", "register-version", "net v1", key, "--json", *(w for k, v in words.items() for w in ("--" + k, v))))
    assert (second["version"], second["labels"], second["metadata"], second["notes"]) == (2, ["small", "fast"], {"b": 2}, words["notes"]), second
    out = said("model", "list-versions", "net v1")
    assert "second" in out and "small, fast" in out and "to be read..." in out and "later" not in out and "to be read later" in said("model", "list-versions", "net v1", "--csv"), out
    assert out.index("\n      2") < out.index("\n      1") and out.count(key) == 2, out
    assert [v["version"] for v in json.loads(said("model", "list-versions", "net v1", "--json"))["modelVersions"]] == [2, 1]
    out = said("model", "describe", "net v1", "--version", "1")
    assert "\n      1" in out and out.count(key) == 1, out
    assert "\n      2" in said("model", "describe", "net v1") and "has no version 9" in said("model", "describe", "net v1", "--version", "9", code=1)
    assert "newest" in said("model", "describe", "net v1", "--version", "x", code=2)
    out = said("checkpoint", "describe", key)
    assert "version 1 of model net v1" in out and "version 2 of model net v1" in out, out
    assert 'version 1 of model "net v1"' in said("checkpoint", "delete", "--yes", key, code=1)
    listed = said("model", "list", "-w", "none,Shop & more")
    assert "net v1" in listed and "Shop & more" in listed and "digits" not in listed, listed
    names = [m["name"] for m in json.loads(said("m", "ls", "--sort-by", "name", "--order-by", "desc", "--json"))]
    assert names == sorted(names, key=str.lower, reverse=True) and "digits" in names, names
    assert "--sort-by" in said("model", "list", "--sort-by", "colour", code=2) and "asc" in said("model", "list", "--order-by", "up", code=2)
    said("model", "move", "net v1", "-w", "Uncategorized")
    assert json.loads(said("model", "describe", "net v1", "--json"))["workspaceId"] == 1
    assert "where to" in said("model", "move", "net v1", code=2)
    said("model", "archive", "net v1")
    assert ", archived" in said("model", "describe", "net v1") and "archived" in said("model", "register-version", "net v1", key, code=1)
    said("model", "unarchive", "net v1")
    assert "nothing was deleted" in said("model", "delete", "net v1", "2", code=1, feed="n\n")
    said("model", "delete", "net v1", "2", feed="y\n")
    said("model", "delete", "net v1", "--yes")
    assert "not found" in said("model", "describe", "net v1", code=1) and "kept as" not in said("checkpoint", "describe", key)


SDK = """
import datetime, sys
from determined.experimental import client, Model, ModelVersion
url, password, key, other = sys.argv[1:]

def fails(kind, call, *words):
    before = vars(m).copy()
    try:
        call()
    except kind as e:
        assert all(w in str(e) for w in words), e
        assert vars(m) == before, (vars(m), before)
        return
    raise AssertionError(f"{kind} {words}")

d = client.Determined(master=url, user="admin", password=open(password).read().strip())
m = d.create_model("sdk net", "what it is", {"lr": 0.1}, ["a"], "Uncategorized")
assert isinstance(m, Model) and (m.name, m.description, m.metadata, m.labels, m.username, m.workspace_id, m.archived) == \\
    ("sdk net", "what it is", {"lr": 0.1}, ["a"], "admin", 1, False)
assert isinstance(m.creation_time, datetime.datetime) and m.creation_time.tzinfo
assert repr(m) == f'Model(id={m.model_id}, name=sdk net, metadata={{"lr": 0.1}})', repr(m)
assert d.get_model("SDK NET").model_id == d.get_model(m.model_id).model_id == m.model_id
assert m.get_version() is None and m.list_versions() == []
m.add_metadata({"k": [1], "lr": 0.2})
assert m.metadata == {"k": [1], "lr": 0.2} == d.get_model("sdk net").metadata
m.remove_metadata(["k", "none"])
m.set_labels(["b", "c"])
m.set_description("more")
assert (m.metadata, m.labels, m.description) == ({"lr": 0.2}, ["b", "c"], "more")
fails(ValueError, lambda: m.remove_metadata("lr"), "list of strings")
fails(ValueError, lambda: m.set_labels("lr"), "list of strings")
fails(client.APIException, lambda: m.set_labels([7]), "labels[0]")
fails(client.NotFoundException, lambda: m.move_to_workspace("nowhere"), "workspace")
fails(client.NotFoundException, lambda: m.get_version(7), "no version 7")
fails(client.APIException, lambda: m.register_version("x"), "UUID")
fails(client.APIException, lambda: d.create_model("Sdk Net"), "already")
v = m.register_version(key)
assert isinstance(v, ModelVersion) and (v.model_version, v.model_id, v.model_name, v.checkpoint.uuid) == (1, m.model_id, "sdk net", key)
assert m.register_version(other).model_version == 2 == m.get_version().model_version and m.get_version(1).checkpoint.uuid == key
assert [x.model_version for x in m.list_versions()] == [2, 1] == [x.model_version for x in m.get_versions(client.OrderBy.ASC)][::-1]
v.set_name("best")
v.set_notes("n")
assert (v.name, v.notes) == ("best", "n") == (m.get_version(1).name, m.get_version(1).notes) and "sdk net" in repr(v)
assert repr(v.checkpoint.training).startswith("CheckpointTrainingMetadata(experiment_id=")
fails(client.APIException, v.checkpoint.delete, 'version 1 of model "sdk net"')
m.archive()
assert m.archived and d.get_model("sdk net").archived
fails(client.APIException, lambda: m.add_metadata({"x": 1}), "archived")
m.unarchive()
assert "sdk net" in [x.name for x in d.list_models(client.ModelSortBy.CREATION_TIME, client.OrderBy.DESC)]
assert [x.name for x in d.list_models(name="sdk", model_id=m.model_id, workspace_ids=[1], workspace_names=["uncategorized"])] == ["sdk net"]
assert d.get_models(description="no such") == [] and "b" in d.get_model_labels()
v.delete()
assert [x.model_version for x in m.list_versions()] == [2]
m.delete()
fails(client.NotFoundException, m.reload, "not found")
"""


def sdk(c, keys):
    """determined.experimental.client."""
    if os.environ.get("DET_SANITIZED"):
        return  # the extension needs the sanitizer's library before the interpreter's own
    script = c.path("sdk.py")
    with open(script, "w") as f:
        f.write(SDK)
    env = {**os.environ, "PYTHONPATH": os.path.join(BIN, "..", "lib", "det", "python"), "XDG_CONFIG_HOME": c.path("config")}
    r = subprocess.run([sys.executable, script, f"http://127.0.0.1:{c.port}", c.path("admin.password"), *keys], env=env, text=True, capture_output=True,
                       timeout=120 * SLOWER)
    assert r.returncode == 0, r.stderr


def main():
    with Cluster(agents=0) as c:
        c.login()
        user = Api(c.port, c.token)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        exp, keys = checkpoints(c, user, agent, 5)
        models(user)
        lists(user)
        versions(user, keys)
        large(c, user, keys[4])
        rights(c, user, agent, keys[4])
        verbs(c, keys[4])
        sdk(c, keys[3:])
        kept(c, user, exp, keys)
        at_once(c, keys[3])
        agent.close()
    print("test_model_registry: passed")


main()
