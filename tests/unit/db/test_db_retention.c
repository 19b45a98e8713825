/* Retention: what is due to the day, portions, what stays, and that nothing of a live trial
 * goes. */
#include "buf.h"
#include "db_retention.h"
#include "db_rows.h"
#include "mem.h"
#include "pg_private.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

static struct got {
    bool done;
    int columns; /* wanted */
    int64_t affected;
    struct buf rows; /* columns by ' ', rows by ';' */
} got;

static void on_rows(void *arg, const struct db_result *r)
{
    got.done = true;
    got.affected = db_affected(r);
    if (db_rc(r) < 0)
        buf_add_str(&got.rows, db_error(r)->text);
    for (int i = 0; db_rc(r) == 0 && i < db_rows(r); i++)
        for (int c = 0; c < got.columns; c++)
            buf_addf(&got.rows, "%s%s",
                     c   ? " "
                     : i ? ";"
                         : "",
                     db_is_null(r, i, c) ? "-" : db_text(r, i, c));
}

static void wanted(int columns)
{
    got.done = false;
    got.columns = columns;
    buf_clear(&got.rows);
}

static const char *wait(void)
{
    assert_true(loop_until(&loop, &got.done, 60000));
    return buf_str(&got.rows);
}

static const char *ask(const char *sql)
{
    wanted(1);
    db_write(db, sql, NULL, on_rows, NULL);
    return wait();
}

static const char *due(int64_t log_days, int64_t metric_days, int64_t beyond)
{
    wanted(4);
    db_retention_due(db, &(struct db_retention){log_days, metric_days}, beyond, on_rows, NULL);
    return wait();
}

static const char *count(int64_t log_days, int64_t metric_days)
{
    wanted(4);
    db_retention_count(db, &(struct db_retention){log_days, metric_days}, on_rows, NULL);
    return wait();
}

static int64_t cut_after(int64_t days, enum db_retention_kind kind, int64_t trial_id, int64_t n)
{
    struct db_retention_portion p = {.kind = kind, .trial_id = trial_id, .days = days, .rows = n};
    wanted(0);
    db_retention_delete(db, &p, on_rows, NULL);
    assert_string_equal(wait(), "");
    return got.affected;
}

static int64_t cut(enum db_retention_kind kind, int64_t trial_id, int64_t n)
{
    return cut_after(0, kind, trial_id, n);
}

static int start(void **state)
{
    return pg_private_open(&pg, &loop, &db);
}

static int end(void **state)
{
    buf_finish(&got.rows);
    pg_private_close(&pg, &loop, db);
    return 0;
}

/* Trial n ended n days and an hour ago, but the 4th lives; the 3rd's experiment keeps logs for 7
 * days, whatever the master says, the 5th's for ever. */
static const char *const seed[] = {
    "INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, labels, config, "
    "original_config, model_def, searcher_metric) SELECT i, 'j' || i, 1, 'COMPLETED', now(), 'x', "
    "'[]', CASE i WHEN 3 THEN '{\"retention_policy\":{\"log_retention_days\":7}}' "
    "WHEN 5 THEN '{\"retention_policy\":{\"log_retention_days\":-1}}' "
    "ELSE '{\"retention_policy\":null}' END::jsonb, '', '', 'loss' FROM generate_series(1, 5) i",
    "INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
    "SELECT i, i, 'r', 't' || i, 'ACTIVE', 1, '{}', now() FROM generate_series(1, 5) i",
    "INSERT INTO task_logs (task_id, time, log) SELECT 't' || i, now(), 'x' "
    "FROM generate_series(1, 5) i, generate_series(1, 10)",
    "SELECT report_metrics(i, 1, g, s, jsonb_build_object(metrics_key(g), "
    "jsonb_build_object('loss', s)), now()) FROM generate_series(1, 5) i, "
    "generate_series(1, 40) s, unnest('{a group,training,validation,zeta}'::text[]) g "
    "ORDER BY i, g, s",
    "INSERT INTO profiler_metrics (trial_id, labels, batch) SELECT i, '{}', '[]' "
    "FROM generate_series(1, 5) i, generate_series(1, 3)",
    "UPDATE trials SET state = 'COMPLETED', end_time = now() - id * interval '1 day' "
    "- interval '1 hour', last_activity = NULL WHERE id <> 4",
};

static int fresh(void **state)
{
    ask("DELETE FROM experiments");
    ask("DELETE FROM task_logs");
    for (size_t i = 0; i < DET_ARRAY_LEN(seed); i++)
        assert_null(strstr(ask(seed[i]), "SQLSTATE"));
    return 0;
}

static void due_to_the_day(void **state)
{
    assert_string_equal(due(-1, -1, 0), "5 - - -");
    assert_string_equal(due(0, -1, 0), "5 1 t f;5 2 t f");
    assert_string_equal(due(2, -1, 0), "5 2 t f");
    assert_string_equal(due(3, 3, 0), "5 3 f t;5 5 f t");
    ask("UPDATE trials SET end_time = now() - interval '7 days' WHERE id = 3");
    assert_string_equal(due(-1, -1, 0), "5 3 t f"); /* the experiment's own word */
    ask("UPDATE trials SET end_time = NULL WHERE id = 1");
    assert_string_equal(due(0, 0, 0), "5 2 t t;5 3 t t;5 5 f t");
    assert_string_equal(due(0, 0, 2), "5 3 t t;5 5 f t");
    assert_string_equal(due(0, 0, 5), "- - - -"); /* these were the last */
    assert_string_equal(due(32767, 32767, 0), "5 3 t f");
}

static void logs_go_in_portions(void **state)
{
    assert_string_equal(count(0, -1), "2 20 0 0");
    assert_int_equal(cut(RETENTION_LOGS, 1, 6), 6);
    assert_string_equal(due(0, -1, 0), "5 1 t f;5 2 t f");
    assert_int_equal(cut(RETENTION_LOGS, 1, 6), 4);
    assert_int_equal(cut(RETENTION_LOGS, 1, 6), 0);
    assert_string_equal(due(0, -1, 0), "5 2 t f");
    assert_string_equal(ask("SELECT count(*) FROM task_logs WHERE task_id <> 't1'"), "40");
    assert_int_equal(cut(RETENTION_LOGS, 4, 6), 0); /* it lives */
    assert_int_equal(cut(RETENTION_LOGS, 99, 6), 0);
}

static const char shown[] =
    "SELECT md5((SELECT (t, h, trial_summary(t.id, t.summary_metrics))::text FROM trials t, "
    "(SELECT max(steps), sum(tail) FROM metric_heads WHERE trial_id = 2) h WHERE t.id = 2) || "
    "(SELECT string_agg(m::text, ',' ORDER BY m.steps) FROM metrics m "
    "WHERE trial_id = 2 AND grp = 'validation'))";

static void batches_go_and_summaries_stay(void **state)
{
    char before[64];
    snprintf(before, sizeof before, "%s", ask(shown));
    assert_string_equal(count(-1, 2), "0 0 3 360");
    assert_int_equal(cut(RETENTION_METRICS, 2, 100), 100);
    assert_int_equal(cut(RETENTION_METRICS, 2, 100), 20);
    assert_int_equal(cut(RETENTION_METRICS, 2, 100), 0);
    assert_string_equal(due(-1, 2, 0), "5 2 f t;5 3 f t;5 5 f t"); /* its chunks */
    assert_int_equal(cut(RETENTION_CHUNKS, 2, 4), 4);
    while (cut(RETENTION_CHUNKS, 2, 4) == 4)
        ;
    assert_int_equal(cut(RETENTION_PROFILE, 2, 4), 3);
    assert_string_equal(due(-1, 2, 0), "5 3 f t;5 5 f t");
    assert_string_equal(ask(shown), before);
    assert_string_equal(ask("SELECT string_agg(DISTINCT grp, ',') FROM metric_chunks "
                            "WHERE trial_id = 2"),
                        "validation");
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE trial_id IN (1, 3)"), "320");
    assert_string_equal(ask("SELECT series_lines(2, 'training', 0, 100, 'loss', 10, true)"), "");
    assert_string_equal(ask("SELECT count(*) > 9 FROM regexp_split_to_table("
                            "series_lines(2, 'validation', 0, 100, 'loss', 10, true), '[\n,]')"),
                        "t");
    for (int kind = 0; kind < RETENTION_KINDS; kind++)
        assert_int_equal(cut((enum db_retention_kind)kind, 4, 1000), 0); /* it lives */
}

static const char summary[] =
    "SELECT concat_ws(' ', s->'count', s->'min', s->'max', s->'sum', s->'last') "
    "FROM trials t, LATERAL (SELECT trial_summary(t.id, t.summary_metrics)"
    "->'avg_metrics'->'loss' s) x WHERE t.id = 2";

static void report(int run, int from, int upto)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT string_agg(report_metrics(2, %d, 'training', s, "
             "jsonb_build_object('avg_metrics', jsonb_build_object('loss', s)), now()), '') "
             "FROM (SELECT s FROM generate_series(%d, %d) s ORDER BY s) x",
             run, from, upto);
    assert_string_equal(ask(sql), "");
}

/* Its reports of batches are gone, but its summary goes on, through roll-backs too. */
static void continued_after_deletion(void **state)
{
    assert_string_equal(ask(summary), "40 1 40 820 40");
    cut(RETENTION_METRICS, 2, 30); /* half of it before it is continued */
    cut(RETENTION_CHUNKS, 2, 3);
    ask("UPDATE trials SET state = 'ACTIVE', end_time = NULL, run_id = 2 WHERE id = 2");
    assert_int_equal(cut(RETENTION_METRICS, 2, 100), 0);
    report(2, 41, 120);
    assert_string_equal(ask(summary), "120 1 120 7260 120");
    ask("UPDATE trials SET run_id = 3 WHERE id = 2");
    report(3, 71, 71); /* from a checkpoint at 70 */
    assert_string_equal(ask(summary), "71 1 71 2556 71");
    report(3, 72, 200);
    assert_string_equal(ask(summary), "200 1 200 20100 200");
    ask("UPDATE trials SET state = 'ERROR', end_time = now() - interval '9 days', last_activity = NULL WHERE id = 2");
    while (cut(RETENTION_METRICS, 2, 100) + cut(RETENTION_CHUNKS, 2, 100) > 0)
        ;
    ask("UPDATE trials SET state = 'ACTIVE', end_time = NULL, run_id = 4 WHERE id = 2");
    report(4, 191, 191); /* from a checkpoint at 190: what was deleted beyond stays in the
                          * summary */
    assert_string_equal(ask(summary), "201 1 200 20291 191");
    assert_string_equal(
        ask("SELECT steps FROM metric_heads WHERE trial_id = 2 AND grp = 'training'"), "191");
    report(4, 192, 230);
    ask("UPDATE trials SET run_id = 5 WHERE id = 2");
    report(5, 201, 230);
    assert_string_equal(ask(summary), "240 1 230 28520 230");
}

/* Found to be due, it goes on and ends anew before its turn comes: nothing of it is due any
 * more. */
static void ended_anew(void **state)
{
    assert_string_equal(due(2, 2, 0), "5 2 t t;5 3 f t;5 5 f t");
    ask("UPDATE trials SET end_time = now() WHERE id = 2");
    for (int kind = 0; kind < RETENTION_KINDS; kind++)
        assert_int_equal(cut_after(2, (enum db_retention_kind)kind, 2, 1000), 0);
    assert_string_equal(ask("SELECT count(*) FROM metric_heads WHERE kept IS NOT NULL"), "0");
    assert_int_equal(cut(RETENTION_LOGS, 3, 1000), 0); /* as its experiment says */
    assert_int_equal(cut_after(-1, RETENTION_METRICS, 3, 1000), 0);
    assert_int_equal(cut_after(3, RETENTION_METRICS, 3, 1000), 120);
}

/* The master's clock stood at 1970 when the trial ended. */
static void another_clock(void **state)
{
    const struct row_trial r = {
        .id = 2, .state = TRIAL_COMPLETED, .run_id = 1, .end_us = 1, .core = "{}"};
    struct db_tx *tx = db_tx_begin(db);
    db_save_trials(tx, &r, 1);
    wanted(0);
    db_tx_commit(tx, on_rows, NULL);
    assert_string_equal(wait(), "");
    assert_string_equal(ask("SELECT end_time < '1971-01-01' FROM trials WHERE id = 2"), "t");
    assert_string_equal(due(1, 1, 0), "5 1 t t;5 3 f t;5 5 f t");
    assert_string_equal(due(0, 0, 0), "5 1 t t;5 2 t t;5 3 f t;5 5 f t");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(due_to_the_day, fresh),
        cmocka_unit_test_setup(logs_go_in_portions, fresh),
        cmocka_unit_test_setup(batches_go_and_summaries_stay, fresh),
        cmocka_unit_test_setup(continued_after_deletion, fresh),
        cmocka_unit_test_setup(ended_anew, fresh),
        cmocka_unit_test_setup(another_clock, fresh),
    };
    return cmocka_run_group_tests(tests, start, end);
}
