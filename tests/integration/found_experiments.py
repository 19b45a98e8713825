"""SearchExperiments beside a plain look at all rows: trees of conditions and several keys, made up by chance, and what is refused."""
import datetime
import itertools
import json
import math
import random
import statistics
import urllib.parse

PROJECT, FIRST, N = 24, 1001, 60
DAY = datetime.datetime(2026, 3, 5, tzinfo=datetime.timezone.utc)
SPACES = {"lr": [None, 0.1, {"type": "const", "val": 0.01}, {"type": "categorical", "vals": [0.1, 0.5]}, {"type": "double", "minval": 0.001, "maxval": 0.05},
                 {"type": "log", "base": 10, "minval": -3, "maxval": -1}],
          "act": [None, "relu", "Re%lu", {"type": "categorical", "vals": ["tanh", "relu"]}, {"type": "const", "val": "a\\b"}],
          "opt": [None, {"depth": 3}, {"depth": {"type": "int", "minval": 2, "maxval": 5}}]}
METRICS = [("validation_metrics", "validation", "loss"), ("avg_metrics", "training", "a.b=c,d"), ("own", "own", "text")]


def number(x):
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        return {"Infinity": math.inf, "-Infinity": -math.inf}.get(x) if isinstance(x, str) else None
    return x


def text(x):
    return x if isinstance(x, str) else json.dumps(x)


def compare(a, op, b):
    return a is not None and b is not None and {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def value_fits(x, op, v):
    if x is None:
        return False
    if op == "=":
        return (number(x) is not None and number(x) == number(v)) or text(x) == text(v)
    return text(v).lower() in text(x).lower() if op == "contains" else compare(number(x), op, number(v))


def ends(spec):
    lo, hi = spec["minval"], spec["maxval"]
    return (spec["base"] ** lo, spec["base"] ** hi) if spec["type"] == "log" else (lo, hi)


def hp_fits(spec, op, v):
    if spec is None:
        return False
    kind = spec["type"] if isinstance(spec, dict) else None
    if kind in ("int", "double", "log"):
        (lo, hi), n = ends(spec), number(v)
        if n is None or op == "contains":
            return False
        return lo <= n <= hi if op == "=" else compare(lo, op, n) or compare(hi, op, n)
    return any(value_fits(x, op, v) for x in (spec["vals"] if kind == "categorical" else [spec["val"] if kind == "const" else spec]))


def hp_spec(row, name):
    x = row["hp"]
    for part in name.split("."):
        x = x.get(part) if isinstance(x, dict) else None
    return None if isinstance(x, dict) and not isinstance(x.get("type"), str) else x


def hp_shown(row, name):
    x = row["best"]["hparams"].get(name) if row["best"] else None
    spec = hp_spec(row, name)
    if x is not None or not isinstance(spec, dict):
        return spec if x is None else x
    return {"categorical": lambda: spec["vals"][0], "const": lambda: spec["val"]}.get(spec["type"], lambda: ends(spec)[0])()


def stat(row, column):
    group, rest = column.split(".", 1)
    name, which = rest.rsplit(".", 1)
    key = next((k for k, g, _ in METRICS if g == group), group)
    return row["best"]["summary"].get(key, {}).get(name, {}).get(which) if row["best"] else None


def on_day(x, op, v):
    """A time at midnight stands for its day."""
    if x is None:
        return False
    day = 86400 if v % 86400 == 0 else 0
    return {"=": v <= x < v + day if day else math.floor(x) == math.floor(v), "<": x < v, ">=": x >= v, "<=": x < v + day if day else x <= v,
            ">": x >= v + day if day else x > v}[op]


def holds(row, f):
    column, op, v = f["columnName"], f["operator"], f["value"]
    if op in ("!=", "notContains", "notEmpty"):
        return not holds(row, dict(f, operator={"!=": "=", "notContains": "contains", "notEmpty": "isEmpty"}[op]))
    if column.startswith("hp."):
        spec = hp_spec(row, column[3:])
        return spec is None if op == "isEmpty" else hp_fits(spec, op, v)
    if column.split(".")[0] in ("validation", "training", "own"):
        x = stat(row, column)
        return x is None if op == "isEmpty" else value_fits(x, op, v)
    x = row[column]
    if op == "isEmpty":
        return x is None or x == "" or x == []
    if column == "tags":
        return v in x if op == "=" else any(v.lower() in t.lower() for t in x)
    if column.endswith("Time"):
        return on_day(x, op, datetime.datetime.fromisoformat(v.replace("Z", "+00:00")).timestamp())
    return value_fits(x, op, v)


def holds_all(row, node):
    if node["kind"] == "field":
        return holds(row, node)
    some = [holds_all(row, c) for c in node["children"] if c["kind"] == "field" or fields(c)]
    return not some or (all if node["conjunction"] == "and" else any)(some)


def fields(node):
    return [node] if node["kind"] == "field" else [f for c in node["children"] for f in fields(c)]


TEXT = ["contains", "notContains", "=", "!=", "isEmpty", "notEmpty"]
NUMBER = ["=", "!=", ">", ">=", "<", "<=", "isEmpty", "notEmpty"]
COLUMNS = {"id": (NUMBER, [FIRST + 5, FIRST + 30]), "forkedFrom": (NUMBER, [3]), "progress": (NUMBER, [0.5]), "numTrials": (NUMBER, [1]), "searcherMetricsVal": (NUMBER, [1]),
           "name": (TEXT, ["net", "_", "%", "\\", "Net1", "'; DROP TABLE x"]), "description": (TEXT, ["quick", "100%"]), "tags": (TEXT, ["a", "c d", "C"]), "searcherType": (TEXT, ["grid"]),
           "resourcePool": (TEXT, ["p"]), "externalExperimentId": (TEXT, ["x", f"x{FIRST + 1}"]), "externalTrialId": (TEXT, ["t"]), "user": (TEXT, ["11", "12"]), "state": (["=", "!="], ["COMPLETED", "ERROR"]),
           "startTime": (NUMBER, ["2026-03-05T00:00:00Z", "2026-03-05T07:00:00Z", "2026-03-06"]), "endTime": (NUMBER, ["2026-03-06T00:00:00Z"]),
           "hp.lr": (NUMBER + TEXT[:2], [0.1, 0.01, 0.02, "0.1"]), "hp.act": (TEXT + NUMBER[2:6], ["relu", "%", "\\", 3]), "hp.opt.depth": (NUMBER, [3, 4, 9]), "hp.none": (TEXT, ["x"]),
           "validation.loss.min": (NUMBER, [0.5, 1]), "validation.loss.last": (NUMBER, [1]), "training.a.b=c,d.max": (NUMBER, [2]), "own.text.last": (TEXT, ["Good", "o"])}


def some_field():
    column = random.choice(list(COLUMNS))
    ops, values = COLUMNS[column]
    op = random.choice(ops)
    return {"id": "any", "kind": "field", "columnName": column, "operator": op, "value": None if "mpty" in op else random.choice(values)}


def some_group(depth):
    children = [some_group(depth - 1) if depth and random.random() < 0.4 else some_field() for _ in range(random.randint(0 if depth < 2 else 1, 3))]
    return {"kind": "group", "conjunction": random.choice(["and", "or"]), "children": children}


def sort_value(row, column):
    if column.startswith("hp."):
        x = hp_shown(row, column[3:])
    elif "." in column:
        x = stat(row, column)
    else:
        return row[column]
    return x


def in_order(rows, keys):
    rows = sorted(rows, key=lambda r: r["id"])
    for column, down in reversed(keys):
        is_mixed = "." in column
        has = [r for r in rows if sort_value(r, column) is not None]
        of = (lambda r: (number(sort_value(r, column)) is None, number(sort_value(r, column)) or 0, text(sort_value(r, column)))) if is_mixed else lambda r: sort_value(r, column)
        if is_mixed and down:  # what is no number comes last both ways
            numbers = sorted((r for r in has if number(sort_value(r, column)) is not None), key=lambda r: number(sort_value(r, column)), reverse=True)
            texts = sorted((r for r in has if number(sort_value(r, column)) is None), key=lambda r: text(sort_value(r, column)), reverse=True)
            has = numbers + texts
        else:
            has.sort(key=of, reverse=down)
        rows = has + [r for r in rows if sort_value(r, column) is None]
    return rows


def summary():
    def of(values):
        return {"type": "number", "count": len(values), "min": min(values), "max": max(values), "mean": sum(values) / len(values), "last": values[-1]}
    s = {"validation_metrics": {"loss": of([random.choice([0.25, 0.5, 1, 2]) for _ in range(3)])}}
    if random.random() < 0.5:
        s["avg_metrics"] = {"a.b=c,d": of([random.choice([1, 2, 3])])}
    if random.random() < 0.5:
        s["own"] = {"text": {"type": "string", "count": 1, "last": random.choice(["good", "bad", "NaN", "Infinity"])}}
    return s


def some_row(i):
    maybe = lambda x: None if random.random() < 0.3 else x
    start = DAY + datetime.timedelta(hours=random.randint(-3, 30))
    hp = {name: random.choice(specs) for name, specs in SPACES.items()}
    hp = {name: spec for name, spec in hp.items() if spec is not None}
    best = maybe({"hparams": {"lr": random.choice([0.1, 0.01, 0.5])}, "summary": summary()})
    return {"id": i, "name": random.choice(["Net", "net_", "n%t", "a\\b", "Été"]) + str(i % 2), "description": random.choice(["", "quick", "100%"]), "hp": hp, "best": best,
            "tags": random.sample(["a", "b", "c d"], random.randint(0, 2)), "searcherType": random.choice(["grid", "random"]), "resourcePool": random.choice("pq"),
            "user": random.choice(["11", "12"]), "state": random.choice(["COMPLETED", "ERROR", "CANCELED"]), "startTime": start.timestamp(),
            "endTime": maybe((start + datetime.timedelta(hours=3)).timestamp()), "progress": maybe(random.randint(0, 4) / 4), "forkedFrom": maybe(random.randint(1, 4)),
            "numTrials": 1, "externalExperimentId": maybe(f"x{i}"), "externalTrialId": maybe(f"t{i}") if best else None, "searcherMetricsVal": random.choice([0, 1, 2]) if best else None, "archived": random.random() < 0.2}


def make(c, insert):
    iso = lambda at: at and datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat()
    c.sql(f"INSERT INTO projects (id, workspace_id, name, user_id, archived) VALUES ({PROJECT}, 12, 'd', 13, false)")
    rows = [some_row(i) for i in range(FIRST, FIRST + N)]
    insert(c, "experiments", [dict(
        id=r["id"], job_id=f"s{r['id']}", owner_id=int(r["user"]), project_id=PROJECT, parent_id=r["forkedFrom"], state=r["state"], archived=r["archived"],
        start_time=iso(r["startTime"]), end_time=iso(r["endTime"]), progress=r["progress"], name=r["name"], description=r["description"], labels=json.dumps(r["tags"]),
        config=json.dumps({"searcher": {"name": r["searcherType"]}, "hyperparameters": r["hp"]}), original_config="", searcher_metric="loss", resource_pool=r["resourcePool"],
        external_id=r["externalExperimentId"], best_trial_id=r["id"], best_metric=r["searcherMetricsVal"]) for r in rows])
    insert(c, "trials", [dict(
        id=r["id"], experiment_id=r["id"], request_id="r", task_id=f"s{r['id']}.r", state="COMPLETED", run_id=1, external_id=r["externalTrialId"], hparams=json.dumps(r["best"]["hparams"] if r["best"] else {}),
        start_time=iso(r["startTime"]), summary_metrics=json.dumps(r["best"]["summary"] if r["best"] else {})) for r in rows])
    return rows


def ask(c, **query):
    return c.api("GET", "/experiments-search?" + urllib.parse.urlencode({"projectId": PROJECT, "limit": -1, **query}))


def ids(answer):
    return [e["experiment"]["id"] for e in answer["experiments"]]


def same(c, rows, group, keys, archived, seed):
    want = [r["id"] for r in in_order([r for r in rows if holds_all(r, group) and (archived or not r["archived"])], keys)]
    query = {"filter": json.dumps({"filterGroup": group, "showArchived": archived}), "sort": ",".join(f"{k}={'desc' if down else 'asc'}" for k, down in keys)}
    got = ids(ask(c, **query))
    assert got == want, f"seed {seed}: {query}: {got}, not {want}"
    start = random.randint(0, len(want))
    page = ask(c, **dict(query, offset=start, limit=5))
    assert ids(page) == want[start:start + 5] and page["pagination"]["total"] == len(want), f"seed {seed}: {query}: {page['pagination']}"


def change(c, rows):
    """The best trial of one has another summary, is written to again, ends, or is none any more; some of it is written down."""
    r, is_kept = random.choice(rows), random.random() < 0.5
    if is_kept:
        c.sql("SELECT keep_trial_blocks(60000)")
    how = random.choice(["summary", "state", "best"])
    if how == "best":
        has = {"hparams": json.loads(c.sql(f"SELECT hparams FROM trials WHERE id = {r['id']}")), "summary": json.loads(c.sql(f"SELECT summary_metrics FROM trials WHERE id = {r['id']}"))}
        r["best"], r["searcherMetricsVal"] = (None, None) if r["best"] else (has, 1)
        r["externalTrialId"] = c.sql(f"SELECT external_id FROM trials WHERE id = {r['id']}") or None if r["best"] else None
        c.sql(f"UPDATE experiments SET best_metric = {'1' if r['best'] else 'NULL'} WHERE id = {r['id']}")
    elif how == "state":
        c.sql(f"UPDATE trials SET state = {random.choice(['CANCELED', 'ACTIVE'])!r} WHERE id = {r['id']}")
    else:
        now = summary()
        c.sql(f"UPDATE trials SET summary_metrics = '{json.dumps(now)}' WHERE id = {r['id']}")
        if r["best"]:
            r["best"]["summary"] = now
    if is_kept:
        c.sql("SELECT keep_trial_blocks(60000)")
    c.forget_answers()


def refused(c):
    one = lambda **f: json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [{"kind": "field", **f}]}})
    for query, why in [({"filter": "["}, "filter"), ({"filter": one(columnName="id", operator="~", value=1)}, "children[0].operator"),
                       ({"filter": one(columnName="nothing", operator="=", value=1)}, "children[0].columnName"), ({"filter": one(operator="=", value=1)}, "columnName is required"),
                       ({"filter": one(columnName="id", value=1)}, "operator is required"), ({"filter": one(columnName="id", operator=">", value="x")}, "expected a number"),
                       ({"filter": '{"filterGroup":{"kind":"group","conjunction":"nor","children":[]}}'}, "conjunction"), ({"sort": "id"}, "sort"), ({"sort": "e.id; --=asc"}, "is no column")]:
        try:
            answer = ask(c, **query)
        except Exception as e:  # noqa: BLE001: whatever the client makes of an answer of 400
            assert why in str(e) and "400" in str(e), (query, e)
        else:
            raise AssertionError((query, answer))


def grouped(c, rows, by, group, seed):
    """Trials by what they have in common: each row has one, whose summary is its best's."""
    metrics, want = ["validation.loss.min", "own.text.last"], {}
    names = dict(line.split("=", 1) for line in c.sql("SELECT id || '=' || username FROM users").split("\n") if line)
    of = {"user": lambda r: [names[r["user"]]], "tags": lambda r: r["tags"] or [None], "project": lambda r: ["w / d"], "hp.lr": lambda r: [r["best"]["hparams"]["lr"] if r["best"] else None]}
    for r in rows:
        if not r["archived"] and holds_all(r, group):
            for key in itertools.product(*(of.get(b, lambda r, b=b: [r[b]])(r) for b in by)):
                want.setdefault(key, []).append((r["id"], number(stat(r, metrics[0]) if r["best"] else None)))
    answer = c.api("GET", "/experiments-groups?" + urllib.parse.urlencode({"projectId": PROJECT, "by": by, "metrics": metrics, "filter": json.dumps({"filterGroup": group, "showArchived": False})}, doseq=True))
    got = {tuple(g["values"][i] if b != "project" else "w / d" for i, b in enumerate(by)): g for g in answer["groups"]}
    assert set(got) == set(want) and len(got) == len(answer["groups"]) == answer["total"], f"seed {seed}: {by} {group}: {set(got) ^ set(want)}"
    assert answer["trials"] == len({i for v in want.values() for i, _ in v}) and [g["trials"] for g in answer["groups"]] == sorted(map(len, want.values()), reverse=True), answer
    for key, all_of in want.items():
        values, (spread, text_spread) = [v for _, v in all_of if v is not None], got[key]["metrics"]
        assert (got[key]["trials"], got[key]["experiments"], spread["n"], text_spread["n"]) == (len(all_of), len(all_of), len(values), 0), (key, got[key])
        assert not values or (abs(spread["mean"] - statistics.fmean(values)) < 1e-9 and (spread["min"], spread["max"]) == (min(values), max(values))), (key, got[key], values)
        assert spread["deviation"] is None if len(values) < 2 else abs(spread["deviation"] - statistics.stdev(values)) < 1e-9, (key, got[key], values)
        assert [(m["trialId"], m["experimentId"], m["metrics"]) for m in got[key]["members"]] == [(i, i, [v, None]) for i, v in sorted(all_of)[:20]], (key, got[key])


def refused_groups(c):
    for query, why in [({}, "by: at least one"), ({"by": "duration"}, "is not what trials have in common"), ({"by": "validation.loss.min"}, "is not what"), ({"by": "x"}, "is no column"),
                       ({"by": "tags", "metrics": "hp.lr"}, "is not a metric"), ({"by": ["hp.a"] * 6}, "by: at most 5"), ({"by": "tags", "filter": "["}, "filter"), ({"by": "tags", "projectId": 99999}, "project 99999 not found")]:
        try:
            answer = c.api("GET", "/experiments-groups?" + urllib.parse.urlencode(query, doseq=True))
        except Exception as e:  # noqa: BLE001: whatever the client makes of an answer of 400
            assert why in str(e) and ("404" if "projectId" in query else "400") in str(e), (query, e)
        else:
            raise AssertionError((query, answer))


def found_experiments(c, insert, seed, times):
    rows = make(c, insert)
    for column in COLUMNS:  # each operator of each column, and each column as a key
        for op, value in [(op, v) for op in COLUMNS[column][0] for v in ([None] if "mpty" in op else COLUMNS[column][1])]:
            field = {"kind": "field", "columnName": column, "operator": op, "value": value}
            want = {r["id"] for r in rows if holds(r, field)}
            got = set(ids(ask(c, filter=json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [field]}, "showArchived": True}))))
            assert got == want, f"seed {seed}: {field}: lacks {sorted(want - got)}, has {sorted(got - want)}"
    for by in (["hp.lr"], ["tags", "searcherType"], ["user"], ["project"], ["id"]):
        for group in ({"kind": "group", "conjunction": "and", "children": []}, some_group(2)):
            grouped(c, rows, by, group, seed)
    refused_groups(c)
    sortable = [k for k in COLUMNS if k not in ("user", "tags", "name")]
    for i in range(times):
        keys = [(k, random.random() < 0.5) for k in random.sample(sortable, random.randint(1, 3))]
        same(c, rows, some_group(3), keys, random.random() < 0.5, seed)
        if i % 2:
            change(c, rows)
    c.sql(f"UPDATE trials SET state = 'COMPLETED' WHERE id BETWEEN {FIRST} AND {FIRST + N}")
    was = c.sql(f"SELECT summary_metrics FROM trials WHERE id = {FIRST}").strip()
    c.sql(f"UPDATE trials SET summary_metrics = '{{\"validation_metrics\": {{\"loss\": {{\"min\": 1e300}}}}}}' WHERE id = {FIRST}")
    c.forget_answers()
    (all_of,) = c.api("GET", f"/experiments-groups?projectId={PROJECT}&by=project&metrics=validation.loss.min")["groups"]
    assert all_of["trials"] == N and float(all_of["metrics"][0]["max"]) == 1e300 and all_of["metrics"][0]["mean"] is None, all_of  # its square has no room
    c.sql(f"UPDATE trials SET summary_metrics = '{was}' WHERE id = {FIRST}")
    c.forget_answers()
    best = next(r for r in rows if r["best"])
    c.sql(f"UPDATE trials SET epoch_batches = 45 WHERE id = (SELECT best_trial_id FROM experiments WHERE id = {best['id']})")
    shown = next(e for e in ask(c)["experiments"] if e["experiment"]["id"] == best["id"])
    assert shown["bestTrial"]["id"] == best["id"] and shown["bestTrial"]["summaryMetrics"] == best["best"]["summary"] and shown["bestTrial"]["state"] == "STATE_COMPLETED", shown
    assert shown["bestTrial"]["epochLength"] == 45, shown  # the last of a trial's columns
    assert "unitsCompleted" not in shown["experiment"] and "epochLength" not in shown["experiment"] and "id" in shown["experiment"], shown
    assert shown["experiment"]["state"] == "STATE_" + best["state"] and shown["experiment"]["name"] == best["name"], shown
    assert "bestTrial" not in next(e for e in ask(c)["experiments"] if e["experiment"]["id"] == next(r["id"] for r in rows if not r["best"]))
    refused(c)
