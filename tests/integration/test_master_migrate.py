"""Migrations: through every version so far, with rows, from older ones to the newest, and by two masters that start at once."""
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
INSERT INTO allocations (id, task_id, experiment_id, trial_id, run_id, state, slots, start_time, end_time)
    VALUES ('5.r9.1', '5.r9', 5, 9, 1, 'TERMINATED', 2, '2026-01-31 23:00+00', '2026-02-01 00:30+00');
INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, end_time)
    SELECT 9, g, 1, s, jsonb_build_object(k, jsonb_build_object('loss', s / 100.0)), now()
    FROM (VALUES ('training', 'avg_metrics'), ('validation', 'validation_metrics')) v(g, k), generate_series(10, 30, 10) s;
INSERT INTO user_settings VALUES (77, 'page.views', 'mine', '/det/experiments?search=x'), (77, 'page.views', 'away', '//x'), (77, 'other', 'k', '/det/');
INSERT INTO task_logs (task_id, allocation_id, source, stdtype, time, log, log_offset) VALUES ('5.r9', '5.r9.1', 'task', 'stdout', now(), 'hello', 0);
"""


# Rows as text without what a clock or chance gave them, and the schema, object by object.
CONTENT = r"""
SELECT format('SELECT %L || regexp_replace(regexp_replace(x::text, %L, %L, %L), %L, %L, %L) FROM %I x', relname || ' ',
    '[0-9-]{10} [0-9:.]{8,}[+][0-9]+', 'TIME', 'g', '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', 'UUID', 'g', relname)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition \gexec
SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e');
SELECT format('%s.%s %s %s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
    pg_get_expr(d.adbin, d.adrelid)) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    JOIN pg_class c ON c.oid = a.attrelid WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped;
SELECT indexdef FROM pg_indexes WHERE schemaname = 'public';
SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'public'::regnamespace AND NOT tgisinternal;
SELECT format('%s.%s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace;
SELECT viewname || definition FROM pg_views WHERE schemaname = 'public';
"""


def psql(c, name, text):
    run = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", c.path("pg-socket"), "-U", "det", "-d", name]
    return subprocess.run(run, input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


def walk(c):
    """A database that the migrations take from version to version, with rows put in after the first; each version's number."""
    c.sql("CREATE DATABASE walk", "postgres")
    psql(c, "walk", "CREATE TABLE schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())")
    for n, path in enumerate(FILES, 1):
        with open(path) as f:
            psql(c, "walk", f"BEGIN; {f.read()}; INSERT INTO schema_version (version) VALUES ({n}); {ROWS if n == 1 else ''} COMMIT;")
        yield n


def uri(c, name):
    return f"host={c.path('pg-socket')} user=det dbname={name}"


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
    assert c.sql("SELECT user_id, name, address, workspace_id IS NULL FROM page_views", name) == "77|mine|/det/experiments?search=x|t"
    (used,) = c.api("GET", "/resources/allocation/aggregated?startDate=2026-02-01&endDate=2026-02-01&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY")["resourceEntries"]
    assert used["byUsername"] == {"olga": 3600} and used["byWorkspace"] == {"W": 3600}, used
    chart = c.api("GET", "/trials/time-series?trialIds=9&metricNames=loss&group=training")["trials"][0]["metrics"][0]["data"]
    assert [(p["batches"], p["values"]["loss"]) for p in chart] == [(10, 0.1), (20, 0.2), (30, 0.3)], chart
    told = c.api("GET", "/experiments/metrics-stream/metric-names?ids=5")["result"]
    assert told["trainingMetrics"] == ["loss"] and told["validationMetrics"] == ["loss"], told
    anew = "SELECT experiment_id, g.key, k, count(*) FROM trials, jsonb_each(summary_metrics) g, jsonb_object_keys(g.value) k GROUP BY 1, 2, 3"
    kept = "SELECT experiment_id, grp, name, trials FROM metric_names"
    assert c.sql(f"SELECT count(*) FROM ({anew}) x", name) != "0" and not c.sql(f"({kept} EXCEPT {anew}) UNION ALL ({anew} EXCEPT {kept})", name)


def from_every_schema(c):
    """The rows are there at each version. Copies from all along the walk are brought to the newest, where all hold the same;
    the API reads the first."""
    first = None
    for n in walk(c):
        assert counts(c, "walk") == f"1|1|1|1|{n}", (n, counts(c, "walk"))
        if 2 < n < len(FILES) - 1 and n % 10:
            continue  # a start begins with the migration after the one that it finds, whichever that is
        name = f"old{n}"
        c.sql(f"CREATE DATABASE {name} TEMPLATE walk", "postgres")
        subprocess.run([BIN + "/det-master", "new-life", "--db", uri(c, name)], check=True, stdout=subprocess.DEVNULL, timeout=300)
        holds = sorted(psql(c, name, CONTENT).splitlines())
        first = first or holds
        assert holds == first, (n, sorted(set(holds) ^ set(first)))
        if n > 1:
            c.sql(f"DROP DATABASE {name}", "postgres")
    assert sum(line.startswith("schema_version ") for line in first) == len(FILES)
    c.stop("master")
    c.master_args, c.token = ["--db", uri(c, "old1")], None
    c.start_master()
    reads(c, "old1")
    c.stop("master")
    c.master_args, c.token = [], None


def two_at_once(c):
    """Both find an empty database; one makes the schema, one leads, the other stands by."""
    c.sql("CREATE DATABASE fresh", "postgres")
    db = uri(c, "fresh")
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
    r = subprocess.run([BIN + "/det-master", "--db", uri(c, "fresh"), "--port", "0"], text=True, capture_output=True, timeout=300)
    assert r.returncode == 1 and "9999" in r.stderr and "newer" in r.stderr, r.stderr


def main():
    with Cluster(agents=0) as c:
        for test in (from_every_schema, two_at_once, newer):
            test(c)
            print(f"ok {test.__name__}", flush=True)


main()
