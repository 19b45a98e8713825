"""Every route of the table, as every kind of person and as a task, against another's work: what proto/rules.h says, and no more.

What each kind may do is written down here once more, by hand; what a route asks for comes from the table, so that a route without a rule,
and one whose handler asks (SUBJECT_ASKS) of nobody knows what, fail. Who may only look leaves the database as it was, row by row.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import people  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api  # noqa: E402
from walk import (CLUSTER_ADMIN, COLLECTS, EDITOR, EDITOR_RESTRICTED, HIDDEN, MANY, TRIAL, VIEWER, WORKSPACE_ADMIN, Work,  # noqa: E402
                  grants, log_in, rules)

RULES = rules()
LOOKS = {"SEE"}
WORKS = LOOKS | {"CREATE", "OPERATE", "EDIT"}
EDITS = WORKS | {"DELETE", "MOVE"}
HEADS = EDITS | {"PLACE", "GRANT"}
# Who walks: the role that he has in the workspace of ann's work (of the cluster's administrator: everywhere), and what it opens there.
KINDS = {"victor": (VIEWER, LOOKS), "rita": (EDITOR_RESTRICTED, WORKS), "edgar": (EDITOR, EDITS), "wanda": (WORKSPACE_ADMIN, HEADS),
         "carla": (CLUSTER_ADMIN, None), "paul": (None, set())}
# What everybody may do anywhere, by the setting.
EVERYBODY = {"owner": {"OPEN", "SEE", "CREATE", "FOUND"}, "basic": {"OPEN", "SEE", "CREATE", "FOUND", "OPERATE", "EDIT"}, "rbac": {"OPEN", "SEE"}}
# In a workspace, where a role in it counts; a user's account and tokens are in none.
PLACED = {"EXP", "TRIAL", "CKPT", "JOB", "TASK", "ALLOC", "WORKSPACE", "PROJECT", "TEMPLATE", "MODEL", "VIEW"}
# What those routes are about that find it out themselves.
ASKS = {"create_experiment": "PROJECT", "put_external_experiment": "PROJECT", "collect_checkpoints": "EXP", "post_token": "USER", "post_model": "WORKSPACE", "post_view": "WORKSPACE", "delete_model_version": "MODEL",
        "add_assignments": "WORKSPACE", "remove_assignments": "WORKSPACE"}
# A task asks with its own token for its own trial; of what is open to people nothing else is open to it.
OF_TASKS = {"get_me", "patch_checkpoints"}
LOG_IN = {"login", "legacy_login", "logout"}
# Tables that say who asked when, what a person's page looks like, that the master lives, and sums that it keeps by the way.
BESIDE = {"audit", "user_sessions", "login_links", "user_settings", "leader", "trial_blocks", "trial_block_metrics", "best_trials", "best_numbers"}


def may(name, op, mode):
    right, subject, _ = RULES[op]
    role, opens = KINDS[name]
    if role == CLUSTER_ADMIN:
        return True
    if subject == "ASKS":
        subject = "EXP" if op in MANY else ASKS[op]
    return right in EVERYBODY[mode] | (opens if subject in PLACED else set())


def expected(name, mode):
    def of(op, _):
        if op in TRIAL | COLLECTS:
            return 403
        return "in" if may(name, op, mode) else 404 if op in HIDDEN else 403
    return of


def rows(c):
    """A digest of each table but those beside the work."""
    tables = c.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").split()
    digests = [f"SELECT '{t}', md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM \"{t}\" t" for t in tables if t not in BESIDE]
    return dict(line.split("|") for line in c.sql(" UNION ALL ".join(digests)).splitlines())


class Lab:
    """A cluster by one setting; each kind of person gets work of ann's of its own, in a workspace of its own, and the role there."""

    def __init__(self, c, mode):
        self.c, self.mode = c, mode
        c.login()
        self.admin = Api(c.port, c.token)
        self.ids = people.add(c, "ann", *KINDS)
        self.agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip(), slots=64)
        self.admin.call("add_assignments", grants(CLUSTER_ADMIN, user=self.ids["carla"]))

    def work(self, name, called=None):
        called = called or name
        place = self.admin.call("post_workspace", {"name": f"{called}'s lab"})["workspace"]["id"]
        role = KINDS[name][0]
        self.admin.call("add_assignments", grants(EDITOR, place, user=self.ids["ann"]))
        if role and role != CLUSTER_ADMIN:
            self.admin.call("add_assignments", grants(role, place, user=self.ids[name]))
        return Work(self.c.port, self.admin, self.agent, self.ids, called, lab=place, other=name)

    def person(self, name):
        """Walks all routes, against work that he has no hand in."""
        w, who = self.work(name), log_in(self.c.port, name)
        before = rows(self.c)
        w.each(who, expected(name, self.mode), leave=LOG_IN | {"rendezvous"} if name == "carla" else LOG_IN)
        if self.mode == "rbac" and name in ("victor", "paul"):
            self.same(before, name)
        if name == "carla":  # she gave ann another password
            self.admin.call("patch_user", {"password": "ann's own", "isHashed": False}, userId=self.ids["ann"])
        return w

    def same(self, before, who):
        after = rows(self.c)
        assert before == after, f"{who} changed {[t for t in after if before[t] != after[t]]}"

    def outsiders(self, w):
        """Nobody at all, and a task of another person's."""
        place = self.admin.call("post_workspace", {"name": "pauls own"})["workspace"]["id"]
        project = self.admin.call("post_project", {"name": "p"}, workspaceId=place)["project"]["id"]
        self.admin.call("add_assignments", grants(EDITOR, place, user=self.ids["paul"]))
        task = Api(self.c.port, alloc=w.start(log_in(self.c.port, "paul"), project)[1]["task"]["token"])
        before = rows(self.c)
        w.each(Api(self.c.port), lambda op, _: "in" if RULES[op][0] == "OPEN" else 401, leave=LOG_IN, tells=False)
        w.each(task, lambda op, _: "in" if RULES[op][0] == "OPEN" or op in OF_TASKS else 403, leave=LOG_IN, tells=False)
        self.same(before, "an outsider")


def walk(mode):
    with Cluster(agents=0, env={"DET_SECURITY_AUTHZ_TYPE": mode}) as c:
        lab = Lab(c, mode)
        assert set(RULES) == set(lab.admin.contract.ops), "proto/rules.h and proto/openapi.yaml differ"
        asking = {op for op, rule in RULES.items() if rule[1] == "ASKS"}
        assert asking == set(ASKS) | MANY, f"what are these about, or are they gone? {asking ^ (set(ASKS) | MANY)}"
        lab.outsiders(lab.person("victor"))
        for name in ("paul",) if mode == "basic" else [k for k in KINDS if k != "victor"]:
            lab.person(name)
        attacks(lab)
        lab.agent.close()


def attacks(lab):
    """What is no route of its own: a part of a body that does more than its route's right says."""
    w, mode = lab.work("rita", "attacked"), lab.mode
    rita, edgar, paul = (log_in(lab.c.port, name) for name in ("rita", "edgar", "paul"))
    lab.admin.call("add_assignments", grants(EDITOR, w.workspace, user=lab.ids["edgar"]))
    keep = {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 0}
    gone = {"checkpoints": [{"uuid": w.checkpoint, "resources": {"resources": {}}}]}
    run = {"id": w.exp, "overrideConfig": json.dumps({"entrypoint": "sh -c id"})}
    for who in (rita, paul):
        open_to = who is rita or mode == "basic"
        if open_to:
            who.call("patch_experiment", {"name": "n"}, experiment__id=w.exp)
        who.refused(403, "ann", "patch_experiment", {"name": "stolen", "checkpointStorage": keep}, experiment__id=w.exp)
        who.refused(403, "ann", "patch_checkpoints", gone)
        who.refused(403, "ann", "remove_checkpoint_files", {"checkpointUuids": [w.checkpoint], "checkpointGlobs": ["**/*"]})
    assert lab.c.sql(f"SELECT config->>'name' FROM experiments WHERE id = {w.exp}") != "stolen"
    assert lab.c.sql(f"SELECT state FROM checkpoints WHERE uuid = '{w.checkpoint}'") == "COMPLETED"
    w.ann.call("kill_experiment", id=w.exp)
    lab.agent.exit(w.order)
    wait_until(lambda: w.ann.call("get_experiment", experimentId=w.exp)["experiment"]["state"] == "STATE_CANCELED", 20, "the experiment's end")
    for who in (rita, edgar, paul):
        who.refused(403, "ann", "continue_experiment", run)
    w.ann.refused(400, "no single search", "continue_experiment", run)
    rita.call("continue_experiment", {"id": w.exp})


def main():
    for mode in sys.argv[1:] or EVERYBODY:
        walk(mode)
    print("test_roles: passed")


main()
