"""The rows of an experiment that is deleted go in portions: others go on meanwhile, and a master that is killed has its successor
go on with what is left."""
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from cluster import ApiError, Cluster, wait_until  # noqa: E402
from masters import Session  # noqa: E402

LARGE, SMALL, HELD, SLOW, LOCKED, BESIDE = 1, 2, 3, 4, 5, 6
TRIALS = {LARGE: 5000, SMALL: 3, HELD: 3, SLOW: 1, LOCKED: 1, BESIDE: 1}
# Reports, lines and runs of each trial; an event of the search.
ROWS = """INSERT INTO experiments (id, job_id, owner_id, state, start_time, end_time, name, config, original_config, searcher_metric)
          SELECT g, 'j' || g, 1, 'COMPLETED', now(), now(), 'rows', '{}', '', 'loss' FROM generate_series(1, 6) g;
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time, end_time)
          SELECT g, CASE WHEN g <= 5000 THEN 1 WHEN g <= 5003 THEN 2 WHEN g <= 5006 THEN 3 ELSE g - 5003 END, 'r' || g, '1.r' || g, 'COMPLETED', 1, '{}', now(), now()
          FROM generate_series(1, 5009) g;
          INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics) SELECT t, 'training', s, 1, now(), '{"avg_metrics":{"loss":1}}'
          FROM generate_series(1, 5009) t, generate_series(1, 20) s;
          INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc)
          SELECT t, 'training', 1, 1, 0, 16, 16, '{}' FROM generate_series(1, 5009) t;
          INSERT INTO task_logs (task_id, time, log) SELECT '1.r' || t, now(), 'x' FROM generate_series(1, 5009) t, generate_series(1, 10);
          INSERT INTO log_marks (task_id, id, since, oldest, newest) SELECT '1.r' || t, 1, 0, now(), now() FROM generate_series(1, 5009) t;
          INSERT INTO trial_timeline SELECT t, 1, 1, -1, 'queued', 0, '' FROM generate_series(1, 5009) t;
          INSERT INTO profiler_metrics (trial_id, labels, batch) SELECT t, '{}', '{}' FROM generate_series(1, 5009) t;
          INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, run_id, state, report_time, steps)
          SELECT 'c' || t, e, t, '1.r' || t, 1, 'DELETED', now(), 1 FROM (SELECT id t, experiment_id e FROM trials) x;
          INSERT INTO allocations (id, task_id, experiment_id, trial_id, run_id, state, slots, start_time, end_time)
          SELECT '1.r' || t || '.1', '1.r' || t, e, t, 1, 'TERMINATED', 1, now(), now() FROM (SELECT id t, experiment_id e FROM trials) x;
          INSERT INTO allocations (id, task_id, experiment_id, run_id, kind, state, slots, start_time, end_time)
          SELECT 'gc.1', 'gc', 1, 1, 'CHECKPOINT_GC', 'TERMINATED', 0, now(), now();
          INSERT INTO task_logs (task_id, time, log) SELECT 'gc', now(), 'x' FROM generate_series(1, 5000);
          INSERT INTO webhooks (url, webhook_type) VALUES ('http://127.0.0.1:1/', 'DEFAULT');
          INSERT INTO webhook_triggers (webhook_id, trigger_type, condition) SELECT id, 'TASK_LOG', '{"regex": "x"}' FROM webhooks;
          INSERT INTO webhook_log_hits SELECT w.id, t FROM webhook_triggers w, unnest('{gc, 1.r1, 1.r5001}'::text[]) t;
          INSERT INTO search_events SELECT 1, s, '{}' FROM generate_series(1, 12000) s;
          INSERT INTO metric_steps (experiment_id, grp, steps, names, id) SELECT 1, 'training', s, '{loss}', s FROM generate_series(1, 5000) s"""
# By trial, else by experiment.
TABLES = {"metrics": "trial_id", "metric_chunks": "trial_id", "profiler_metrics": "trial_id", "trial_timeline": "trial_id",
          "checkpoints": "experiment_id", "allocations": "experiment_id", "search_events": "experiment_id", "metric_steps": "experiment_id",
          "metric_names": "experiment_id", "experiment_sums": "experiment_id"}


def left(c, exp):
    return int(c.sql(f"SELECT count(*) FROM trials WHERE experiment_id = {exp}"))


def state(c, exp):
    return c.sql(f"SELECT state FROM experiments WHERE id = {exp}")


def gone(c, exp):
    return state(c, exp) == ""


def rows_left(c):
    """Of what is deleted; lines of logs have no experiment any more."""
    n = {t: int(c.sql(f"SELECT count(*) FROM {t} x WHERE NOT EXISTS (SELECT FROM {key[:-3]}s y WHERE y.id = x.{key})"))
         for t, key in TABLES.items()}
    for t in ("task_logs", "log_marks", "webhook_log_hits"):
        n[t] = int(c.sql(f"SELECT count(*) FROM {t} WHERE task_id = 'gc' OR task_id LIKE '1.r%' AND NOT EXISTS "
                         f"(SELECT FROM trials t WHERE t.task_id = {t}.task_id)"))
    return {t: k for t, k in n.items() if k}


def delete(c, exp):
    c.api("DELETE", f"/experiments/{exp}")


def test_portions(c):
    """Deleted later, the small one is gone sooner; the large one is then still in part there, and nothing but on its way."""
    delete(c, LARGE)
    wait_until(lambda: left(c, LARGE) < TRIALS[LARGE], 60, "the first trials to be gone")
    delete(c, SMALL)
    wait_until(lambda: gone(c, SMALL), 60, "the small experiment to be gone")
    why = c.api("GET", f"/experiments/{LARGE}/why")
    c.stop("master", signal.SIGKILL)
    assert 0 < left(c, LARGE) < TRIALS[LARGE], left(c, LARGE)
    assert why["reason"] == "DELETING" and "its rows go" in why["text"], why
    assert state(c, LARGE) == "DELETING"


def test_goes_on(c):
    c.start_master()
    for action in ("activate", "delete"):
        try:
            c.api(*(("DELETE", f"/experiments/{LARGE}") if action == "delete" else ("POST", f"/experiments/{LARGE}/activate")))
            assert action == "delete", "it lives again"
        except ApiError as e:
            assert e.status in (400, 404, 409), e
    wait_until(lambda: gone(c, LARGE), 180, "the large experiment to be gone")
    assert rows_left(c) == {}, rows_left(c)
    assert int(c.sql("SELECT value->>'trial' FROM settings WHERE key = 'last_ids'")) == 5003


def test_index(c):
    """No portion reads the allocations of others to find those of the collections."""
    plan = c.sql(f"ANALYZE allocations; EXPLAIN SELECT FROM allocations WHERE experiment_id = {SMALL}")
    assert "allocations_experiment" in plan, plan


def test_refused(c):
    """A table of somebody else's holds a trial: the deletion fails, as it says, and goes on when it is asked again."""
    c.sql("CREATE TABLE others (trial integer REFERENCES trials); INSERT INTO others VALUES (5005)")
    delete(c, HELD)
    wait_until(lambda: state(c, HELD) == "DELETE_FAILED", 120, "the deletion to fail")
    with open(c.path("master.log")) as f:
        assert "others_trial_fkey" in f.read()
    why = c.api("GET", f"/experiments/{HELD}/why")
    assert why["reason"] == "ENDED" and "others_trial_fkey" in why["text"], why
    assert why["suggestions"][0]["command"] == f"det experiment delete {HELD}", why
    for command in (("why", f"exp:{HELD}"), ("experiment", "describe", str(HELD))):
        told = c.det(*command).stdout
        assert told.count("others_trial_fkey") == 1, told
    assert left(c, HELD) == 2, left(c, HELD)  # from that trial on
    assert c.sql(f"SELECT count(*) FROM trial_blocks WHERE experiment_id = {HELD}") == "1"  # by which groups find it
    c.sql("DROP TABLE others")
    delete(c, HELD)
    wait_until(lambda: gone(c, HELD), 60, "it to be gone")
    assert rows_left(c) == {}, rows_left(c)


def test_slow(c):
    """Rows that each take long, more of them than a statement has time for: a portion ends by its time, and others write meanwhile."""
    c.sql(f"""INSERT INTO metrics (trial_id, grp, steps, run_id, end_time, metrics) SELECT 5007, 'training', s, 1, now(), '{{}}'
              FROM generate_series(100, 2300) s;
          CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.035); RETURN OLD; END $$;
          CREATE TRIGGER lingers BEFORE DELETE ON metrics FOR EACH ROW WHEN (OLD.trial_id = 5007) EXECUTE FUNCTION linger()""")
    delete(c, SLOW)
    wait_until(lambda: int(c.sql("SELECT count(*) FROM metrics WHERE trial_id = 5007")) < 2200, 120, "the first of them to be gone")
    assert state(c, SLOW) == "DELETING"
    c.sql("DROP TRIGGER lingers ON metrics")
    wait_until(lambda: gone(c, SLOW), 60, "it to be gone")


def test_locked(c):
    """Somebody holds a row: that is told, and another's deletion goes on."""
    with Session(c, "BEGIN; SELECT FROM trials WHERE id = 5008 FOR UPDATE"):
        delete(c, LOCKED)
        wait_until(lambda: "of experiment 5 cannot be deleted as yet" in open(c.path("master.log")).read(), 120, "the lock to be told")
        delete(c, BESIDE)
        wait_until(lambda: gone(c, BESIDE), 60, "the other to be gone")
        assert state(c, LOCKED) == "DELETING"
    wait_until(lambda: gone(c, LOCKED), 60, "it to be gone")


def main():
    with Cluster(agents=0) as c:
        c.login()
        c.stop("master")
        c.sql(ROWS)
        c.start_master()
        test_index(c)
        test_portions(c)
        test_goes_on(c)
        test_slow(c)
        test_locked(c)
        test_refused(c)
    print("test_deletion: passed")


if __name__ == "__main__":
    main()
