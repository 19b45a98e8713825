"""The streams that pages of an experiment follow: names, steps, snapshot and sample of its metrics, and what is refused."""
import http.client
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from cluster import Cluster  # noqa: E402
from openapi import Api  # noqa: E402

ROWS = """INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, original_config, searcher_metric)
          SELECT i, 'j' || i, 1, CASE i WHEN 2 THEN 'ACTIVE' ELSE 'COMPLETED' END, now(), 'rows',
                 jsonb_build_object('searcher', jsonb_build_object('name', CASE i WHEN 3 THEN 'single' ELSE 'random' END)), '', 'loss'
          FROM generate_series(1, 3) i;
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time)
          SELECT g, 1 + g / 10, 'r' || g, '1.r' || g, 'ERROR', 1, jsonb_build_object('x', g), now() FROM unnest(ARRAY[1, 2, 3, 11]) g;
          SELECT report_metrics(t, 1, 'training', s * 10, jsonb_build_object('avg_metrics', jsonb_build_object('loss', t + 1.0 / s, 'name', 'x')), now())
          FROM generate_series(1, 3) t, generate_series(1, 40) s;
          SELECT report_metrics(2, 1, 'validation', 100, '{"validation_metrics": {"acc": 0.5}}', now());
          SELECT report_metrics(11, 1, 'training', 10, '{"avg_metrics": {"loss": 1}}', now())"""
LOSS = {"experimentId": 1, "metricName": "loss", "metricType": "METRIC_TYPE_TRAINING"}


def wrote(c, sql):
    """Rows written behind the master's back, and a write of its own, after which no chart is as it was before."""
    c.sql(sql)
    c.api("PATCH", "/experiments/1", {"notes": "written"})


def once(user):
    """A finished experiment's streams give all at once, and end."""
    names, = user.call("exp_metric_names", ids=[1])
    assert names["searcherMetrics"] == ["loss"] and names["trainingMetrics"] == ["loss", "name"] and names["validationMetrics"] == ["acc"], names
    assert {"group": "validation", "name": "acc"} in names["metricNames"] and len(names["metricNames"]) == 3
    steps, = user.call("exp_metric_batches", **LOSS)
    assert steps["batches"] == [10 * s for s in range(1, 41)]
    assert user.call("exp_metric_batches", experimentId=1, metricName="acc", group="validation") == [{"batches": [100]}]
    assert user.call("exp_metric_batches", experimentId=1, metricName="name", group="training") == [{"batches": []}]
    snap, = user.call("exp_trials_snapshot", batchesProcessed=205, batchesMargin=6, **LOSS)
    assert [(t["trialId"], t["batchesProcessed"]) for t in snap["trials"]] == [(1, 210), (2, 210), (3, 210)], snap
    assert snap["trials"][1]["hparams"] == {"x": 2} and abs(snap["trials"][1]["metric"] - 2 - 1 / 21) < 1e-9
    best, = user.call("exp_trials_sample", maxTrials=2, maxDatapoints=10, **LOSS)
    assert [t["trialId"] for t in best["trials"]] == best["promotedTrials"] == [1, 2] and best["demotedTrials"] == []
    points = [p["batches"] for p in best["trials"][0]["data"]]
    assert len(points) == 10 and points[-1] == 400 and points == sorted(points), points
    part, = user.call("exp_trials_sample", startBatches=100, endBatches=120, **LOSS)
    assert [p["batches"] for p in part["trials"][2]["data"]] == [100, 110, 120]


def reports(c, user):
    """A stored report is told with all its members, value for value."""
    c.sql("""SELECT report_metrics(11, 1, 'own "group"', s, jsonb_build_object('avg_metrics', jsonb_build_object('x', s, 'y', 'NaN', 'z', '[1, null]'::jsonb)),
             timestamptz '2026-01-02 03:04:05+00' + s * interval '0.05 s', CASE s WHEN 3 THEN '[{"x": 1}, {"x": 2}]' END) FROM generate_series(1, 5) s""")
    for trials, group in ([11], None), ([11], 'own "group"'), ([3, 1], "training"), ([2], "validation"), ([1, 2, 3, 11], None):
        rows = c.sql(f"""SELECT coalesce(json_agg(json_build_object('trialId', trial_id, 'endTime', api_time(end_time), 'metrics',
            CASE WHEN batch_metrics IS NULL THEN metrics ELSE metrics || jsonb_build_object('batch_metrics', batch_metrics::jsonb) END, 'totalBatches', steps,
            'archived', archived, 'id', id, 'trialRunId', run_id, 'group', grp) ORDER BY steps, id), '[]') FROM metrics
            WHERE trial_id IN ({', '.join(map(str, trials))}) AND NOT archived AND {f"grp = '{group}'" if group else "true"}""")
        told = user.call("get_metrics", trialIds=trials, **({"group": group} if group else {}))
        got = [r for part in told for r in part["metrics"]]
        assert got == json.loads(rows) and got, (trials, group, got[:3], rows[:500])


def refused(user):
    user.refused(400, "ids", "exp_metric_names")
    user.refused(404, "experiment", "exp_metric_names", ids=[1, 99])
    for op in ("exp_metric_batches", "exp_trials_snapshot", "exp_trials_sample"):
        user.refused(404, "experiment 99", op, **dict(LOSS, experimentId=99))
        user.refused(400, "metricName", op, experimentId=1, group="training")
        user.refused(400, "metricType", op, experimentId=1, metricName="loss")
    user.refused(400, "batchesMargin", "exp_trials_snapshot", batchesMargin=101, **LOSS)
    user.refused(400, "single", "exp_trials_sample", **dict(LOSS, experimentId=3))


def live(c, at, to, what):
    """Of the rows of experiment 1's metric within these steps, by trial."""
    rows = c.sql(f"""SELECT coalesce(json_agg(x ORDER BY id, steps), '[]') FROM (
        SELECT t.id, m.steps, m.metrics->'avg_metrics'->'loss' AS value, api_time(m.end_time) AS time FROM trials t JOIN metrics m ON m.trial_id = t.id
        WHERE t.experiment_id = 1 AND m.grp = 'training' AND NOT m.archived AND m.steps BETWEEN {at} AND {to}
        AND jsonb_typeof(m.metrics->'avg_metrics'->'loss') = 'number') x""")
    found = {}
    for r in json.loads(rows):
        found.setdefault(r["id"], []).append(what(r))
    return found


def as_rows(c, user):
    """Snapshots and samples say what the rows do; of a whole series that is too long its ends and extremes stay."""
    for at, margin in ((5, 0), (10, 0), (205, 0), (205, 6), (100, 100), (399, 0), (400, 0), (601, 0), (650, 60), (2**31 - 1, 0)):
        snap, = user.call("exp_trials_snapshot", batchesProcessed=at, batchesMargin=margin, **LOSS)
        want = {t: rows[-1] for t, rows in live(c, max(at - margin, 0), at + margin, lambda r: (r["steps"], r["value"])).items()}
        assert {t["trialId"]: (t["batchesProcessed"], t["metric"]) for t in snap["trials"]} == want, (at, margin, snap, want)
    point = lambda p: (p["batches"], p["time"], p["values"]["loss"])
    for query in ({}, {"startBatches": 100, "endBatches": 205}, {"startBatches": 390}, {"startBatches": 2**33}, {"startBatches": -7, "endBatches": 30}):
        want = live(c, max(query.get("startBatches", 0), 0), query.get("endBatches", 2**31 - 1), lambda r: (r["steps"], r["time"], r["value"]))
        for most in (1000, 20, 8):
            sample, = user.call("exp_trials_sample", maxDatapoints=most, **query, **LOSS)
            got = {t["trialId"]: [point(p) for p in t["data"]] for t in sample["trials"]}
            assert sorted(got) == [1, 2, 3], got
            for t, points in got.items():
                rows = want.get(t, [])
                assert len(points) <= most and set(points) <= set(rows) and points == sorted(points), (t, query, most, points)
                assert len(rows) > most or points == rows, (t, query, most, points, rows)
                for pick in (min, max, lambda v, key=None: v[0], lambda v, key=None: v[-1]):
                    assert query or pick(points, key=lambda p: p[2])[2] == pick(rows, key=lambda p: p[2])[2], (t, query, most)


def rolled_back(c, user):
    """Steps at which no trial has a report any more are not told of."""
    whole = [10 * s for s in range(1, 41)]
    for trial in (3, 1, 2):
        wrote(c, f"UPDATE trials SET run_id = 2 WHERE id = {trial}; "
              f"SELECT report_metrics({trial}, 2, 'training', 205, '{{\"avg_metrics\": {{\"loss\": 1}}}}', now())")
        steps, = user.call("exp_metric_batches", **LOSS)
        assert steps["batches"] == ([s for s in whole if s < 205] + [205] if trial == 2 else sorted(whole + [205])), (trial, steps)
    wrote(c, "SELECT report_metrics(2, 2, 'training', s * 10, '{\"avg_metrics\": {\"loss\": 1}}', now()) FROM generate_series(21, 60) s")
    steps, = user.call("exp_metric_batches", **LOSS)
    assert steps["batches"] == sorted([10 * s for s in range(1, 61)] + [205]), steps


def late(c, user):
    """What comes after its chunk was closed, a report or metrics of one, is drawn in its place."""
    wrote(c, """SELECT report_metrics(2, 2, 'training', 333, '{"avg_metrics": {"loss": 0.5}}', now());
             SELECT report_metrics(2, 2, 'training', 340, '{"avg_metrics": {"more": 7}}', now())""")
    assert c.sql("SELECT count(*) > 1 AND count(report_values) = count(*) - 1 FROM metric_chunks WHERE trial_id = 2 AND grp = 'training' AND level = 1 "
                 "AND last_steps > 205") == "t"
    as_rows(c, user)


ODD = """INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time)
         SELECT g, 3, 'r' || g, '3.r' || g, CASE g WHEN 32 THEN 'ACTIVE' ELSE 'COMPLETED' END, 1, '{}', now() FROM generate_series(31, 33) g;
         SELECT report_metrics(t, 1, g, s, jsonb_build_object(metrics_key(g), CASE WHEN s < 17 THEN '{"n": 1}'::jsonb ELSE v END), now())
         FROM generate_series(31, 33) t, unnest(ARRAY['training', 'validation', 'own', 'avg_metrics']) g, generate_series(1, 16 + t - 31) s,
              LATERAL (SELECT ('[{"n": 2.5, "late": 1, "a\\"b": null}, {"n": "NaN", "late": "x", "of %s %s": [1]}]'::jsonb->(s %% 2)) v) x""" % ("x" * 1500, "y" * 1500)


def as_kept(c, user, what):
    """The names told of are those of the live reports; what is kept of a trial tells the same as all of it does."""
    for exp in (1, 3):
        rows = c.sql(f"""SELECT coalesce(jsonb_agg(DISTINCT x), '[]') FROM (SELECT CASE g WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN
            'validation' ELSE g END AS group, k AS name FROM metrics m JOIN trials t ON t.id = m.trial_id, jsonb_object_keys(m.metrics->metrics_key(m.grp)) k,
            summary_key(m.grp) g WHERE t.experiment_id = {exp} AND NOT m.archived) x""")
        told = user.call("exp_metric_names", ids=[exp])[0]
        key = lambda n: (n["group"], n["name"])
        assert sorted(told["metricNames"], key=key) == sorted(json.loads(rows), key=key), (what, exp, told, rows)
        assert sorted(told["trainingMetrics"]) == sorted(n["name"] for n in json.loads(rows) if n["group"] == "training"), (what, exp, told)
    differ = c.sql("""SELECT t.id, n.grp, n.name FROM trials t, (SELECT DISTINCT m.grp, k FROM metrics m, jsonb_object_keys(m.metrics->metrics_key(m.grp)) k) n(grp, name)
        WHERE metric_summary(t.id, t.summary_metrics, n.grp, n.name) IS DISTINCT FROM trial_summary(t.id, t.summary_metrics)->summary_key(n.grp)->n.name""")
    assert not differ, (what, differ[:1000])
    differ = c.sql("""SELECT k.trial_id, k.grp, k.seq FROM metric_chunks k, chunk_made(k.trial_id, k.grp, k.after_steps, k.last_steps) m WHERE k.level = 1
        AND k.report_values IS NOT NULL AND (k.report_steps, k.report_times, k.report_values) IS DISTINCT FROM (m.report_steps, m.report_times, m.report_values)""")
    assert not differ, (what, differ[:1000])
    kept = "SELECT experiment_id, grp, name, trials FROM metric_names WHERE trials <> 0"
    anew = "SELECT experiment_id, g.key, k, count(*) FROM trials, jsonb_each(summary_metrics) g, jsonb_object_keys(g.value) k GROUP BY 1, 2, 3"
    differ = c.sql(f"({kept} EXCEPT {anew}) UNION ALL ({anew} EXCEPT {kept})")
    assert not differ, (what, differ[:1000])


def named(c, user):
    """Names come with the first report of them, and go with the last."""
    wrote(c, ODD)
    as_kept(c, user, "odd values")
    told = user.call("get_trial", trialId=33)["trial"]["summaryMetrics"]["own"]["n"]
    assert (told["sum"], told["count"], told["last"]) == (18.5, 17, 2.5), told  # a NaN is in no sum
    wrote(c, "UPDATE trials SET state = 'COMPLETED' WHERE id = 32")
    as_kept(c, user, "an end")
    wrote(c, "UPDATE trials SET run_id = 2, state = 'ACTIVE' WHERE id IN (32, 33); "
          "SELECT report_metrics(t, 2, 'training', 10, '{\"avg_metrics\": {\"n\": 1, \"again\": 2}}', now()) FROM generate_series(32, 33) t")
    as_kept(c, user, "a rollback")
    wrote(c, "DELETE FROM trials WHERE id = 31")
    as_kept(c, user, "a trial less")
    wrote(c, "SELECT report_metrics(33, 2, 'training', 10 + s, jsonb_build_object('avg_metrics', jsonb_build_object('n', s, 'm' || s, s)), now()) FROM generate_series(1, 40) s")
    as_kept(c, user, "many names")
    wrote(c, "DELETE FROM trials WHERE experiment_id = 3")
    as_kept(c, user, "no trial")


def followed(c):
    """While the experiment lives only what is new comes; the stream ends with it."""
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    conn.request("GET", "/api/v1/experiments/2/metrics-stream/trials-sample?metricName=loss&group=training&periodSeconds=1",
                 headers={"Authorization": "Bearer " + c.token})
    r = conn.getresponse()
    line = lambda: json.loads(r.readline())["result"]
    data = lambda v: [(t["trialId"], p["batches"]) for t in v["trials"] for p in t["data"]]
    first = line()
    assert data(first) == [(11, 10)] and first["promotedTrials"] == [11]
    c.sql("SELECT report_metrics(11, 1, 'training', 20, '{\"avg_metrics\": {\"loss\": 2}}', now())")
    news = line()
    while not data(news):  # that none is new to the sample any more
        news = line()
    assert data(news) == [(11, 20)] and news["promotedTrials"] == [], news
    c.sql("UPDATE experiments SET state = 'COMPLETED' WHERE id = 2")
    assert all(not data(json.loads(rest)["result"]) for rest in r.read().splitlines())


OPEN = """UPDATE experiments SET smaller_is_better = true WHERE id = 1;
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time)
          SELECT g, 1, 'r' || g, '1.r' || g, CASE g WHEN 4 THEN 'ACTIVE' ELSE 'COMPLETED' END, 1, jsonb_build_object('x', g), now() FROM generate_series(4, 5) g"""


def as_told(c, user, name, at, margin):
    """A snapshot, and the best two trials, are those of the rows."""
    value = f"m.metrics->'avg_metrics'->'{name}'"
    rows = f"""(SELECT t.id, m.steps, {value} AS value FROM trials t JOIN metrics m ON m.trial_id = t.id
        WHERE t.experiment_id = 1 AND m.grp = 'training' AND NOT m.archived AND jsonb_typeof({value}) = 'number') x"""
    asked = dict(LOSS, metricName=name)
    snap, = user.call("exp_trials_snapshot", batchesProcessed=at, batchesMargin=margin, **asked)
    assert [snap] == user.call("exp_trials_snapshot", batchesProcessed=at, batchesMargin=margin, **asked)
    want = c.sql(f"""SELECT json_agg(json_build_array(id, steps, value) ORDER BY id) FROM (SELECT DISTINCT ON (id) * FROM {rows}
        WHERE steps BETWEEN {at - margin} AND {at + margin} ORDER BY id, steps DESC) y""")
    assert [[t["trialId"], t["batchesProcessed"], t["metric"]] for t in snap["trials"]] == json.loads(want or "[]"), (name, at, snap, want)
    best, = user.call("exp_trials_sample", maxTrials=2, **asked)
    want = json.loads(c.sql(f"SELECT json_agg(id) FROM (SELECT id FROM {rows} GROUP BY id ORDER BY min(value::text::float8), id LIMIT 2) y") or "[]")
    assert best["promotedTrials"] == [t["trialId"] for t in best["trials"]] == sorted(want), (name, best["promotedTrials"], want)


def report(c, trial, steps, **values):
    metrics = {"trialId": trial, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": values}}
    c.api("POST", f"/trials/{trial}/metrics", {"metrics": metrics, "group": "training"})


def told_at_once(c, user):
    """What trials that have ended show is looked up once; what one that runs, or one after its end, reports is told to the next who asks."""
    wrote(c, OPEN)
    c.sql("SELECT pg_stat_statements_reset()")
    asked = 0
    for trial, steps, values in ((4, 200, {"loss": 9}), (4, 210, {"loss": 0.25}), (4, 300, {"loss": 0.125}), (5, 210, {"loss": 0.0625}),
                                 (1, 500, {"loss": -1}), (3, 210, {"more": -2}), (2, 210, {"more": 5}), (2, 220, {"more": 5}), (4, 220, {"more": -3})):
        report(c, trial, steps, **values)
        for name, at, margin in (("loss", 205, 6), ("loss", 500, 0), ("more", 215, 6)):
            as_told(c, user, name, at, margin)
            asked += 3
    looked_up = int(c.sql("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query ~ 'NOT .t.has_tail OR'"))
    assert 5 <= looked_up < asked, f"asked {asked} times, looked up {looked_up} times what trials that have ended show"
    wrote(c, "UPDATE trials SET state = 'COMPLETED' WHERE id = 4")
    as_told(c, user, "loss", 205, 6)
    wrote(c, "UPDATE trials SET run_id = 2, state = 'ACTIVE' WHERE id = 1; SELECT report_metrics(1, 2, 'training', 20, '{\"avg_metrics\": {\"loss\": 7}}', now())")
    as_told(c, user, "loss", 205, 6)
    wrote(c, "DELETE FROM trials WHERE id = 2")
    as_told(c, user, "loss", 205, 6)


def main():
    with Cluster(agents=0, master_args=["--reuse-answers", "false"], pg_args=["shared_preload_libraries=pg_stat_statements"]) as c:
        c.login()
        c.sql(ROWS)
        c.sql("CREATE EXTENSION pg_stat_statements")
        told_at_once(c, Api(c.port, c.token))
    with Cluster(agents=0) as c:
        c.login()
        c.sql(ROWS)
        user = Api(c.port, c.token)
        once(user)
        as_rows(c, user)
        refused(user)
        reports(c, user)
        named(c, user)
        followed(c)
        rolled_back(c, user)
        as_rows(c, user)
        late(c, user)
        as_kept(c, user, "the end")
    print("test_metric_streams: passed")


if __name__ == "__main__":
    main()
