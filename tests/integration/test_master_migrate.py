"""Migrations: from every schema so far, with rows in it, and by two masters that start at once."""
import glob
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, TOP, Cluster, wait_until  # noqa: E402
from ports import free_port  # noqa: E402

FILES = sorted(glob.glob(os.path.join(TOP, "db", "migrations", "[0-9]*.sql")))
# Rows that every schema can hold, as the first one did; what came later must find them a place.
ROWS = """
INSERT INTO cluster (cluster_id, token_key, agent_token) VALUES ('11111111-1111-4111-8111-111111111111', repeat('a', 64), repeat('b', 64));
INSERT INTO users (id, username, admin) SELECT 77, 'olga', true;
INSERT INTO workspaces (id, name, user_id) VALUES (77, 'W', 77);
INSERT INTO projects (id, workspace_id, name, user_id) VALUES (77, 77, 'P', 77);
INSERT INTO experiments (id, job_id, owner_id, project_id, state, start_time, end_time, name, config, original_config, searcher_metric)
    VALUES (5, 'j5', 77, 77, 'COMPLETED', now(), now(), 'old', '{"name": "old", "searcher": {"name": "single", "metric": "loss",
    "max_length": {"batches": 30}, "smaller_is_better": true}, "entrypoint": "m:T", "resources": {"slots_per_trial": 1},
    "hyperparameters": {}}', 'name: old', 'loss');
INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time, end_time)
    VALUES (9, 5, 'r9', '5.r9', 'COMPLETED', 1, '{"lr": 0.5}', now(), now());
INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, end_time)
    SELECT 9, g, 1, s, jsonb_build_object(k, jsonb_build_object('loss', s / 100.0)), now()
    FROM (VALUES ('training', 'avg_metrics'), ('validation', 'validation_metrics')) v(g, k), generate_series(10, 30, 10) s;
INSERT INTO task_logs (task_id, allocation_id, source, stdtype, time, log, log_offset) VALUES ('5.r9', '5.r9.1', 'task', 'stdout', now(), 'hello', 0);
"""


def old_database(c, name, upto):
    """A database as the first `upto` migrations left it, with rows put in after the first that has their tables."""
    c.sql(f"CREATE DATABASE {name}", "postgres")
    c.sql("CREATE TABLE schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())", name)
    for n, path in enumerate(FILES[:upto], 1):
        run = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-1", "-h", c.path("pg-socket"), "-U", "det", "-d", name]
        subprocess.run([*run, "-f", path], check=True, stdout=subprocess.DEVNULL)
        c.sql(f"INSERT INTO schema_version (version) VALUES ({n})", name)
        if n == 1:
            subprocess.run(run, input=ROWS, text=True, check=True, stdout=subprocess.DEVNULL)


def counts(c, name):
    q = "SELECT (SELECT count(*) FROM users WHERE username='olga'), (SELECT count(*) FROM experiments), (SELECT count(*) FROM trials), " \
        "(SELECT count(*) FROM task_logs), (SELECT max(version) FROM schema_version)"
    return c.sql(q, name)


def reads(c, name):
    """What the API tells of the old rows."""
    e = c.api("GET", "/experiments/5")["experiment"]
    assert e["name"] == "old" and e["state"] == "STATE_COMPLETED" and e["username"] == "olga" and e["projectId"] == 77, e
    trials = c.trials(5)
    assert [t["id"] for t in trials] == [9] and trials[0]["hparams"] == {"lr": 0.5}, trials
    assert "hello" in c.logs(9)
    chart = c.api("GET", "/trials/time-series?trialIds=9&metricNames=loss&group=training")["trials"][0]["metrics"][0]["data"]
    assert [(p["batches"], p["values"]["loss"]) for p in chart] == [(10, 0.1), (20, 0.2), (30, 0.3)], chart
    told = c.api("GET", "/experiments/metrics-stream/metric-names?ids=5")["result"]
    assert told["trainingMetrics"] == ["loss"] and told["validationMetrics"] == ["loss"], told
    anew = "SELECT experiment_id, g.key, k, count(*) FROM trials, jsonb_each(summary_metrics) g, jsonb_object_keys(g.value) k GROUP BY 1, 2, 3"
    kept = "SELECT experiment_id, grp, name, trials FROM metric_names"
    assert c.sql(f"SELECT count(*) FROM ({anew}) x", name) != "0" and not c.sql(f"({kept} EXCEPT {anew}) UNION ALL ({anew} EXCEPT {kept})", name)


def from_every_schema(c):
    for upto in range(1, len(FILES) + 1):
        name = f"old{upto}"
        old_database(c, name, upto)
        c.stop("master")
        c.master_args, c.token = ["--db", f"host={c.path('pg-socket')} user=det dbname={name}"], None
        c.start_master()
        assert counts(c, name) == f"1|1|1|1|{len(FILES)}", (upto, counts(c, name))
        reads(c, name)
    c.stop("master")
    c.master_args, c.token = [], None


def two_at_once(c):
    """Both find an empty database; one makes the schema, one leads, the other stands by."""
    c.sql("CREATE DATABASE fresh", "postgres")
    db = f"host={c.path('pg-socket')} user=det dbname=fresh"
    ports = [free_port(), free_port()]
    for i, port in enumerate(ports):
        c.spawn(f"m{i}", [BIN + "/det-master", "--host", "127.0.0.1", "--port", str(port), "--db", db, "--ready-file", c.path(f"m{i}.ready"),
                          "--checkpoint-dir", c.path("checkpoints")])
    ready = [c.path("m0.ready"), c.path("m1.ready")]
    wait_until(lambda: any(map(os.path.exists, ready)), 30, "one of two masters to lead")
    other = 1 if os.path.exists(ready[0]) else 0
    wait_until(lambda: "standing by" in open(c.path(f"m{other}.log")).read(), 30, "the other to stand by")
    assert c.sql("SELECT max(version), count(*) FROM schema_version", "fresh") == f"{len(FILES)}|{len(FILES)}"
    assert c.sql("SELECT epoch FROM cluster", "fresh") == "1"
    c.stop(f"m{1 - other}", signal.SIGKILL)
    wait_until(lambda: os.path.exists(ready[other]), 30, "the standby to lead")
    c.stop(f"m{other}")


def newer(c):
    """A database of a newer program is left alone, with a word for the operator."""
    c.sql("INSERT INTO schema_version (version) VALUES (9999)", "fresh")
    r = subprocess.run([BIN + "/det-master", "--db", f"host={c.path('pg-socket')} user=det dbname=fresh", "--port", "0"], text=True, capture_output=True, timeout=300)
    assert r.returncode == 1 and "9999" in r.stderr and "newer" in r.stderr, r.stderr


def main():
    with Cluster(agents=0) as c:
        for test in (from_every_schema, two_at_once, newer):
            test(c)
            print(f"ok {test.__name__}", flush=True)


main()
