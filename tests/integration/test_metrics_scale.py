"""Metrics at scale: charts keep the extremes of long series, roll-backs leave them, late and repeated reports
are counted once, names are bounded, and what was acknowledged outlives kill -9 of the master, once."""
import glob
import http.client
import json
import os
import random
import signal
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api, Failed  # noqa: E402

ROWS = """INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, original_config, searcher_metric)
          VALUES (1, 'j', 1, 'COMPLETED', now(), 'rows', '{}', '', 'loss');
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time)
          SELECT g, 1, 'r' || g, '1.r' || g, 'ERROR', 1, '{}', now() FROM generate_series(1, 9) g"""


def report(user, trial, steps, metrics, group="training", run=1, batches=()):
    user.call("post_metrics", {"metrics": {"trialId": trial, "trialRunId": run, "stepsCompleted": steps,
                                           "metrics": {"avgMetrics": metrics, "batchMetrics": list(batches)}}, "group": group}, trialId=trial)


def batch(user, trial, reports):
    """Several, each (steps, metrics) or (steps, metrics, group): the places and states of those that were refused."""
    bodies = [{"metrics": {"trialId": trial, "trialRunId": 1, "stepsCompleted": r[0], "metrics": {"avgMetrics": r[1], "batchMetrics": []}},
               "group": r[2] if len(r) > 2 else "training"} for r in reports]
    return [(x["index"], x["status"]) for x in user.call("post_metrics_batch", {"reports": bodies}, trialId=trial)["refused"]]


def chart(user, trial, name="loss", group="training", **more):
    r = user.call("compare_trials", trialIds=[trial], metricNames=[name], group=group, **more)["trials"][0]
    assert r["trial"]["id"] == trial
    return [(p["batches"], p["values"][name]) for p in r["metrics"][0]["data"]]


def summary(user, trial, group="avg_metrics"):
    return user.call("get_trial", trialId=trial)["trial"]["summaryMetrics"][group]


def charts(c, user):
    """A long series: few points, its extremes and its ends among them, in order; short ones whole."""
    c.sql("SELECT report_metrics(1, 1, 'training', g * 10, jsonb_build_object('avg_metrics', jsonb_build_object('loss', "
          "CASE g WHEN 1234 THEN 99 WHEN 2345 THEN -99 ELSE sin(g) END, 'n', g)), now()) FROM generate_series(1, 5000) g")
    for points in (6, 20, 200, 1000):
        got = chart(user, 1, maxDatapoints=points)
        assert len(got) <= points, (points, len(got))
        assert [s for s, _ in got] == sorted({s for s, _ in got})
        assert (12340, 99) in got and (23450, -99) in got and got[0][0] == 10 and got[-1][0] == 50000, (points, got[:5])
        assert points < 100 or len(got) > points / 2
    assert len(chart(user, 1, maxDatapoints=10000)) == 5000
    wide = user.call("compare_trials", trialIds=[1], metricIds=["training.loss"] + [f"training.x{i}" for i in range(49)], maxDatapoints=10000)
    assert 2000 < len(wide["trials"][0]["metrics"][0]["data"]) <= 4000, "fifty series share what one answer draws"
    for trials, low, high in ((2, 5000, 5000), (1000, 100, 200)):
        sample, = user.call("exp_trials_sample", experimentId=1, metricName="loss", group="training", maxTrials=trials, maxDatapoints=100000)
        assert [low <= len(t["data"]) <= high for t in sample["trials"]] == [True], (trials, [len(t["data"]) for t in sample["trials"]])
    part = chart(user, 1, maxDatapoints=50, startBatches=12000, endBatches=13000)
    assert part[0][0] == 12000 and part[-1][0] == 13000 and (12340, 99) in part and len(part) <= 50
    part = chart(user, 1, **{"timeSeriesFilter.name": "batches", "timeSeriesFilter.integerRange.gt": 49970, "timeSeriesFilter.integerRange.lte": 49990})
    assert [s for s, _ in part] == [49980, 49990]
    s = summary(user, 1)
    assert (s["n"]["count"], s["n"]["min"], s["n"]["max"], s["n"]["sum"], s["n"]["last"]) == (5000, 1, 5000, 12502500, 5000), s["n"]
    both = user.call("compare_trials", trialIds=[1], metricIds=["training.loss", "training.n", "validation.x"])["trials"][0]["metrics"]
    assert [m["group"] for m in both] == ["training", "validation"] and both[1]["data"] == []
    assert {k for p in both[0]["data"] for k in p["values"]} == {"loss", "n"}
    user.refused(400, "trialIds", "compare_trials", metricIds=["training.loss"])
    user.refused(400, "metricIds", "compare_trials", trialIds=[1])
    user.refused(400, "metricType", "compare_trials", trialIds=[1], metricNames=["loss"])
    user.refused(400, "<group>.<name>", "compare_trials", trialIds=[1], metricIds=["loss"])
    user.refused(404, "trial 999 not found", "compare_trials", trialIds=[1, 999], metricIds=["training.loss"])


def not_numbers(user):
    """A metric that is not always a number: its numbers are drawn, whatever the rest looks like."""
    for s, v in enumerate((0.5, "NaN", "[7,7,7]\n[8,8,8]", [1, 2, 3], {"a": 1}, True, None, "x" * 1000, -2.5e-300), 1):
        report(user, 9, s, {"loss": v})
    assert chart(user, 9) == [(1, 0.5), (9, -2.5e-300)], chart(user, 9)


def late(c, user):
    """Steps out of order, repeats, and more metrics of old steps, against sums over the rows."""
    rng, steps = random.Random(7), list(range(200))
    rng.shuffle(steps)
    for s in steps:
        for _ in range(rng.choice((1, 1, 2))):
            report(user, 2, s, {"loss": s % 13})
        if s % 5 == 0:
            report(user, 2, s, {"extra": s})
    user.refused(400, "another value", "post_metrics", {"metrics": {"trialId": 2, "trialRunId": 1, "stepsCompleted": 3,
                 "metrics": {"avgMetrics": {"loss": 99}}}, "group": "training"}, trialId=2)
    s = summary(user, 2)
    assert (s["loss"]["count"], s["loss"]["sum"], s["extra"]["count"], s["extra"]["max"]) == (200, sum(x % 13 for x in range(200)), 40, 195), s
    assert {v for _, v in chart(user, 2, maxDatapoints=10)} >= {0, 12}
    assert int(c.sql("SELECT count(*) FROM metrics WHERE trial_id = 2")) == 200


def rolled_back(c, user):
    """A run that resumes from a checkpoint replaces what came after it, in charts and summaries too."""
    for s in range(1, 101):
        report(user, 3, s, {"loss": 1000 if s == 90 else s}, batches=[{"loss": s}])
        if s % 10 == 0:
            report(user, 3, s, {"loss": 1 / s}, "validation")
    assert (90, 1000) in chart(user, 3, maxDatapoints=10)
    c.sql("UPDATE trials SET run_id = 2 WHERE id = 3")
    user.refused(409, "run", "post_metrics", {"metrics": {"trialId": 3, "trialRunId": 1, "stepsCompleted": 101,
                 "metrics": {"avgMetrics": {"loss": 1}}}, "group": "training"}, trialId=3)
    report(user, 3, 51, {"loss": 5}, run=2)
    got = chart(user, 3, maxDatapoints=1000)
    assert got == [(s, s) for s in range(1, 51)] + [(51, 5)], got[-5:]
    t = user.call("get_trial", trialId=3)["trial"]
    s = t["summaryMetrics"]
    assert (s["avg_metrics"]["loss"]["count"], s["avg_metrics"]["loss"]["max"], s["validation_metrics"]["loss"]["count"]) == (51, 50, 5), s
    assert t["totalBatchesProcessed"] == 51 and t["latestValidation"]["totalBatches"] == 50 and t["bestValidation"]["totalBatches"] == 50
    for x in range(52, 120):
        report(user, 3, x, {"loss": x}, run=2)
    assert chart(user, 3, maxDatapoints=1000)[50:] == [(51, 5)] + [(x, x) for x in range(52, 120)]
    rows = [m for chunk in user.call("get_training_metrics", trialIds=[3]) for m in chunk["metrics"]]
    assert len(rows) == 119 and rows[0]["metrics"] == {"avg_metrics": {"loss": 1}, "batch_metrics": [{"loss": 1}]}, rows[0]


def bounded(user):
    wide = {f"m{i}": i for i in range(15000)}
    report(user, 4, 1, wide)
    for i in range(2, 20):
        try:
            report(user, 4, i, {f"x{i}-{k}": k for k in range(1000)})
        except Exception as e:
            assert "different metrics" in str(e), e
            break
    else:
        raise AssertionError("more names than a trial may have were taken")
    user.refused(400, "at most", "post_metrics", {"metrics": {"trialId": 4, "trialRunId": 1, "stepsCompleted": 30,
                 "metrics": {"avgMetrics": {f"m{i}": i for i in range(20001)}}}, "group": "training"}, trialId=4)
    for i in range(100):
        report(user, 5, 1, {"a": 1}, f"group-{i}")
    user.refused(400, "groups", "post_metrics", {"metrics": {"trialId": 5, "trialRunId": 1, "stepsCompleted": 1,
                 "metrics": {"avgMetrics": {"a": 1}}}, "group": "one-more"}, trialId=5)


def together(c, user):
    """Reports that come in one request: each is kept, or refused at its own place."""
    c.sql("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) VALUES "
          "(10, 1, 'r10', '1.r10', 'ACTIVE', 1, '{}', now())")
    assert batch(user, 10, [(i, {"loss": i, "lr": 1e-5}) for i in range(1, 101)]) == []
    assert batch(user, 10, [(i, {"loss": i, "lr": 1e-5}) for i in range(81, 180)]) == [], "a lost answer: those that are known are kept once"
    assert batch(user, 10, [(180, {"loss": 180, "lr": "NaN"}), (181, {"loss": [1, 2]}), (181, {"loss": 0.5}, "validation"), (182, {}), (183, {"loss": 183})]) == []
    assert batch(user, 10, [(184, {"loss": 184}), (1, {"loss": -1}), (185, {"loss": 1}, "a.b"), (-1, {"loss": 1}), (186, {"epoch": "x"}),
                            (187, {"loss": 187})]) == [(2, 400), (3, 400), (4, 400), (1, 400)]
    good = {"trialRunId": 1, "stepsCompleted": 188, "metrics": {"avgMetrics": {"loss": 188}, "batchMetrics": [{"loss": 1.5}]}}
    odd = [7, {"group": "training"}, {"group": "training", "metrics": good}, {"group": "training", "metrics": dict(good, trialId=9)},
           {"group": "training", "metrics": dict(good, trialRunId=2)}]
    r = user.call("post_metrics_batch", {"reports": odd}, trialId=10)["refused"]
    assert sorted((x["index"], x["status"]) for x in r) == [(0, 400), (1, 400), (3, 400), (4, 409)] and all(x["message"] for x in r), r
    steps = [*range(1, 181), 183, 184, 187, 188]
    assert chart(user, 10, maxDatapoints=1000) == [(s, s) for s in steps], chart(user, 10, maxDatapoints=1000)[-9:]
    assert c.sql("SELECT batch_metrics FROM metrics WHERE trial_id = 10 AND steps = 188") == '[{"loss":1.5}]'
    s = summary(user, 10)
    assert (s["lr"]["count"], s["lr"]["max"], s["loss"]["type"], s["loss"]["last"]) == (179, 1e-5, "string", 188), s
    assert user.call("get_trial", trialId=10)["trial"]["latestValidation"]["metrics"]["avgMetrics"] == {"loss": 0.5}
    for bodies in ([], [{}] * 129, {}, None):
        user.refused(400, "1 to 128", "post_metrics_batch", {"reports": bodies}, trialId=10)
    assert batch(user, 999, [(1, {"loss": 1})]) == [(0, 404)]
    c.sql("UPDATE trials SET state = 'ERROR' WHERE id = 10")


def killed(c, user):
    """Reports of three trials, one of which sends several at once, while the master is killed and started again: each
    acknowledged one is there once."""
    acked, over, rng = {t: [] for t in (6, 7, 8)}, threading.Event(), random.Random(3)

    def send(own, trial, steps):
        if trial == 8:
            assert batch(own, trial, [(s, {"loss": s}) for s in steps]) == []
        else:
            report(own, trial, steps[0], {"loss": steps[0]}, batches=[{"b": steps[0]}] * 5)

    def harness(trial):
        own, step = Api(c.port, c.token), 0
        while not over.is_set():
            steps = range(step + 1, step + 2 + (rng.randrange(100) if trial == 8 else 0))
            step = steps[-1]
            while not over.is_set():
                try:
                    send(own, trial, steps)
                    acked[trial].extend(steps)
                    break
                except (OSError, http.client.HTTPException):
                    over.wait(0.02)  # the master is away: try again, as a harness does
                except Failed as e:
                    assert e.status == 503, e
                    over.wait(0.02)

    threads = [threading.Thread(target=harness, args=(t,)) for t in acked]
    for t in threads:
        t.start()
    try:
        for kill in (True, True, True, False):
            had = {t: len(a) for t, a in acked.items()}
            wait_until(lambda: all(len(a) > had[t] + 40 for t, a in acked.items()), 60, "reports")
            if kill:
                c.stop("master", signal.SIGKILL)
                c.start_master()
    finally:
        over.set()
        for t in threads:
            t.join()
    for t, steps in acked.items():
        rows = json.loads(c.sql(f"SELECT json_agg(steps ORDER BY steps) FROM metrics WHERE trial_id = {t}"))
        assert len(rows) == len(set(rows)) and set(steps) <= set(rows) and len(rows) <= len(steps) + (100 if t == 8 else 1), (t, len(rows), len(steps))
        s = summary(Api(c.port, c.token), t)["loss"]
        assert (s["count"], s["sum"]) == (len(rows), sum(rows)), (s, len(rows))


def spoiled(c, user):
    """Sums that NaN spoiled in former versions are made again from the reports."""
    repair, = glob.glob(os.path.join(HERE, "..", "..", "db", "migrations", "*_spoiled_sums.sql"))
    chunks = "SELECT json_agg(json_build_array(grp, level, seq, doc) ORDER BY grp, level, seq) FROM metric_chunks WHERE trial_id = 1"
    was, s = c.sql(chunks), summary(user, 1)["loss"]
    c.sql("UPDATE metric_chunks SET doc = jsonb_set(doc, '{loss,1}', '-1e296') WHERE trial_id = 1 AND (level, seq) IN ((1, 20), (2, 5), (3, 1), (4, 0)); "
          "UPDATE trials SET summary_metrics = jsonb_set(summary_metrics, '{avg_metrics,loss,sum}', '-1e296') WHERE id = 1")
    assert summary(user, 1)["loss"]["sum"] < -1e295 and c.sql(chunks) != was
    with open(repair) as f:  # it calls what a chunk was made by then
        c.sql("CREATE FUNCTION pg_temp.of_rows(integer, text, integer, integer) RETURNS jsonb LANGUAGE sql AS 'SELECT (chunk_made($1, $2, $3, $4)).doc'; "
              + f.read().replace("chunk_of_rows(", "pg_temp.of_rows("))
    again = summary(user, 1)["loss"]
    assert c.sql(chunks) == was, "a chunk is not what it was"
    assert abs(again.pop("sum") - s.pop("sum")) < 1e-9 and abs(again.pop("mean") - s.pop("mean")) < 1e-9 and again == s, (again, s)


def kept(c):
    """What lists sort by, beside the rows: after late and repeated reports, roll-backs and kills."""
    differ = c.sql("SELECT id, closed_batches, latest_value, latest_validation FROM trials t JOIN (SELECT trial_id, greatest(max(closed_steps), 0) batches "
                   "FROM metric_heads GROUP BY 1) h ON h.trial_id = t.id WHERE closed_batches <> batches "
                   "OR latest_value IS DISTINCT FROM number_of(latest_validation->'metrics'->'avgMetrics'->'loss')")
    assert not differ, differ
    assert c.sql("SELECT max(closed_batches), count(latest_value) FROM trials") == "49920|2"
    assert c.sql("SELECT count(*) FROM trials t JOIN metric_heads h ON h.trial_id = t.id WHERE tail > 0 AND NOT has_tail") == "0"


def main():
    with Cluster(agents=0) as c:
        c.login()
        c.sql(ROWS)
        user = Api(c.port, c.token)
        charts(c, user)
        not_numbers(user)
        late(c, user)
        rolled_back(c, user)
        bounded(user)
        together(c, user)
        killed(c, user)
        kept(c)
        spoiled(c, user)
    print("test_metrics_scale: passed")


if __name__ == "__main__":
    main()
