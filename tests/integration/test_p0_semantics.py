"""How the API reads and writes: enums by name and number, both spellings of a member, null and absent, wrappers, pages and
their special values, sorting, errors, ?pretty, the slash at the end: on real routes, as clients rely on it."""
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api  # noqa: E402

CONFIG = """
name: exp{}
entrypoint: model_def:T
hyperparameters: {{lr: 0.25}}
searcher: {{name: random, metric: loss, max_trials: 3, max_length: {{batches: 100}}}}
"""


def get(user, path, status=200):
    got, data, _ = user.raw("GET", "/api/v1" + path)
    assert got == status, f"{path}: {got} {data[:300]}"
    return json.loads(data)


def enums(user, ids):
    """By name and by number, in queries and bodies; what is unknown is refused by its name."""
    assert get(user, "/experiments?states=STATE_PAUSED")["pagination"]["total"] == len(ids)
    assert get(user, "/experiments?states=2")["pagination"]["total"] == len(ids)
    assert get(user, "/experiments?states=STATE_ACTIVE&states=STATE_PAUSED&states=8")["pagination"]["total"] == len(ids)
    for order, want in (("ASC", ids), ("DESC", ids[::-1])):
        for state, found in (("PAUSED", want), ("COMPLETED", [])):
            page = get(user, f"/experiments?states=STATE_{state}&orderBy=ORDER_BY_{order}&offset=1&limit=2")
            assert [e["id"] for e in page["experiments"]] == found[1:3] and page["pagination"]["total"] == len(found), page
    for order in ("ORDER_BY_DESC", "2"):
        assert [e["id"] for e in get(user, f"/experiments?orderBy={order}")["experiments"]] == ids[::-1]
    for order in ("ORDER_BY_ASC", "ORDER_BY_UNSPECIFIED", "0", "1"):
        assert [e["id"] for e in get(user, f"/experiments?sortBy=1&orderBy={order}")["experiments"]] == ids
    for path, word in (("/experiments?states=STATE_NEVER", "STATE_NEVER"), ("/experiments?states=99", "99"), ("/experiments?sortBy=SORT_BY_MOON", "SORT_BY_MOON"),
                       ("/experiments?orderBy=DOWN", "DOWN"), ("/users?sortBy=77", "77"), ("/agents?sortBy=x", "x")):
        error = get(user, path, 400)["error"]
        assert error["code"] == 3 and error["reason"] == "InvalidArgument" and word in error["error"], error
    for states in (["STATE_PAUSED"], [2]):
        found = user.call("pause_experiments", {"filters": {"states": states}})["results"]
        assert [r["id"] for r in found] == ids, found
    user.refused(400, "STATE_NEVER", "pause_experiments", {"filters": {"states": ["STATE_NEVER"]}})


def spellings(user, ids):
    """lowerCamelCase and snake_case are one; null is absent; members that nobody knows are passed over."""
    for body in ({"experimentIds": ids[:1]}, {"experiment_ids": ids[:1]}, {"experiment_ids": [str(ids[0])], "filters": None, "novelty": {"a": [1]}}):
        assert [r["id"] for r in user.call("pause_experiments", body)["results"]] == ids[:1]
    for body in ({"resources": {"maxSlots": 2}}, {"resources": {"max_slots": 3}}, {"resources": {"maxSlots": "4"}}):
        got = user.call("patch_experiment", {**body, "name": None, "description": None, "unknown": 1}, experiment__id=ids[0])["experiment"]
        assert got["config"]["resources"]["max_slots"] == int(list(body["resources"].values())[0]) and got["name"] == "exp0", got
    for query in ("userIds=1", "user_ids=1"):
        assert get(user, "/experiments?" + query)["pagination"]["total"] == len(ids)
    for query in (f"experimentIdFilter.gt={ids[0]}", f"experiment_id_filter.gt={ids[0]}", f"experimentIdFilter.incl={ids[1]}&experimentIdFilter.incl={ids[2]}"):
        found = [e["id"] for e in get(user, "/experiments?" + query)["experiments"]]
        assert ids[0] not in found and found, (query, found)
    assert get(user, f"/experiments?experimentIdFilter.notIn={ids[0]}&experimentIdFilter.lte={ids[2]}")["pagination"]["total"] == 2


def wrappers(user, ids):
    """bool?: plain true and false; absent means both."""
    everything = get(user, "/experiments")["pagination"]["total"]
    assert get(user, "/experiments?archived=false")["pagination"]["total"] == everything
    assert get(user, "/experiments?archived=true")["pagination"]["total"] == 0
    assert get(user, "/experiments?archived=")["pagination"]["total"] == everything
    assert "archived" in get(user, "/experiments?archived=maybe", 400)["error"]["error"]
    e = get(user, f"/experiments/{ids[0]}")["experiment"]
    assert e["forkedFrom"] is None and e["progress"] in (None, 0) and e["endTime"] is None and e["labels"] == [] and e["notes"] == ""
    assert "bestTrialId" not in e and "duration" not in e, "what is optional and unset is left out"
    assert isinstance(e["checkpointSize"], str) and isinstance(e["checkpointCount"], int), "64 bits are text, 32 are a number"


def sql_pages(user, path, key, total):
    """100 when nothing is said; -1 all; -2 none; a negative offset counts from the end; beyond the end is the end."""
    sep = "&" if "?" in path else "?"

    def page(query):
        r = get(user, f"{path}{sep}{query}")
        p = r["pagination"]
        assert p["endIndex"] - p["startIndex"] == len(r[key]) and p["total"] == total, (path, query, p)
        return p["startIndex"], p["endIndex"]
    assert page("limit=0") == (0, min(total, 100)) and page("") == (0, min(total, 100))
    assert page("limit=-1") == (0, total) and page("limit=-2") == (0, 0)
    assert page("offset=1&limit=1") == (1, 2) and page("offset=-1") == (total - 1, total)
    assert page("offset=-2&limit=1") == (total - 2, total - 1)
    assert page(f"offset={total + 50}") == (total, total) and page("limit=1000000") == (0, total)
    seen, at = 0, 0
    while True:  # as the client goes through pages
        start, end = page(f"offset={at}&limit=2")
        seen, at = seen + end - start, end
        if end >= total:
            break
    assert seen == total
    get(user, f"{path}{sep}limit=-3", 400)
    get(user, f"{path}{sep}offset=first", 400)


def memory_pages(user, path, key, total):
    """All when nothing is said; an offset beyond either end is an error."""
    assert len(get(user, path)[key]) == total and len(get(user, path + "?limit=-1")[key]) == total
    assert len(get(user, path + "?limit=1")[key]) == 1 and len(get(user, path + "?offset=-1")[key]) == 1
    assert get(user, f"{path}?offset={total}")["pagination"]["startIndex"] == total
    for offset in (total + 1, -total - 1):
        assert "out of bounds" in get(user, f"{path}?offset={offset}", 400)["error"]["error"], path


def forms(user, ids):
    """?pretty, the slash at the end, codes and bodies that are not what they should be."""
    for query in ("?pretty", "?pretty=true", "?pretty="):
        status, data, _ = user.raw("GET", f"/api/v1/experiments/{ids[0]}{query}")
        assert status == 200 and data.count(b"\n") > 20 and json.loads(data)["experiment"]["id"] == ids[0]
    for path in (f"/api/v1/experiments/{ids[0]}/", "/api/v1/experiments/", "/api/v1/me/"):
        assert user.raw("GET", path)[0] == 200, path
    assert user.raw("POST", f"/api/v1/experiments/{ids[0]}/pause/", "")[0] == 200
    for body in ("", "{}", "null", "  \n"):
        assert user.raw("POST", f"/api/v1/experiments/{ids[0]}/pause", body)[0] == 200, body
    for body, words in (("[]", b"expected an object"), ("{", b"body"), ('{"a":1}{', b"body"), ('{"experimentIds": 5}', b"experimentIds"), ('{"experimentIds": ["x"]}', b"experimentIds")):
        status, data, _ = user.raw("POST", "/api/v1/experiments/pause", body)
        assert status == 400 and words in data, (body, status, data)
    for content in ("text/plain", "application/x-www-form-urlencoded", "nonsense"):
        assert user.raw("POST", "/api/v1/experiments/pause", json.dumps({"experimentIds": []}), headers={"Content-Type": content})[0] == 200
    for method, path, status, code in (("GET", f"/experiments/{ids[-1] + 100}", 404, 5), ("POST", f"/experiments/{ids[0]}/archive", 400, 9),
                                       ("GET", "/trials/1.5", 400, 3), ("GET", "/trials/-1", 404, 5), ("GET", "/trials/2147483648", 404, 5),
                                       ("GET", "/trials/99999999999999999999", 400, 3), ("GET", "/checkpoints/no-uuid", 400, 3), ("GET", "/allocations/nodot", 400, 3)):
        got, data, _ = user.raw(method, "/api/v1" + path)
        error = json.loads(data)["error"]
        assert (got, error["code"]) == (status, code) and set(error) == {"code", "reason", "error"}, (path, got, error)
    awkward = urllib.parse.quote("a/b?c=d&e ü%", safe="")
    assert user.call("put_experiment_label", experimentId=ids[0], label="a/b?c=d&e ü%")["labels"] == ["a/b?c=d&e ü%"], awkward
    assert get(user, "/experiments?labels=" + awkward)["pagination"]["total"] == 1


def sorting(user, ids):
    """Every order of every list is taken, also backwards; ties go by id."""
    for op, params in (("get_experiments", {}), ("get_experiment_trials", {"experimentId": ids[0]}), ("get_users", {}), ("get_agents", {})):
        method, path, spec = Api.contract.ops[op]
        schema = next(p["schema"] for p in spec["parameters"] if p["name"] == "sortBy")
        values = Api.contract.find(schema["$ref"])["enum"] if "$ref" in schema else schema.get("enum", [])
        assert values or op == "get_agents", op
        for value in values:
            for order in ("ORDER_BY_ASC", "ORDER_BY_DESC"):
                user.call(op, sortBy=value, orderBy=order, **params)
    by_name = [e["name"] for e in get(user, "/experiments?sortBy=SORT_BY_NAME&orderBy=ORDER_BY_DESC")["experiments"]]
    assert by_name == sorted(by_name, reverse=True)


def main():
    with Cluster(agents=0) as c:
        c.login()
        user = Api(c.port, c.token)
        agents = [FakeAgent(c.port, open(c.path("agent.token")).read().strip(), name) for name in ("agent-a", "agent-b")]
        ids = [user.call("create_experiment", {"config": CONFIG.format(i), "activate": False, "modelDefinition": []})["experiment"]["id"] for i in range(3)]
        enums(user, ids)
        spellings(user, ids)
        wrappers(user, ids)
        sql_pages(user, "/experiments", "experiments", 3)
        sql_pages(user, f"/experiments/{ids[0]}/trials", "trials", 3)
        memory_pages(user, "/users", "users", 2)
        memory_pages(user, "/agents", "agents", 2)
        memory_pages(user, "/workspaces", "workspaces", 1)
        sorting(user, ids)
        forms(user, ids)
        for a in agents:
            a.close()
    print("test_p0_semantics: passed")


main()
