#!/usr/bin/env python3
"""What every reading route says when its statement fails: an error of the API's shape, never an empty answer that reads like the truth.

The tables go by other names for a while, so that each statement that needs one fails, while sessions and rights are still there. Each
route of proto/openapi.yaml that reads is asked before, meanwhile and after; afterwards it answers as it did before."""
import http.client
import json
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "lib"), os.path.join(TOP, "bench")]
import api  # noqa: E402
import libapi  # noqa: E402
from cluster import SLOWER, Cluster  # noqa: E402

# Who asks and what they may, and by what the master leads: without these no route would come to its own statement.
KEPT = ("user_sessions", "access_tokens", "users", "groups", "group_members", "role_assignments", "cluster", "leader", "lives", "settings",
        "batches", "schema_version", "functions_laid", "authority", "authority_former")
# Of an answer, of a stream's last line, of the routes that are older than the API.
SHAPES = ({"code", "reason", "error"}, {"grpcCode", "httpCode", "message", "httpStatus", "details"}, {"message"})
FROM_MEMORY = {"get_agents", "get_job_queue_stats", "get_master", "get_master_config", "get_resource_pools", "get_stores", "get_tasks", "get_tasks_count",
               "get_telemetry", "get_webhook_key", "master_logs"}
OF_KEPT = {"get_lives", "get_permissions_summary", "get_roles_of_group", "get_roles_of_user", "get_tokens"}


def tables(c):
    listed = c.sql("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace"
                   " ORDER BY 1").splitlines()
    assert set(KEPT) <= set(listed), set(KEPT) - set(listed)
    return [t for t in listed if t not in KEPT]


def rename(c, names, old, new):
    c.sql("BEGIN;" + "".join(f'ALTER TABLE "{old}{n}" RENAME TO "{new}{n}";' for n in names) + "COMMIT;")


def ask(c, path):
    """(status, what is wrong). A route that streams may have begun with 200: then its last line says it."""
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60 * SLOWER)
    try:
        conn.request("GET", path, headers={"Authorization": "Bearer " + c.token})
        r = conn.getresponse()
        text = r.read().decode()
    finally:
        conn.close()
    lines = text.splitlines()
    said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    said = said if set(said) == {"message"} else said.get("error")
    if said is None:
        assert r.status == 200, (path, r.status, text)
        return r.status, ""
    assert set(said) in SHAPES, (path, text)
    return said.get("httpCode", r.status), said["error" if "error" in said else "message"]


def main():
    w = libapi.World(20, 2, 8)
    with Cluster(agents=0, master_args=["--reuse-answers", "false"]) as c:
        c.login()
        api.load_rows(c, w, 10, 100)
        c.login()
        asked = {case.name: (case.op, case.make()) for case in libapi.cases(w)}
        before = {name: ask(c, path) for name, (_, path) in asked.items()}
        c.forget_answers()
        names = tables(c)
        rename(c, names, "", "gone_")
        meanwhile = {name: ask(c, path) for name, (_, path) in asked.items()}
        rename(c, names, "gone_", "")
        after = {name: ask(c, path) for name, (_, path) in asked.items()}
    needs_none = FROM_MEMORY | OF_KEPT
    for name, (op, path) in asked.items():
        assert before[name] == after[name], (path, before[name], after[name])
        if op in needs_none or before[name][0] != 200:  # a 404 of an agent or a job is of the memory too
            assert meanwhile[name] == before[name], (path, meanwhile[name])
        else:
            status, said = meanwhile[name]
            assert status == 500 and "does not exist" in said, (path, status, said)
    unknown = needs_none - {op for op, _ in asked.values()}
    assert not unknown, unknown
    print(f"test_api_without_tables: {len(asked)} cases of {len({op for op, _ in asked.values()})} routes passed")


if __name__ == "__main__":
    main()
