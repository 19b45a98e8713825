"""A registry's secrets in a configuration: its owner and administrators see them, nobody else by any route, no list has them, and a copy says what it lacks."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import people  # noqa: E402
import walk  # noqa: E402
from cluster import Cluster  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api  # noqa: E402

SECRET = "swordfish-of-the-registry"
PLAIN = walk.CONFIG
# As another person's their answers are his own, or they are not asked by people.
LEFT = {"create_experiment", "put_external_experiment", "logout", "login", "legacy_login", "set_user_password", "rendezvous"}
LISTS = ["get_experiments", "search_experiments", "get_experiment_checkpoints", "get_trial_checkpoints", "get_model_versions"]


def config(password, plain=PLAIN):
    return f"{plain}environment: {{registry_auth: {{username: ada, password: {password}}}}} # to be pulled by all\n"


def secret_of(e):
    return e["config"]["environment"]["registry_auth"]["password"], SECRET in e["originalConfig"]


def who_sees_it(w, bob):
    for who, want in ((w.ann, (SECRET, True)), (w.admin, (SECRET, True)), (bob, ("(hidden)", False))):
        e = who.call("get_experiment", experimentId=w.exp)["experiment"]
        assert secret_of(e) == want, secret_of(e)
    assert json.loads(e["originalConfig"]) == e["config"], e["originalConfig"]
    assert e["config"]["environment"]["registry_auth"]["username"] == "ada" and e["config"]["resources"]["slots_per_trial"] == 1
    own = w.ann.call("patch_experiment", {"description": "mine"}, experiment__id=w.exp)["experiment"]
    assert secret_of(own) == (SECRET, True) and own["description"] == "mine"
    for op in LISTS:  # one answer for all who look
        status, data = w.ask(w.ann, op)
        assert status == 200 and b"(hidden)" in data and SECRET.encode() not in data, (op, status, data[:300])


def a_copy(w, bob):
    """What was hidden is asked for, where it stands; with a password of his own it is taken."""
    e = bob.call("get_experiment", experimentId=w.exp)["experiment"]
    body = {"config": e["originalConfig"], "modelDefinition": [], "activate": False, "parentId": w.exp}
    bob.refused(400, "environment.registry_auth.password: expected text, what the registry takes: it is hidden", "create_experiment", body)
    mine = bob.call("create_experiment", {**body, "config": config("bobs-own")})
    assert mine["config"]["environment"]["registry_auth"]["password"] == "bobs-own" and secret_of(mine["experiment"]) == ("bobs-own", False)


def nobody_else(w, bob):
    """Every route that he may ask, as one that everybody may change things by."""
    for op in sorted(bob.contract.ops, key=lambda op: (walk.LAST.index(op) + 1 if op in walk.LAST else 0, op)):
        if op not in LEFT:
            status, data = w.ask(bob, op)
            assert SECRET.encode() not in data, (op, status, data[:1000])


def main():
    walk.CONFIG = config(SECRET)
    with Cluster(agents=0, env={"DET_SECURITY_AUTHZ_TYPE": "basic"}) as c:
        c.login()
        ids = people.add(c, "ann", "bob")
        bob = walk.log_in(c.port, "bob")
        w = walk.Work(c.port, Api(c.port, c.token), FakeAgent(c.port, open(c.path("agent.token")).read().strip()), ids)
        w.ann.call("post_model_version", {"checkpointUuid": w.checkpoint}, modelName=w.model)
        who_sees_it(w, bob)
        a_copy(w, bob)
        nobody_else(w, bob)
        w.agent.close()
    print("test_secrets: passed")


main()
