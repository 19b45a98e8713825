"""Retention: a round at the start and one by hand delete what is old of trials that ended, and only that."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import promtext  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402

# Trials 1 and 2 ended 40 and 2 days ago; 3 is of an experiment that keeps its logs; 4 lives.
ROWS = """INSERT INTO experiments (id, job_id, owner_id, state, start_time, end_time, name, config, original_config, searcher_metric)
          SELECT g, 'j' || g, 1, 'COMPLETED', now(), now(), 'rows', CASE g WHEN 2 THEN '{"retention_policy":{"log_retention_days":-1}}' ELSE '{}' END::jsonb,
          '', 'loss' FROM generate_series(1, 2) g;
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time)
          SELECT g, CASE g WHEN 3 THEN 2 ELSE 1 END, 'r' || g, '1.r' || g, 'ACTIVE', 1, '{}', now() FROM generate_series(1, 4) g;
          SELECT report_metrics(t, 1, g, s * 10, jsonb_build_object(metrics_key(g), jsonb_build_object('loss', s)), now())
          FROM generate_series(1, 4) t, generate_series(1, 50) s, unnest('{training,validation}'::text[]) g ORDER BY t, g, s;
          INSERT INTO task_logs (task_id, time, log) SELECT '1.r' || t, now(), 'x' FROM generate_series(1, 4) t, generate_series(1, 12000);
          UPDATE trials SET state = 'ERROR', last_activity = NULL, end_time = now() - CASE id WHEN 2 THEN 2 ELSE 40 END * interval '1 day'
          WHERE id <> 4"""
LOGS = "SELECT string_agg(n::text, ' ' ORDER BY id) FROM (SELECT t.id, count(l.id) n FROM trials t LEFT JOIN task_logs l USING (task_id) GROUP BY t.id) x"
BATCHES = "SELECT string_agg(n::text, ' ' ORDER BY id) FROM (SELECT t.id, count(m.id) n FROM trials t LEFT JOIN metrics m " \
          "ON m.trial_id = t.id AND grp = 'training' GROUP BY t.id) x"


def figure(c, name, **labels):
    return promtext.value(promtext.parse(Api(c.port).raw("GET", "/metrics")[1].decode()), name, **labels)


def by_hand(c, admin):
    """A dry run counts, and the round that is asked for deletes just that, in portions."""
    wait_until(lambda: figure(c, "det_retention_rounds_total") == 1, 60, "the first round")
    c.sql(ROWS)
    shown = admin.call("get_trial", trialId=1)
    said = admin.call("cleanup_logs", {"dryRun": True})
    assert said == {"removedCount": "12000", "logTrials": 1, "removedMetrics": "150", "metricTrials": 3, "dryRun": True}, said
    assert "12000 log lines of 1 trials would be deleted" in c.det("master", "retention", "--dry-run").stdout
    assert c.sql(LOGS) == "12000 12000 12000 12000"
    assert "are being deleted" in c.det("master", "retention").stdout
    wait_until(lambda: figure(c, "det_retention_rounds_total") == 2, 60, "the round by hand")
    assert c.sql(LOGS) == "0 12000 12000 12000", c.sql(LOGS)
    assert c.sql(BATCHES) == "0 0 0 50", c.sql(BATCHES)
    assert figure(c, "det_retention_rows_total", of="logs") == 12000 and figure(c, "det_retention_rows_total", of="metrics") >= 150
    assert admin.call("get_trial", trialId=1) == shown and shown["trial"]["summaryMetrics"]["avg_metrics"]["loss"]["count"] == 50
    with open(c.path("master.log")) as f:
        assert "retention: deleted 12" in f.read()
    chart = admin.call("compare_trials", trialIds=[1], metricIds=["training.loss", "validation.loss"])["trials"][0]["metrics"]
    assert [len(m["data"]) for m in chart] == [0, 50], chart
    assert admin.call("trial_logs", trialId=1) == [] and admin.call("cleanup_logs", {})["removedCount"] == "0"


def by_whom(c, admin):
    """Only an administrator deletes."""
    admin.call("post_user", {"user": {"username": "guest", "active": True}, "password": "wordPass-7", "isHashed": False})
    guest = Api(c.port, Api(c.port).call("login", {"username": "guest", "password": "wordPass-7", "isHashed": False})["token"])
    guest.refused(403, "", "cleanup_logs", {"dryRun": True})


def at_the_start(c):
    """A master with another setting looks at once."""
    c.stop("master")
    c.env["DET_RETENTION_POLICY_LOG_RETENTION_DAYS"] = "1"
    c.start_master()
    wait_until(lambda: c.sql(LOGS) == "0 0 12000 12000", 60, "the round at the start")


def main():
    with Cluster(agents=0, env={"DET_RETENTION_POLICY_LOG_RETENTION_DAYS": "30", "DET_RETENTION_POLICY_METRIC_RETENTION_DAYS": "0"}) as c:
        c.login()
        admin = Api(c.port, c.token)
        by_hand(c, admin)
        by_whom(c, admin)
        at_the_start(c)
    print("test_retention: passed")


if __name__ == "__main__":
    main()
