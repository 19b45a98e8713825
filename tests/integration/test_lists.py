#!/usr/bin/env python3
"""Lists: every filter with every order gives what a plain look at all rows gives, totals included."""
import datetime
import http.client
import itertools
import json
import os
import random
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster  # noqa: E402
from found_experiments import found_experiments  # noqa: E402

SEED = int(os.environ.get("DET_TEST_SEED", "0")) or (random.randrange(1, 1 << 30) if os.environ.get("DET_TEST_LONG") else 1)
N, TRIALS = 60, 150
STATES = ["COMPLETED", "ERROR", "CANCELED", "DELETE_FAILED"]
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
placed = set()  # trials that have slots
ROWS = """
INSERT INTO users (id, username, display_name) SELECT 10 + u, 'user-' || u, '' FROM generate_series(1, 5) u;
INSERT INTO workspaces (id, name, user_id, archived) VALUES (11, 'old', 11, true), (12, 'new', 12, false);
INSERT INTO projects (id, workspace_id, name, user_id, archived) VALUES (21, 11, 'a', 11, false), (22, 12, 'b', 12, true), (23, 12, 'c', 13, false);
"""


def quote(v):
    return "NULL" if v is None else repr(v) if isinstance(v, (int, float, bool)) else "'" + str(v).replace("'", "''") + "'"


def insert(c, table, rows):
    columns = list(rows[0])
    values = ", ".join("(" + ", ".join(quote(r[k]) for k in columns) + ")" for r in rows)
    c.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values}")


def maybe(value):
    return None if random.random() < 0.3 else value


def labels_text(labels):
    return "[" + ", ".join('"%s"' % x for x in labels) + "]"


def experiment(i):
    start = START + datetime.timedelta(minutes=random.randint(0, 20))
    return dict(id=i, job_id=f"j{i}", owner_id=random.randint(11, 15), project_id=random.choice([1, 21, 22, 23]), parent_id=maybe(random.randint(1, 9)),
                state=random.choice(STATES), archived=random.random() < 0.3, start_time=start.isoformat(), end_time=maybe((start + datetime.timedelta(1)).isoformat()),
                progress=maybe(random.randint(0, 4) / 4), name=random.choice(["Net", "net_1", "n%t", "a\\b", "Été", "NET 2"]) + str(i % 3),
                description=random.choice(["", "quick", "Quick_test", "100%"]), labels=labels_text(random.sample(["a", "b", "c d"], random.randint(0, 3))),
                config='{"searcher": {"name": "random"}}', original_config="", searcher_metric="loss", smaller_is_better=random.random() < 0.5,
                resource_pool=random.choice(["p", "q"]), best_trial_id=1, best_metric=maybe(random.randint(0, 5) / 2))


def trial(i, exp):
    start = START + datetime.timedelta(minutes=random.randint(0, 9))
    value = maybe(random.randint(0, 9) / 3)
    shown = maybe(random.choice(["1.5", "-2", '"NaN"', "null", "3"]))
    latest = shown and '{"metrics": {"avgMetrics": {"loss": %s}}, "totalBatches": 1}' % shown
    return dict(id=i, experiment_id=exp, request_id=f"r{i}", task_id=f"{exp}.r{i}", state=random.choice(STATES[:3]), run_id=1, restarts=random.randint(0, 3),
                hparams="{}", start_time=start.isoformat(), end_time=(start + datetime.timedelta(seconds=random.randint(0, 5))).isoformat(),
                searcher_metric_value=value, best_validation=None, latest_validation=latest, latest_value=number(shown), closed_batches=0, has_tail=False)


def checkpoint(i, t):
    return dict(uuid="%08x-0000-4000-8000-%012x" % (random.getrandbits(32), i), experiment_id=t["experiment_id"], trial_id=t["id"], task_id=t["task_id"], run_id=1,
                state=random.choice(["COMPLETED", "COMPLETED", "DELETED", "PARTIALLY_DELETED", "ERROR"]), steps=random.randint(1, 4) * 100,
                report_time=(START + datetime.timedelta(seconds=random.randint(0, 50))).isoformat(), bytes=random.randint(0, 5), resources='{"a": 1}')


def get(c, path, query):
    pairs = [(k, v) for k, vs in query.items() for v in (vs if isinstance(vs, list) else [vs])]
    return c.api("GET", path + "?" + urllib.parse.urlencode(pairs))


def ordered(rows, key, desc, tie):
    """What has no value comes last in both directions; ties go upwards."""
    there = sorted((r for r in rows if key(r) is not None), key=tie)
    there.sort(key=key, reverse=desc)
    return there + sorted((r for r in rows if key(r) is None), key=tie)


share = 1.0  # of the combinations that are asked


def same(c, path, what, ident, query, found):
    """All of the list, and pages of it."""
    if random.random() >= share:
        return
    want = [r[ident[1]] for r in found]
    for offset, limit in ((0, -1), (random.randint(0, len(want)), random.randint(1, 7)), (-min(3, len(want)), 2)):
        start = max(len(want) + offset, 0) if offset < 0 else offset
        end = len(want) if limit == -1 else min(start + limit, len(want))
        got = get(c, path, dict(query, offset=offset, limit=limit))
        ids = [x[ident[0]] for x in got[what]]
        assert ids == want[start:end], f"seed {SEED}: {path} {query} offset {offset} limit {limit}: {ids}, not {want[start:end]}"
        page = got["pagination"]
        assert (page["total"], page["startIndex"], page["endIndex"]) == (len(want), start, end), f"seed {SEED}: {path} {query}: {page}"


def experiments(c, rows, trials, ckpts):
    user = {11 + i: f"user-{1 + i}" for i in range(5)}
    archived_place = {21, 22}
    counted = [k for k in ckpts if k["state"] in ("COMPLETED", "PARTIALLY_DELETED")]
    of = lambda table, r: [x for x in table if x["experiment_id"] == r["id"]]
    has = lambda r, *labels: all('"%s"' % x in r["labels"] for x in labels)
    plain = lambda k: lambda r: r[k]
    sorts = {"ID": plain("id"), "DESCRIPTION": plain("description"), "START_TIME": plain("start_time"), "END_TIME": plain("end_time"), "STATE": plain("state"),
             "NUM_TRIALS": lambda r: len(of(trials, r)), "PROGRESS": plain("progress"), "USER": lambda r: user[r["owner_id"]], "NAME": plain("name"),
             "FORKED_FROM": plain("parent_id"), "RESOURCE_POOL": plain("resource_pool"), "PROJECT_ID": plain("project_id"),
             "CHECKPOINT_SIZE": lambda r: sum(k["bytes"] for k in of(counted, r)), "CHECKPOINT_COUNT": lambda r: len(of(counted, r)),
             "SEARCHER_METRIC_VAL": plain("best_metric")}
    filters = [
        ({}, lambda r: True), ({"description": "QUICK"}, lambda r: "quick" in r["description"].lower()), ({"name": "net"}, lambda r: "net" in r["name"].lower()),
        ({"name": "_"}, lambda r: "_" in r["name"]), ({"name": "%t"}, lambda r: "%t" in r["name"]), ({"name": "a\\b"}, lambda r: "a\\b" in r["name"]),
        ({"name": "ÉT"}, lambda r: "ét" in r["name"].lower()), ({"labels": "a"}, lambda r: has(r, "a")), ({"labels": ["a", "c d"]}, lambda r: has(r, "a", "c d")),
        ({"archived": "true"}, lambda r: r["archived"]), ({"archived": "false"}, lambda r: not r["archived"] and r["project_id"] not in archived_place),
        ({"states": "STATE_ERROR"}, lambda r: r["state"] == "ERROR"), ({"states": ["STATE_ERROR", "STATE_CANCELED"]}, lambda r: r["state"] in ("ERROR", "CANCELED")),
        ({"users": "user-2"}, lambda r: r["owner_id"] == 12), ({"users": ["user-1", "user-5", "nobody"]}, lambda r: r["owner_id"] in (11, 15)),
        ({"users": "nobody"}, lambda r: False), ({"userIds": [12, 13]}, lambda r: r["owner_id"] in (12, 13)), ({"projectId": 22}, lambda r: r["project_id"] == 22),
        ({"projectId": 22, "archived": "false"}, lambda r: r["project_id"] == 22 and not r["archived"]),
        ({"experimentIdFilter.lt": 9}, lambda r: r["id"] < 9), ({"experimentIdFilter.lte": 50}, lambda r: r["id"] <= 50),
        ({"experimentIdFilter.gt": 9}, lambda r: r["id"] > 9), ({"experimentIdFilter.gte": 50}, lambda r: r["id"] >= 50),
        ({"experimentIdFilter.gte": -(2**62), "experimentIdFilter.lt": 2**62}, lambda r: True), ({"experimentIdFilter.gt": 2**62}, lambda r: False),
        ({"experimentIdFilter.gt": 40, "experimentIdFilter.lt": 20}, lambda r: False),
        ({"experimentIdFilter.gt": 5, "experimentIdFilter.lt": 50, "experimentIdFilter.notIn": [7, 8, 55]}, lambda r: 5 < r["id"] < 50 and r["id"] not in (7, 8)),
        ({"experimentIdFilter.notIn": [7, 99]}, lambda r: r["id"] != 7), ({"experimentIdFilter.incl": [7, 8, 99]}, lambda r: r["id"] in (7, 8)),
        ({"experimentIdFilter.gt": 20, "states": "STATE_ERROR", "users": "user-3"}, lambda r: r["id"] > 20 and r["state"] == "ERROR" and r["owner_id"] == 13),
        ({"users": "user-2", "labels": "a", "name": "net", "archived": "false"},
         lambda r: r["owner_id"] == 12 and has(r, "a") and "net" in r["name"].lower() and not r["archived"] and r["project_id"] not in archived_place),
        ({"users": "user-2", "userIds": [11]}, lambda r: False),
    ]
    for (query, matches), (sort, key), desc in itertools.product(filters, [("", sorts["ID"]), *sorts.items()], (False, True)):
        query = dict(query, orderBy="ORDER_BY_DESC" if desc else "ORDER_BY_ASC", **({"sortBy": "SORT_BY_" + sort} if sort else {}))
        same(c, "/experiments", "experiments", ("id", "id"), query, ordered([r for r in rows if matches(r)], key, desc, lambda r: r["id"]))
    shown = get(c, "/experiments", {"limit": -1})["experiments"]
    for e, r in zip(shown, rows):
        assert (e["numTrials"], e["checkpointCount"], int(e["checkpointSize"])) == tuple(sorts[s](r) for s in ("NUM_TRIALS", "CHECKPOINT_COUNT", "CHECKPOINT_SIZE")), (e, r)


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def trials_of(c, exp, rows, ckpts, batches):
    mine = [r for r in rows if r["experiment_id"] == exp]
    sizes = {}
    for k in ckpts:
        if k["state"] in ("COMPLETED", "PARTIALLY_DELETED"):
            sizes[k["trial_id"]] = sizes.get(k["trial_id"], 0) + k["bytes"]
    latest = lambda r: r["latest_validation"] and number(r["latest_validation"].split('"loss": ')[1].split("}")[0])
    seconds = lambda r: datetime.datetime.fromisoformat(r["end_time"]) - datetime.datetime.fromisoformat(r["start_time"])
    sorts = {"ID": lambda r: r["id"], "START_TIME": lambda r: r["start_time"], "END_TIME": lambda r: r["end_time"], "STATE": lambda r: (r["state"], r["id"] in placed),
             "BEST_VALIDATION_METRIC": lambda r: r["searcher_metric_value"], "LATEST_VALIDATION_METRIC": latest, "BATCHES_PROCESSED": lambda r: batches.get(r["id"], 0),
             "DURATION": seconds, "RESTARTS": lambda r: r["restarts"], "CHECKPOINT_SIZE": lambda r: sizes.get(r["id"])}
    filters = [({}, STATES), ({"states": "STATE_ERROR"}, ["ERROR"]), ({"states": ["STATE_ERROR", "STATE_COMPLETED"]}, ["ERROR", "COMPLETED"]), ({"states": "STATE_DELETED"}, [])]
    for (query, states), (sort, key), desc in itertools.product(filters, [("", sorts["ID"]), *sorts.items()], (False, True)):
        query = dict(query, orderBy="ORDER_BY_DESC" if desc else "ORDER_BY_ASC", **({"sortBy": "SORT_BY_" + sort} if sort else {}))
        same(c, f"/experiments/{exp}/trials", "trials", ("id", "id"), query, ordered([r for r in mine if r["state"] in states], key, desc, lambda r: r["id"]))


def checkpoints_of(c, path, mine, values):
    states = ["ACTIVE", "COMPLETED", "ERROR", "DELETED", "PARTIALLY_DELETED"]
    value = lambda name: lambda k: values.get((k["trial_id"], k["steps"]), {}).get(name)
    sorts = {"sortByAttr=UUID": lambda k: k["uuid"], "sortByAttr=TRIAL_ID": lambda k: k["trial_id"], "sortByAttr=BATCH_NUMBER": lambda k: k["steps"],
             "sortByAttr=END_TIME": lambda k: k["report_time"], "sortByAttr=STATE": lambda k: states.index(k["state"]), "sortByAttr=SEARCHER_METRIC": value("loss"),
             "sortByMetric=accuracy": value("accuracy"), "sortByMetric=nothing": lambda k: None, "": lambda k: k["report_time"]}
    filters = [({}, states), ({"states": "STATE_COMPLETED"}, ["COMPLETED"]), ({"states": ["STATE_DELETED", "STATE_ERROR"]}, ["DELETED", "ERROR"])]
    for (query, shown), (sort, key), desc in itertools.product(filters, sorts.items(), (False, True)):
        name, _, v = sort.partition("=")
        query = dict(query, orderBy="ORDER_BY_DESC" if desc else "ORDER_BY_ASC", **({name: ("SORT_BY_" if name == "sortByAttr" else "") + v} if name else {}))
        same(c, path, "checkpoints", ("uuid", "uuid"), query, ordered([k for k in mine if k["state"] in shown], key, desc, lambda k: k["uuid"]))


def at_once(c):
    """Who asks the same at the same time gets the same list, which is written once."""
    def ask(path):
        conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
        conn.request("GET", "/api/v1" + path, headers={"Authorization": "Bearer " + c.token})
        return conn
    for path in ("/experiments?limit=50", "/experiments/2/trials?limit=50&offset=1", "/experiments/2/checkpoints?limit=20", "/trials/1/workloads", "/users"):
        alone = ask(path).getresponse()
        want = (alone.status, alone.read())
        asked = [ask(p) for p in [path] * 24 + [path + ("&" if "?" in path else "?") + "pretty"]]
        answers = [(r.status, r.read()) for r in (conn.getresponse() for conn in asked)]
        assert want[0] == 200 and set(answers[:-1]) == {want}, (path, want, answers)
        assert json.loads(answers[-1][1]) == json.loads(want[1]) and answers[-1][1].count(b"\n") > 3, (path, answers[-1])


def make(c):
    c.sql(ROWS)
    rows = [experiment(i) for i in range(1, N + 1)]
    insert(c, "experiments", rows)
    trials = [trial(i, random.choice([1, 2, 2, 2, *range(3, N)])) for i in range(1, TRIALS + 1)]
    insert(c, "trials", trials)
    ckpts = [checkpoint(i, random.choice(trials[:60])) for i in range(1, 150)]
    insert(c, "checkpoints", ckpts)
    for t in trials[:90]:
        state, since = random.choice([("RUNNING", START.isoformat()), ("PENDING", None), ("TERMINATED", START.isoformat())])
        insert(c, "allocations", [dict(id=f"of-{t['id']}", task_id=t["task_id"], experiment_id=t["experiment_id"], trial_id=t["id"], run_id=1, state=state, slots=1,
                                       start_time=START.isoformat(), placed_time=since)])
        placed.update([t["id"]] if state == "RUNNING" else [])
    batches, values, reports = {}, {}, []
    for t in trials[:100]:
        for steps in random.sample([100, 200, 300, 400], random.randint(0, 4)):
            v = {k: x for k, x in (("loss", maybe(random.randint(0, 9) / 4)), ("accuracy", maybe(random.randint(0, 9) / 4))) if x is not None}
            values[t["id"], steps] = v
            batches[t["id"]] = max(batches.get(t["id"], 0), steps)
            reports.append(dict(trial_id=t["id"], grp="validation", steps=steps, run_id=1, end_time=START.isoformat(),
                                metrics='{"validation_metrics": {%s}}' % ", ".join(f'"{k}": {x}' for k, x in v.items())))
    insert(c, "metrics", reports)
    late = set(random.sample(sorted(batches), len(batches) // 3))  # theirs are in no chunk yet
    insert(c, "metric_heads", [dict(trial_id=t, grp="validation", run_id=1, steps=s, closed_steps=-1 if t in late else s, tail=int(t in late)) for t, s in batches.items()])
    c.sql("UPDATE trials t SET has_tail = h.tail > 0, closed_batches = greatest(h.closed_steps, 0) FROM metric_heads h WHERE h.trial_id = t.id")
    return rows, trials, ckpts, batches, values


def change(c, rows, trials, ckpts):
    """The counts follow what is changed and removed."""
    for k in random.sample(ckpts, 30):
        k["state"], k["bytes"] = random.choice(["DELETED", "COMPLETED", "PARTIALLY_DELETED"]), random.randint(0, 9)
        c.sql(f"UPDATE checkpoints SET state = '{k['state']}', bytes = {k['bytes']} WHERE uuid = '{k['uuid']}'")
    for r in random.sample(rows, 10):
        r["owner_id"], r["archived"], r["name"] = 11, not r["archived"], "Net renamed"
        r["labels"] = labels_text(random.sample(["a", "b", "e"], 2))
        c.sql(f"UPDATE experiments SET owner_id = 11, archived = NOT archived, name = 'Net renamed', labels = '{r['labels']}' WHERE id = {r['id']}")
    for r in random.sample(rows[5:], 3):
        c.sql(f"DELETE FROM experiments WHERE id = {r['id']}")
        rows.remove(r)
        trials[:] = [t for t in trials if t["experiment_id"] != r["id"]]
        ckpts[:] = [k for k in ckpts if k["experiment_id"] != r["id"]]


# What the kept rows must be: the running best of all live validations, each checkpoint's own, the labels of all experiments.
BESTS = """WITH v AS (SELECT e.id exp, m.id, m.trial_id, m.end_time, number_of(m.metrics->'validation_metrics'->e.searcher_metric) x,
    CASE WHEN e.smaller_is_better THEN 1 ELSE -1 END AS sign FROM metrics m JOIN trials t ON t.id = m.trial_id JOIN experiments e ON e.id = t.experiment_id
    WHERE m.grp = 'validation' AND NOT m.archived),
  r AS (SELECT *, min(sign * x) OVER (PARTITION BY exp ORDER BY end_time, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) past FROM v WHERE x IS NOT NULL)
  SELECT exp, end_time, id, trial_id, x FROM r WHERE past IS NULL OR sign * x < past"""
KEPT = {
    "latest_value": ("SELECT id, latest_value FROM trials", """SELECT t.id, number_of(t.latest_validation->'metrics'->'avgMetrics'->e.searcher_metric)
        FROM trials t JOIN experiments e ON e.id = t.experiment_id"""),
    "closed_batches": ("SELECT id, closed_batches FROM trials", """SELECT t.id, greatest(max(h.closed_steps), 0) FROM trials t
        LEFT JOIN metric_heads h ON h.trial_id = t.id GROUP BY t.id"""),
    "experiment_bests": ("SELECT experiment_id, end_time, id, trial_id, value FROM experiment_bests", BESTS),
    "validation": ("SELECT uuid, validation FROM checkpoints", """SELECT uuid, (SELECT m.metrics->'validation_metrics' FROM metrics m WHERE m.trial_id = c.trial_id
        AND m.steps = c.steps AND m.grp = 'validation' AND NOT m.archived ORDER BY m.id DESC LIMIT 1) FROM checkpoints c"""),
    "label_counts": ("SELECT project_id, label, n FROM label_counts WHERE n > 0",
                     "SELECT project_id, label, count(*) FROM experiments, jsonb_array_elements_text(labels) l(label) GROUP BY 1, 2"),
}


def kept(c, when):
    for what, (rows, anew) in KEPT.items():
        differ = c.sql(f"({rows} EXCEPT SELECT * FROM ({anew}) x) UNION ALL (SELECT * FROM ({anew}) x EXCEPT {rows})")
        assert not differ, f"seed {SEED}: {what} {when}:\n{differ[:1000]}"


def validations(c, trials):
    """Reports that follow, come late, fill up what was there, and roll back what an earlier run had reported."""
    some = [t for t in trials if t["experiment_id"] == 2][:6]
    run = dict.fromkeys((t["id"] for t in some), 1)
    for i in range(60):
        lines = []
        for _ in range(4):
            t = random.choice(some)["id"]
            if random.random() < 0.15:
                run[t] += 1
                lines.append(f"UPDATE trials SET run_id = {run[t]} WHERE id = {t}")
            metrics = ", ".join(f'"{k}": {random.choice(["0.5", "1", "1.5", "2", "3", chr(34) + "NaN" + chr(34)])}' for k in random.sample(["loss", "accuracy"], random.randint(1, 2)))
            at = START + datetime.timedelta(seconds=random.choice([i, i, i, random.randint(0, 60)]))
            lines.append(f"SELECT report_metrics({t}, {run[t]}, 'validation', {random.randint(1, 9) * 100}, '{{\"validation_metrics\": {{{metrics}}}}}', '{at.isoformat()}')")
        c.sql("; ".join(lines))
        kept(c, f"after {i} rounds of reports: {lines}")
    want = c.sql("SELECT string_agg(trial_id || ' ' || x, ',' ORDER BY end_time, id) FROM (" + BESTS + ") b WHERE exp = 2")
    got = c.api("GET", "/experiments/2/validation-history")["validationHistory"]
    assert ",".join(f"{v['trialId']} {v['searcherMetric']:g}" for v in got) == want and got, (got, want)
    assert int(c.sql("SELECT count(*) FROM metrics WHERE archived")) > 0


def workloads(c, trial):
    """A trial of many reports is counted by its chunks: also after late reports and a roll-back."""
    report = lambda run, steps, source="": f"SELECT count(report_metrics({trial}, {run}, 'training', {steps}, '{{\"avg_metrics\": {{\"loss\": 1}}}}', now())) {source}"
    steps = ["UPDATE trials SET run_id = 9 WHERE id = %d; " % trial + report(9, "2 * s", "FROM generate_series(1, 17000) s"), report(9, 101), report(9, 34001),
             f"UPDATE trials SET run_id = 10 WHERE id = {trial}; " + report(10, 33000), report(10, 33001), f"UPDATE trials SET run_id = 11 WHERE id = {trial}; " + report(11, 300)]
    for sql in steps:
        c.sql(sql)
        total = get(c, f"/trials/{trial}/workloads", {"limit": 2, "group": "training", "filter": "FILTER_OPTION_UNSPECIFIED"})["pagination"]["total"]
        live = int(c.sql(f"SELECT (SELECT count(*) FROM metrics WHERE trial_id = {trial} AND grp = 'training' AND NOT archived) + "
                         f"(SELECT count(*) FROM checkpoints WHERE trial_id = {trial})"))
        assert total == live > 150, (sql[:99], total, live)


def labels(c, rows):
    for project in (0, 1, 21):
        counts = {}
        for r in rows:
            for x in r["labels"].strip("[]").replace('"', "").split(", ") if r["labels"] != "[]" and project in (0, r["project_id"]) else []:
                counts[x] = counts.get(x, 0) + 1
        got = c.api("GET", f"/experiment/labels?projectId={project}")["labels"]
        assert got == sorted(counts, key=lambda x: (-counts[x], x)), (got, counts)


def main():
    global share
    random.seed(SEED)
    print(f"DET_TEST_SEED={SEED}", flush=True)
    with Cluster(agents=0) as c:
        c.login()
        rows, trials, ckpts, batches, values = make(c)
        for _ in range(2):
            experiments(c, rows, trials, ckpts)
            for exp in (1, 2, 4):
                trials_of(c, exp, trials, ckpts, batches)
                checkpoints_of(c, f"/experiments/{exp}/checkpoints", [k for k in ckpts if k["experiment_id"] == exp], values)
            busiest = max(trials, key=lambda t: sum(k["trial_id"] == t["id"] for k in ckpts))["id"]
            checkpoints_of(c, f"/trials/{busiest}/checkpoints", [k for k in ckpts if k["trial_id"] == busiest], values)
            labels(c, rows)
            kept(c, "after the lists")
            change(c, rows, trials, ckpts)
            share = 0.2
        kept(c, "after changes")
        c.sql("DELETE FROM allocations")  # an hour of what runs is another each time
        at_once(c)
        validations(c, trials)
        workloads(c, next(t["id"] for t in reversed(trials) if t["id"] > 100))
        found_experiments(c, insert, SEED, 400 if os.environ.get("DET_TEST_LONG") else 60)


if __name__ == "__main__":
    main()
