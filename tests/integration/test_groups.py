#!/usr/bin/env python3
"""Groups of trials: from the sums of blocks, from rows, and from any mixture of them they are what a look at all rows gives,
through every change of the rows; and a change beside the one who makes the sums is never lost."""
import collections
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import PSQL, Cluster, wait_until  # noqa: E402

SEED = int(os.environ.get("DET_TEST_SEED", "0")) or (random.randrange(1, 1 << 30) if os.environ.get("DET_TEST_LONG") else 1)
ROUNDS = 60 if os.environ.get("DET_TEST_LONG") else 14
EXPERIMENTS, LARGE = 40, 700  # trials of the last
STATES = ["COMPLETED", "CANCELED", "ERROR", "ACTIVE"]
PROJECTS = """INSERT INTO workspaces (id, name, user_id) VALUES (7, 'w', 1);
INSERT INTO projects (id, workspace_id, name, user_id) VALUES (71, 7, 'a', 1), (72, 7, 'b', 1);"""
KEYS = ["hp.lr", "hp.net.depth", "hp.net", "hp.none", "hp.a.b", "tags", "project", "user", "id", "externalTrialId", "archived", "searcherType"]
METRICS = ["validation.loss.min", "validation.loss.last", "training.acc.mean", "own.a.b.max", "training.none.last"]


def quote(v):
    return "NULL" if v is None else "'" + (json.dumps(v) if isinstance(v, (dict, list)) else str(v)).replace("'", "''") + "'"


def insert(c, table, rows):
    values = ", ".join("(" + ", ".join(quote(r[k]) for k in rows[0]) + ")" for r in rows)
    c.sql(f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES {values}")


def summary():
    number = lambda: random.choice([random.random(), random.randint(-3, 3), random.gauss(1e6, 1), "Infinity", None, 1e150 if random.random() < 0.05 else 0.5])
    stats = lambda: {s: number() for s in random.sample(["last", "min", "max", "mean"], random.randint(1, 4))} | {"count": 3}
    metrics = {"validation_metrics": {"loss": stats(), "n%d" % random.randint(1, 3): stats()}, "avg_metrics": {"acc": stats()}, "own": {"a.b": stats()}}
    return {g: m for g, m in metrics.items() if random.random() < 0.9}


def hparams(style):
    """0: as all of the experiment; 1: one differs; 2: they lack some."""
    tree = {"lr": 0.1, "net": {"depth": 3, "wide": True}, "a.b": "x"}
    if style == 1:
        tree["lr"] = random.choice([0.1, 0.2, 1])
    elif style == 2:
        tree = random.choice([tree, {"lr": 0.1}, {}, {"net": {"depth": 4}}, {"net": 1, "a": {"b": "y"}}])
    return tree


def make(c):
    c.sql(PROJECTS)
    insert(c, "experiments", [dict(id=e, job_id=f"j{e}", owner_id=random.choice([1, 2]), project_id=random.choice([1, 71, 72]), state="COMPLETED", archived=random.random() < 0.2,
           start_time="2026-01-01", name="n", config={"searcher": {"name": random.choice(["grid", "random"])}}, original_config="", searcher_metric="loss",
           labels=random.sample(["a", "b", "c"], random.randint(0, 2))) for e in range(1, EXPERIMENTS + 1)])
    trials, styles = [], {e: random.choice([0, 0, 1, 2]) for e in range(1, EXPERIMENTS + 1)}
    owners = [e for e in styles for _ in range(LARGE if e == EXPERIMENTS else random.randint(0, 20))]
    for i, e in enumerate(random.sample(owners, len(owners)), 1):  # ids of an experiment lie far apart
        trials.append(dict(id=i, experiment_id=e, request_id=f"r{i}", task_id=f"{e}.r{i}", state=random.choice(STATES if random.random() < 0.2 else STATES[:3]), run_id=1,
                           hparams=hparams(styles[e]), start_time="2026-01-01", summary_metrics=summary(), has_tail=random.random() < 0.03,
                           external_id=random.choice([None, f"x{i}"])))
    for i in range(0, len(trials), 100):
        insert(c, "trials", trials[i:i + 100])
    return len(trials)


def change(c):
    """One of the ways in which rows change."""
    some = f"id % {random.randint(5, 60)} = {random.randint(0, 4)}"
    c.sql(random.choice([
        f"UPDATE trials SET state = 'ACTIVE' WHERE {some}", f"UPDATE trials SET state = 'COMPLETED' WHERE {some}",
        f"UPDATE trials SET has_tail = NOT has_tail WHERE {some} AND id % 7 = 0", f"DELETE FROM trials WHERE {some} AND id % 11 = 3",
        f"UPDATE trials SET summary_metrics = {quote(summary())} WHERE {some}", f"UPDATE trials SET hparams = {quote(hparams(2))} WHERE {some}",
        f"UPDATE experiments SET archived = NOT archived WHERE {some}", f"UPDATE experiments SET project_id = 72 WHERE {some}",
        f"UPDATE experiments SET labels = '[\"b\", \"new\"]' WHERE {some}", f"DELETE FROM experiments WHERE {some} AND id < {EXPERIMENTS}",
        f"INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) SELECT max(id) + 1, {EXPERIMENTS}, 'r' || random(), 'new' || random(), "
        "'ERROR', 1, '{\"lr\": 0.1}', now() FROM trials"]))


def hp_at(tree, name):
    value = tree.get(name)
    if name not in tree:
        for part in name.split("."):
            value, tree = (tree.get(part), tree.get(part)) if isinstance(tree, dict) else (None, None)
    return value


def values_of(row, key):
    if key.startswith("hp."):
        return [hp_at(row["hparams"], key[3:])]
    of = {"tags": row["labels"] or [None], "project": [row["project"]], "user": [row["username"]], "id": [row["exp"]], "externalTrialId": [row["external_id"]],
          "archived": ["true" if row["archived"] else "false"], "searcherType": [row["searcher"]]}
    return of[key]


def number(row, metric):
    group, rest = metric.split(".", 1)
    name, stat = rest.rsplit(".", 1)
    key = {"validation": "validation_metrics", "training": "avg_metrics"}.get(group, group)
    v = row["summary"].get(key, {}).get(name, {}).get(stat)
    return float(v) if isinstance(v, (int, float)) else None


def plain(rows, by, metrics):
    """(trials, groups by their values): from each row."""
    groups = collections.defaultdict(list)
    for row in rows:
        for key in itertools.product(*(values_of(row, k) for k in by)):
            groups[json.dumps(key, sort_keys=True)].append(row)
    return len(rows), {k: {"trials": len(v), "experiments": len({r["exp"] for r in v}), "numbers": [[number(r, m) for r in v] for m in metrics],
                           "members": [{"experimentId": r["exp"], "trialId": r["id"], "metrics": [number(r, m) for m in metrics]} for r in v[:20]]} for k, v in groups.items()}


def is_spread(got, numbers):
    have = [x for x in numbers if x is not None]
    ends = [None if x is None else float(x) for x in (got["min"], got["max"])]
    if got["n"] != len(have) or ends != ([min(have), max(have)] if have else [None, None]):
        return False
    if not have or max(map(abs, have)) >= 1e140:
        return got["mean"] is None and got["deviation"] is None
    near = lambda a, b: abs(a - b) <= 1e-9 * max(1, abs(b))
    return near(got["mean"], statistics.fmean(have)) and (got["deviation"] is None if len(have) < 2 else near(got["deviation"], statistics.stdev(have)))


def rows_of(c):
    c.forget_answers()
    return json.loads(c.sql("SELECT json_agg(x ORDER BY id) FROM (SELECT t.id, e.id exp, t.hparams, t.summary_metrics summary, t.external_id, e.labels, e.archived, u.username, "
                            "e.project_id, w.name || ' / ' || p.name project, e.config#>>'{searcher,name}' searcher FROM trials t JOIN experiments e ON e.id = t.experiment_id "
                            "JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id JOIN workspaces w ON w.id = p.workspace_id) x"))


def same(c, rows, by, metrics, archived, project, seed):
    fit = [r for r in rows if (archived or not r["archived"]) and project in (0, r["project_id"])]
    n, want = plain(fit, by, metrics)
    query = {"by": by, "metrics": metrics, "projectId": project, "filter": json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": []}, "showArchived": archived})}
    answer = c.api("GET", "/experiments-groups?" + urllib.parse.urlencode(query, doseq=True))
    got = {json.dumps(g["values"], sort_keys=True): g for g in answer["groups"]}
    for m in itertools.chain(*(g["members"] for g in answer["groups"])):
        m["metrics"] = [None if x is None else float(x) for x in m["metrics"]]
    said = f"seed {seed}: {query}"
    assert (answer["trials"], answer["total"]) == (n, len(want)), f"{said}: {answer['trials']} of {n} trials, {answer['total']} of {len(want)} groups"
    sizes = [g["trials"] for g in answer["groups"]]
    assert sizes == sorted((g["trials"] for g in want.values()), reverse=True)[:1000] and set(got) <= set(want), said
    for key, g in got.items():
        w = want[key]
        assert [g[k] for k in ("trials", "experiments", "members")] == [w[k] for k in ("trials", "experiments", "members")], f"{said}: {key}: {g}, not {w}"
        assert all(map(is_spread, g["metrics"], w["numbers"])) and len(g["metrics"]) == len(metrics), f"{said}: {key}: {g['metrics']} of {w['numbers']}"


def through_changes(c, seed):
    last = make(c)
    for i in range(ROUNDS):
        rows = rows_of(c)
        for _ in range(5):
            same(c, rows, random.sample(KEYS, random.randint(1, 3)), random.sample(METRICS, random.randint(0, 3)), random.random() < 0.7, random.choice([0, 0, 71]), seed)
        for key in KEYS:
            same(c, rows, [key], METRICS[:1], True, 0, seed)
        for _ in range(random.randint(1, 3)):
            change(c)
        if i % 2:  # else some blocks are behind
            c.sql("SELECT keep_trial_blocks(60000)")
    wait_until(lambda: c.sql("SELECT count(*) FROM trial_blocks WHERE NOT kept") == "0", 20, "the sums of all blocks")
    held = "SELECT experiment_id, block, trials FROM trial_blocks WHERE kept"
    there = "SELECT experiment_id, id >> 8, count(*)::integer FROM trials WHERE state <> 'ACTIVE' AND NOT has_tail GROUP BY 1, 2"
    assert last > LARGE and not c.sql(f"({held} EXCEPT {there}) UNION ALL ({there} EXCEPT {held})"), "blocks do not hold the trials that have ended"


class Session:
    """A psql of its own, in a transaction."""
    def __init__(self, c):
        self.p = subprocess.Popen([PSQL, "-qAtX", "-h", c.path("pg-socket"), "-U", "det", "-d", "det"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, sql):
        self.p.stdin.write(sql + "\n")
        self.p.stdin.flush()

    def ask(self, sql):
        self.tell(sql)
        return self.p.stdout.readline().strip()

    def end(self):
        self.p.stdin.close()
        assert self.p.wait() == 0


def beside_each_other(c):
    """The master is not there: one session makes sums, another changes what they are of; whichever is first."""
    one = f"SELECT id FROM trials WHERE experiment_id = {EXPERIMENTS} AND state = 'COMPLETED' AND NOT has_tail LIMIT 1"
    trial = c.sql(one)

    changes = [f"UPDATE trials SET summary_metrics = '{{}}' WHERE id = {trial}", f"UPDATE trials SET state = 'ACTIVE' WHERE id = {trial}",
               f"UPDATE trials SET state = 'ERROR' WHERE id = {trial}", f"DELETE FROM trials WHERE id = {trial}"]
    for sql in changes:
        c.sql(f"UPDATE trial_blocks SET kept = false WHERE block = {trial} >> 8")
        keeper, writer = Session(c), Session(c)
        assert keeper.ask("BEGIN; SELECT keep_trial_blocks(60000);") == "0"
        pid = writer.ask("SELECT pg_backend_pid();")
        writer.tell(f"{sql};")
        wait_until(lambda: c.sql(f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {pid}") == "Lock", 20, f"{sql} to wait for the sums")
        keeper.tell("COMMIT;")
        keeper.end()
        writer.end()
        assert c.sql(f"SELECT count(*) FROM trial_blocks WHERE NOT kept AND (experiment_id, block) = ({EXPERIMENTS}, {trial} >> 8)") == "1", sql
    trial = c.sql(one)
    writer = Session(c)
    assert writer.ask(f"BEGIN; UPDATE trials SET summary_metrics = '{{}}' WHERE id = {trial} RETURNING id;") == trial
    c.sql("SELECT keep_trial_blocks(60000)")  # waits for nobody
    writer.tell("COMMIT;")
    writer.end()
    assert c.sql(f"SELECT kept FROM trial_blocks WHERE (experiment_id, block) = ({EXPERIMENTS}, {trial} >> 8)") == "f"


def best_beside(c):
    """The same of what is written down of an experiment's best trial."""
    due = f"SELECT is_due FROM best_trials WHERE experiment_id = {EXPERIMENTS}"
    best, other = c.sql(f"SELECT id FROM trials WHERE experiment_id = {EXPERIMENTS} AND state = 'COMPLETED' AND NOT has_tail LIMIT 2").split("\n")
    c.sql(f"UPDATE trials SET summary_metrics = '{{\"own\": {{\"a.b\": {{\"last\": 2}}}}}}' WHERE id = {best}")
    for sql in [f"UPDATE trials SET summary_metrics = '{{}}' WHERE id = {best}", f"UPDATE trials SET state = 'ACTIVE' WHERE id = {best}",
                f"UPDATE trials SET state = 'ERROR' WHERE id = {best}", f"UPDATE experiments SET best_trial_id = {other} WHERE id = {EXPERIMENTS}",
                f"UPDATE experiments SET best_metric = NULL WHERE id = {EXPERIMENTS}"]:
        c.sql(f"UPDATE experiments SET best_trial_id = {best}, best_metric = 1 WHERE id = {EXPERIMENTS}; UPDATE best_trials SET is_due = true WHERE experiment_id = {EXPERIMENTS}")
        keeper, writer = Session(c), Session(c)
        assert keeper.ask("BEGIN; SELECT keep_trial_blocks(60000);") == "0"
        pid = writer.ask("SELECT pg_backend_pid();")
        writer.tell(f"{sql};")
        wait_until(lambda: c.sql(f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {pid}") == "Lock", 20, f"{sql} to wait for the numbers")
        keeper.tell("COMMIT;")
        keeper.end()
        writer.end()
        assert c.sql(due) == "t", sql
    c.sql(f"UPDATE experiments SET best_trial_id = {best}, best_metric = 1 WHERE id = {EXPERIMENTS}")
    writer = Session(c)
    assert writer.ask(f"BEGIN; UPDATE trials SET summary_metrics = '{{}}' WHERE id = {best} RETURNING id;") == best
    c.sql("SELECT keep_trial_blocks(60000)")  # waits for nobody
    assert c.sql(due) == "t"
    writer.tell("COMMIT;")
    writer.end()
    c.sql(f"UPDATE trials SET state = 'COMPLETED' WHERE id = {best}")


def look(c, seed):
    """All rows, by every key and with a metric."""
    rows = rows_of(c)
    for key in KEYS:
        same(c, rows, [key], METRICS[:1], True, 0, seed)


def nothing_due(c):
    wait_until(lambda: c.sql("SELECT count(*) FROM trial_blocks WHERE NOT kept") == "0", 60, "the sums of all blocks")


def after_a_gap(c, seed):
    """Trials ended while nothing wrote their blocks down: the next leader does, whatever their ids."""
    c.sql(f"DELETE FROM trial_blocks WHERE experiment_id % 2 = 0; UPDATE trials SET id = id + 100000 WHERE experiment_id = {EXPERIMENTS} AND id % 7 = 0;"
          "DELETE FROM trial_blocks WHERE block > 300")
    lost = "SELECT count(*) FROM trials t WHERE state <> 'ACTIVE' AND NOT has_tail AND NOT EXISTS " \
           "(SELECT FROM trial_blocks b WHERE b.experiment_id = t.experiment_id AND b.block = t.id >> 8)"
    assert int(c.sql(lost)) > 100
    c.start_master()
    wait_until(lambda: c.sql(lost) == "0", 60, "every block to be written down")
    nothing_due(c)
    look(c, seed)


def add(c, experiment, first, n, names):
    c.sql(f"INSERT INTO experiments (id, job_id, owner_id, project_id, state, start_time, name, config, original_config, searcher_metric) "
          f"VALUES ({experiment}, 'j{experiment}', 1, 1, 'COMPLETED', now(), 'n', '{{\"searcher\": {{\"name\": \"grid\"}}}}', '', 'loss')")
    c.sql(f"INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) SELECT {first} + t, {experiment}, 'r' || t, '{experiment}.' || t, "
          f"'COMPLETED', 1, (SELECT jsonb_object_agg('p' || i, i * t % 7) || '{{\"lr\": 1}}' FROM generate_series(1, {names}) i), now() FROM generate_series(0, {n} - 1) t")


def large_ones(c, seed):
    """So many hyperparameters that they are read one by one, of one trial and of 64, and hardly looked at for that; others are summed beside them."""
    c.stop("master")
    add(c, 60, 500 << 8, 64, 20000)
    add(c, 61, 501 << 8, 1, 20000)
    add(c, 62, 502 << 8, 64, 20)
    plans = c.sql("SELECT keep_trial_block(60, 500); EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT keep_trial_block(60, 500)")  # the first reads what is what
    plan = json.loads(plans)[0]["Plan"]
    pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    whole = int(c.sql("SELECT sum(pg_column_size(hparams)) / 8192 FROM trials WHERE experiment_id = 60"))
    assert whole > 500 and pages < whole, f"{pages} pages for {whole} of hyperparameters"
    c.sql("UPDATE trial_blocks SET kept = false WHERE experiment_id = 60")
    c.start_master()
    nothing_due(c)
    assert c.sql("SELECT string_agg(trials::text, ' ' ORDER BY experiment_id) FROM trial_blocks WHERE experiment_id BETWEEN 60 AND 62") == "0 0 64"
    look(c, seed)


def bad_ones(c, seed):
    """A block that takes too long or cannot be summed is set aside, and the others are summed."""
    c.sql("ALTER FUNCTION keep_trial_block(integer, integer) RENAME TO keep_trial_block_really; CREATE FUNCTION keep_trial_block(p_experiment integer, p_block integer) "
          "RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM CASE p_experiment WHEN 61 THEN pg_sleep(600) WHEN 60 THEN error_of(p_block) END; "
          "PERFORM keep_trial_block_really(p_experiment, p_block); END $$; CREATE FUNCTION error_of(integer) RETURNS void LANGUAGE plpgsql AS "
          "$$ BEGIN RAISE 'bad'; END $$; UPDATE trial_blocks SET kept = false, trials = 1")
    nothing_due(c)
    assert c.sql("SELECT string_agg(experiment_id::text, ' ' ORDER BY experiment_id) FROM trial_blocks WHERE trials = 0") == "60 61"
    look(c, seed)


def after_reports(c):
    """Lists, groups and searches are given again, but never without the reports that they rest on: validations, those that a new run takes back,
    and any report of a group that is asked for."""
    exp, trial = 70, 600 << 8
    c.stop("master")
    add(c, exp, trial, 2, 1)
    c.sql(f"UPDATE trials SET state = 'ACTIVE' WHERE experiment_id = {exp}; UPDATE experiments SET smaller_is_better = true WHERE id = {exp}")
    c.start_master()
    spread = lambda metric: next(g for g in c.api("GET", f"/experiments-groups?by=id&metrics={metric}")["groups"] if g["values"] == [exp])["metrics"][0]
    found = lambda **f: [e["experiment"]["id"] for e in c.api("GET", "/experiments-search?" + urllib.parse.urlencode({"filter": json.dumps({"filterGroup": {
        "kind": "group", "conjunction": "and", "children": [{"kind": "field", **f}]}})}))["experiments"]]
    best = lambda: found(columnName="validation.odd.last", operator="=", value=0.125)

    shown = lambda: next(e for e in c.api("GET", "/experiments?limit=1000")["experiments"] if e["id"] == exp).get("bestTrialSearcherMetric")

    def report(of, group, run, steps, **metrics):
        report = {"trialId": of, "trialRunId": run, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}}
        c.api("POST", f"/trials/{of}/metrics", {"metrics": report, "group": group})

    assert spread("validation.loss.min")["n"] == 0 and spread("training.acc.last")["n"] == 0 and best() == [] and shown() is None
    for i in range(2):
        report(trial + i, "training", 1, 100, acc=i)
        assert spread("training.acc.last")["n"] == i + 1
        report(trial + i, "validation", 1, 100, loss=5 - i, odd=0.125)
        assert (spread("validation.loss.min")["n"], spread("validation.loss.min")["min"], best(), shown()) == (i + 1, 5 - i, [exp], 5 - i)
    report(trial, "training", 1, 200, acc=7)
    assert spread("training.acc.last")["max"] == 7 and spread("validation.loss.min")["n"] == 2
    c.sql(f"UPDATE trials SET run_id = 2 WHERE experiment_id = {exp}")
    c.forget_answers()
    assert spread("validation.loss.min")["n"] == 2 and best() == [exp] and shown() == 4
    report(trial, "training", 2, 150, acc=1)  # it goes on from a checkpoint behind the validation
    assert spread("validation.loss.min")["n"] == 2
    report(trial, "training", 2, 50, acc=1)  # and tells of fewer steps than that
    assert spread("validation.loss.min")["n"] == 1 and best() == [exp]
    report(trial + 1, "training", 2, 50, acc=1)
    assert spread("validation.loss.min")["n"] == 0 and best() == [] and shown() is None


def main():
    print(f"DET_TEST_SEED={SEED}")
    random.seed(SEED)
    with Cluster(agents=0, master_args=["--reuse-answers", "false"]) as c:
        c.login()
        through_changes(c, SEED)
        c.stop("master")
        beside_each_other(c)
        best_beside(c)
        after_a_gap(c, SEED)
        large_ones(c, SEED)
        bad_ones(c, SEED)
        after_reports(c)


if __name__ == "__main__":
    main()
