/* Reports against a real PostgreSQL: fence, repeats, roll-back, summaries, log lines, users. */
#include "pg_private.h"

#include "buf.h"
#include "db.h"
#include "db_logs.h"
#include "db_metric_news.h"
#include "db_reports.h"
#include "db_timeline.h"
#include "db_users.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

struct did {
    bool done;
    int rc;
};

static void on_did(void *arg, int rc, const struct det_err *err)
{
    struct did *d = arg;
    d->done = true;
    d->rc = rc;
}

static const char *ask(const char *sql)
{
    return pg_private_read(&loop, db, sql);
}

static void run_sql(const char *sql)
{
    pg_private_write(&loop, db, sql);
}

static int setup(void **state)
{
    if (pg_private_open(&pg, &loop, &db) < 0)
        return -1;
    run_sql("INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, "
            "original_config, searcher_metric) VALUES (1, 'j', 1, 'ACTIVE', now(), 'n', '{}', '', "
            "'loss')");
    run_sql("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, "
            "start_time) VALUES (1, 1, 'r', '1.r', 'ACTIVE', 1, '{}', now())");
    return 0;
}

static int teardown(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

static int report(int64_t run, const char *group, int64_t steps, const char *metrics)
{
    struct did d = {0};
    struct db_metrics_report r = {.trial_id = 1,
                                  .run_id = run,
                                  .steps = steps,
                                  .group = group,
                                  .metrics = metrics,
                                  .time_us = 1700000000000000};
    db_report_metrics(db, &r, on_did, &d);
    assert_true(loop_until(&loop, &d.done, 60000));
    return d.rc;
}

static void test_metrics(void **state)
{
    assert_int_equal(report(1, "training", 10, "{\"avg_metrics\":{\"loss\":2}}"), 0);
    assert_int_equal(report(1, "training", 20, "{\"avg_metrics\":{\"loss\":1.5}}"), 0);
    assert_int_equal(report(1, "training", 20, "{\"avg_metrics\":{\"loss\":1.5}}"),
                     0); /* a repeat */
    assert_int_equal(report(1, "training", 20, "{\"avg_metrics\":{\"loss\":9}}"), DET_EINVAL);
    assert_int_equal(report(1, "training", 20, "{\"avg_metrics\":{\"lr\":0.1}}"),
                     0); /* one more key */
    assert_int_equal(report(2, "training", 30, "{\"avg_metrics\":{\"loss\":1}}"), DET_ESTALE);
    assert_int_equal(
        report(1, "validation", 20, "{\"validation_metrics\":{\"loss\":3, \"acc\":\"NaN\"}}"), 0);
    assert_string_equal(ask("SELECT count(*) FROM metrics"), "3");
    assert_string_equal(ask("SELECT trial_summary(id, summary_metrics)->'avg_metrics'->'loss' = "
                            "'{\"type\":\"number\",\"count\":2,\"min\":1.5,\"max\":2,\"sum\":3.5,"
                            "\"mean\":1.75,\"last\":1.5}'::jsonb FROM trials"),
                        "t");
    assert_string_equal(ask("SELECT trial_batches(id) FROM trials"), "20");
    assert_string_equal(ask("SELECT searcher_metric_value FROM trials"), "3");
}

static void test_rollback(void **state)
{
    assert_int_equal(report(1, "validation", 40, "{\"validation_metrics\":{\"loss\":1}}"), 0);
    assert_string_equal(ask("SELECT best_metric FROM experiments"), "1");
    run_sql("UPDATE trials SET run_id = 2");
    assert_int_equal(report(2, "training", 30, "{\"avg_metrics\":{\"loss\":1}}"), 0);
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE archived"), "1");
    assert_string_equal(ask("SELECT best_metric FROM experiments"), "3");
    assert_string_equal(ask("SELECT trial_batches(id) FROM trials"), "30");
    assert_string_equal(
        ask("SELECT trial_summary(id, summary_metrics)->'avg_metrics'->'loss'->>'count' FROM trials"),
        "3");
}

/* Thousands of metrics in one report, and its repeat, are no hold-up for the reports behind it. */
static void test_wide_report(void **state)
{
    enum { METRICS = 10000 };
    struct buf text = BUF_INIT;
    buf_add_str(&text, "{\"avg_metrics\":{\"loss\":1");
    for (int i = 0; i < METRICS; i++)
        buf_addf(&text, ",\"metric-%d\":%d", i, i);
    buf_add_str(&text, "}}");
    for (int i = 0; i < 2; i++) /* report() waits 20 s at most; quadratic work took 40 s */
        assert_int_equal(report(2, "training", 31, buf_str(&text)), 0);
    assert_string_equal(
        ask("SELECT trial_summary(id, summary_metrics)->'avg_metrics'->'metric-9999'->>'sum' FROM trials"),
        "9999");
    buf_finish(&text);
}

static void test_bad_json(void **state)
{
    assert_int_equal(report(2, "training", 50, "{\"avg_metrics\":"), DET_EINVAL);
    assert_int_equal(report(2, "training", 50, "{\"avg_metrics\":{\"s\":\"\\u0000\"}}"),
                     DET_EINVAL);
}

static int checkpoint_of(const char *uuid, int64_t run, const char *files, const char *hashes)
{
    struct did d = {0};
    struct db_checkpoint_report r = {.uuid = uuid,
                                     .task_id = "1.r",
                                     .allocation_id = "1.r.1",
                                     .trial_id = 1,
                                     .run_id = run,
                                     .steps = 30,
                                     .metadata = "{}",
                                     .resources = files,
                                     .hashes = hashes,
                                     .time_us = 1700000000000000};
    db_report_checkpoint(db, &r, on_did, &d);
    assert_true(loop_until(&loop, &d.done, 60000));
    return d.rc;
}

static int checkpoint(const char *uuid, int64_t run)
{
    return checkpoint_of(uuid, run, "{\"a\":5,\"d/\":0}", NULL);
}

static void test_checkpoints(void **state)
{
    assert_int_equal(checkpoint("c1", 2), 0);
    assert_int_equal(checkpoint("c1", 2), 0);
    assert_int_equal(checkpoint("c2", 1), DET_ESTALE);
    assert_string_equal(ask("SELECT string_agg(uuid || bytes, ',') FROM checkpoints"), "c15");
}

/* What is known of files is not lost by a report that says nothing of them: but for other files. */
static void test_hashes(void **state)
{
    static const char hash[] = "SELECT hashes->>'a' FROM checkpoints WHERE uuid = 'c1'";
    assert_int_equal(checkpoint_of("c1", 2, "{\"a\":5,\"d/\":0}", "{\"a\":\"1\"}"), 0);
    assert_int_equal(checkpoint("c1", 2), 0);
    assert_string_equal(ask(hash), "1");
    assert_int_equal(checkpoint_of("c1", 2, "{\"a\":5}", "{\"a\":\"2\"}"), 0);
    assert_string_equal(ask(hash), "2");
    assert_int_equal(checkpoint("c1", 2), 0);
    assert_string_equal(ask(hash), "");
}

static void test_small_reports(void **state)
{
    struct did d[5] = {0};
    db_report_runner_state(db, 1, 2, "starting", 45, on_did, &d[3]);
    db_report_runner_state(db, 1, 2, "training", 0, on_did, &d[0]);
    db_report_progress(db, 1, 2, 0.5, 0.25, on_did, &d[1]);
    db_report_progress(db, 1, 1, 0.9, 0.9, on_did, &d[2]);
    db_report_runner_state(db, 1, 1, "validating", 7, on_did, &d[4]);
    for (int i = 0; i < 5; i++)
        assert_true(loop_until(&loop, &d[i].done, 60000));
    assert_int_equal(d[0].rc, 0);
    assert_int_equal(d[1].rc, 0);
    assert_int_equal(d[2].rc, DET_ESTALE);
    assert_int_equal(d[3].rc, 0);
    assert_int_equal(d[4].rc, DET_ESTALE);
    assert_string_equal(ask("SELECT epoch_batches FROM trials"), "45"); /* it stays known */
    assert_string_equal(
        ask("SELECT runner_state || t.progress || e.progress FROM trials t, experiments e"),
        "training0.50.25");
}

static void test_logs(void **state)
{
    struct did d[2] = {0};
    struct db_log_line l[] = {
        {.task_id = "1.r",
         .allocation_id = "1.r.1",
         .rank = 0,
         .log = "a\0b\xff",
         .log_len = 4,
         .offset = 0},
        {.task_id = "1.r",
         .allocation_id = "1.r.1",
         .rank = 0,
         .log = "second",
         .log_len = 6,
         .offset = 1},
        {.task_id = "1.r",
         .allocation_id = "1.r.1",
         .rank = 1,
         .log = "other",
         .log_len = 5,
         .offset = 1},
        {.task_id = "1.r", .rank = -1, .log = "master", .log_len = 6, .offset = -1, .level = 3},
    };
    db_logs_write(db, l, 4, on_did, &d[0]);
    assert_true(loop_until(&loop, &d[0].done, 60000));
    db_logs_write(db, l, 3, on_did, &d[1]); /* repeated */
    assert_true(loop_until(&loop, &d[1].done, 60000));
    assert_int_equal(d[0].rc, 0);
    assert_int_equal(d[1].rc, 0);
    assert_string_equal(ask("SELECT count(*) FROM task_logs"), "4");
}

static void test_users(void **state)
{
    struct pg_answer made = {0}, found = {0}, changed = {0};
    struct db_user_edit u = {.username = "ann",
                             .admin = -1,
                             .active = -1,
                             .remote = -1,
                             .set_agent_user = true,
                             .uid = 5,
                             .gid = 6,
                             .user_name = "ann",
                             .group_name = "staff"};
    db_user_create(db, &u, pg_private_on_answer, &made);
    assert_true(loop_until(&loop, &made.done, 60000));
    assert_string_equal(made.text, "3");
    struct did d = {0};
    db_session_create(db, "abc", 3, 7, on_did, &d);
    assert_true(loop_until(&loop, &d.done, 60000));
    db_user_by_session(db, "abc", pg_private_on_answer, &found);
    assert_true(loop_until(&loop, &found.done, 60000));
    assert_string_equal(found.text, "3");
    struct db_user_edit off = {.admin = -1, .active = 0, .remote = -1};
    db_user_edit(db, 3, &off, NULL, pg_private_on_answer, &changed);
    assert_true(loop_until(&loop, &changed.done, 60000));
    assert_string_equal(ask("SELECT count(*) FROM user_sessions"), "0");
    assert_string_equal(
        ask("SELECT user_doc(u)->'agentUserGroup'->>'agentUid' FROM users u WHERE id = 3"), "5");
}

struct together {
    int64_t trial, run, steps;
    const char *group, *metrics;
    int rc;
};

static uint64_t splits(void)
{
    struct db_stats s;
    db_stats(db, &s);
    return s.commits_failed;
}

/* Sent in one iteration of the loop, and so in one statement. */
static void report_together(const struct together *t, size_t n)
{
    struct did d[64] = {0};
    assert_true(n <= DET_ARRAY_LEN(d));
    for (size_t i = 0; i < n; i++) {
        struct db_metrics_report r = {.trial_id = t[i].trial,
                                      .run_id = t[i].run,
                                      .steps = t[i].steps,
                                      .group = t[i].group,
                                      .metrics = t[i].metrics,
                                      .batches = i % 2 ? "[{\"loss\":1}]" : NULL,
                                      .batches_len = i % 2 ? 12 : 0,
                                      .time_us = 1700000000000000};
        db_report_metrics(db, &r, on_did, &d[i]);
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(loop_until(&loop, &d[i].done, 60000));
        assert_int_equal(d[i].rc, t[i].rc);
    }
}

#define TOGETHER(...)                                                                              \
    report_together((struct together[]){__VA_ARGS__},                                              \
                    sizeof((struct together[]){__VA_ARGS__}) / sizeof(struct together))
#define LOSS(x) "{\"avg_metrics\":{\"loss\":" #x "}}"
#define LOSS_OF(trial)                                                                             \
    "SELECT string_agg(steps || ':' || (metrics#>>'{avg_metrics,loss}'), ' ' "                     \
    "ORDER BY steps) FROM metrics WHERE trial_id = " trial " AND grp = 'training'"

static void test_together(void **state)
{
    uint64_t before = splits();
    run_sql("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, "
            "start_time) SELECT i, 1, 'r' || i, '1.r' || i, 'ACTIVE', 1, '{}', now() "
            "FROM generate_series(11, 13) i");
    TOGETHER({11, 1, 1, "training", LOSS(1), 0}, {12, 1, 1, "training", LOSS(1), 0},
             {13, 1, 1, "training", LOSS(1), 0}, {99, 1, 1, "training", LOSS(1), DET_ENOENT});
    /* 11 goes on, 12 has a repeat and its opposite between its new ones, 13 has ended */
    TOGETHER({11, 1, 2, "training", LOSS(2), 0}, {12, 1, 2, "training", LOSS(2), 0},
             {13, 2, 2, "training", LOSS(2), DET_ESTALE}, {11, 1, 3, "training", LOSS(3), 0},
             {12, 1, 2, "training", LOSS(2), 0}, {12, 1, 2, "training", LOSS(5), DET_EINVAL},
             {12, 1, 3, "training", LOSS(3), 0},
             {11, 1, 3, "validation", "{\"validation_metrics\":{\"loss\":0.5}}", 0},
             {11, 1, 4, "validation", "{\"validation_metrics\":{\"loss\":0.25}}", 0});
    assert_string_equal(ask(LOSS_OF("11")), "1:1 2:2 3:3");
    assert_string_equal(ask(LOSS_OF("12")), "1:1 2:2 3:3");
    assert_string_equal(ask(LOSS_OF("13")), "1:1");
    assert_string_equal(ask("SELECT searcher_metric_value || ' ' || (latest_validation#>>"
                            "'{metrics,avgMetrics,loss}') FROM trials WHERE id = 11"),
                        "0.25 0.25");
    assert_string_equal(ask("SELECT string_agg(coalesce(batch_metrics, '-'), ' ' ORDER BY steps) "
                            "FROM metrics WHERE trial_id = 11 AND grp = 'training'"),
                        "- - [{\"loss\":1}]");
    assert_int_equal(splits(), before); /* or each was written alone, at ten times the cost */
    /* one that cannot be kept fails alone */
    TOGETHER({11, 1, 4, "training", LOSS(4), 0}, {13, 1, 2, "training", "{", DET_EINVAL},
             {12, 1, 4, "training", LOSS(4), 0});
    assert_string_equal(ask(LOSS_OF("11")), "1:1 2:2 3:3 4:4");
    assert_string_equal(ask(LOSS_OF("12")), "1:1 2:2 3:3 4:4");
}

/* Many of one trial at once fill chunks of the usual size. */
static void test_together_chunks(void **state)
{
    struct together t[60];
    uint64_t before = splits();
    for (size_t i = 0; i < DET_ARRAY_LEN(t); i++)
        t[i] = (struct together){11, 1, 10 + (int64_t)i, "training", LOSS(7), 0};
    report_together(t, DET_ARRAY_LEN(t));
    assert_string_equal(ask("SELECT sum(n) || ' ' || max(n) FROM metric_chunks WHERE trial_id = 11 "
                            "AND grp = 'training' AND level = 1"),
                        "64 16");
    TOGETHER({11, 1, 80, "training", LOSS(8), 0}, {11, 1, 81, "training", LOSS(-1), 0});
    assert_int_equal(splits(), before);
    assert_string_equal(
        ask("SELECT trial_summary(id, summary_metrics)->'avg_metrics'->'loss' FROM trials "
            "WHERE id = 11"),
        "{\"max\": 8, \"min\": -1, \"sum\": 437, \"last\": -1, \"mean\": 6.621212121212121, "
        "\"type\": \"number\", \"count\": 66}");
}

/* What is not in a chunk yet adds to a trial's summary what its chunk adds once it is closed,
 * whatever the values are: twelve metrics that are numbers, no numbers, or now one and now the
 * other, in three tails one after the other. */
static void test_odd_tails(void **state)
{
    static const char add[] =
        "SELECT string_agg(report_metrics(12000, 1, 'training', %d + s, jsonb_build_object('avg_metrics', "
        "(SELECT jsonb_object_agg('m' || k, v[1 + (s * (k + 7) + %d + k) %% (1 + k)]) FROM "
        "(SELECT '[0.1,-2.5,\"NaN\",1e300,\"Infinity\",\"a\",7,null,[1],true,{\"a\":1},-1e300]'::jsonb j) j, "
        "LATERAL (SELECT array_agg(x) v FROM jsonb_array_elements(j) x) a, generate_series(0, 11) k)), now()), '') "
        "FROM generate_series(1, %d) s";
    char sql[1024];
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
        "VALUES (12000, 1, 'r12000', '1.r12000', 'ACTIVE', 1, '{}', now())");
    ask("SELECT metric_partitions(12000)");
    for (int i = 0; i < 3; i++) {
        snprintf(sql, sizeof sql, add, 100 * i, i, 5 + 5 * i);
        assert_string_equal(ask(sql), "");
        ask("CREATE TABLE before AS SELECT trial_summary(id, summary_metrics) s, (SELECT jsonb_object_agg(n, "
            "metric_summary(id, summary_metrics, 'training', n)) FROM (SELECT 'm' || k n FROM generate_series(0, 11) k) x) "
            "one FROM trials WHERE id = 12000");
        ask("SELECT close_chunk(12000, 'training')");
        assert_string_equal(
            ask("SELECT summary_metrics::text = s::text AND (summary_metrics->'avg_metrics')::text = one::text "
                "FROM trials, before WHERE id = 12000"),
            "t");
        ask("DROP TABLE before");
    }
    assert_string_equal(
        ask("SELECT string_agg(value->>'type', ' ' ORDER BY length(key), key) FROM trials, "
            "jsonb_each(summary_metrics->'avg_metrics') WHERE id = 12000"),
        "number number string number number string string string string string string string");
}

/* Chunks of numbers, and four of them together, are made the quick way; those with another value or
 * without one of the names are not: either gives what the rows give. */
static void test_quick_chunks(void **state)
{
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
        "VALUES (12002, 1, 'r12002', '1.r12002', 'ACTIVE', 1, '{}', now())");
    assert_string_equal(
        ask("SELECT string_agg(report_metrics(12002, 1, 'training', 10 * s, jsonb_build_object('avg_metrics', "
            "CASE s WHEN 70 THEN '{\"a\":1}'::jsonb WHEN 90 THEN '{\"a\":\"NaN\",\"b\":\"x\",\"c\":3}' "
            "ELSE jsonb_build_object('a', s * 7 % 64, 'b', -0.5, 'c', (s - 30) * 1e300::numeric) END), "
            "'2026-11-01'::timestamptz + s * interval '1.5 s'), '' ORDER BY s) FROM generate_series(1, 128) s"),
        "");
    assert_string_equal(
        ask("SELECT count(*) || ' ' || bool_and((c.doc, c.report_steps, c.report_times, c.report_values) IS NOT "
            "DISTINCT FROM (m.doc, m.report_steps, m.report_times, m.report_values)) FROM metric_chunks c, "
            "LATERAL chunk_made(trial_id, grp, after_steps, last_steps) m WHERE trial_id = 12002 AND level = 1"),
        "8 true");
    assert_string_equal(
        ask("SELECT string_agg((chunk_of_four(d) IS NULL) || ' ' || (doc = chunk_of_chunks(d || '{}'::jsonb)), ', ' "
            "ORDER BY seq) FROM (SELECT seq, doc, ARRAY(SELECT x.doc FROM metric_chunks x WHERE trial_id = 12002 "
            "AND level = 1 AND x.seq / 4 = c.seq ORDER BY x.seq) d FROM metric_chunks c WHERE trial_id = 12002 "
            "AND level = 2) y"),
        "false true, true true");
}

/* No value is too small to be reported again and again. */
static void test_least(void **state)
{
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
        "VALUES (12001, 1, 'r12001', '1.r12001', 'ACTIVE', 1, '{}', now())");
    assert_string_equal(
        ask("SELECT string_agg(report_metrics(12001, 1, 'training', s, "
            "'{\"avg_metrics\":{\"loss\":5e-324}}', now()), '') FROM generate_series(1, 20) s"),
        "");
    assert_string_equal(
        ask("SELECT trial_summary(id, summary_metrics)->'avg_metrics'->'loss'->>'mean' FROM trials "
            "WHERE id = 12001"),
        "0");
}

/* Of 40 reports two chunks are full: for few points a chart takes these, the first report and the
 * tail. */
static void test_series(void **state)
{
    static const char add[] =
        "SELECT string_agg(report_metrics(%d, 1, 'training', s, "
        "jsonb_build_object('avg_metrics', jsonb_build_object('loss', s * 7 %% 40)), "
        "to_timestamp(s)), '' ORDER BY s) FROM generate_series(1, 40) s";
    static const char few[] =
        "SELECT translate(series_lines(%d, 'training', 0, 100, 'loss', 2, true), '\n ', '|')";
    static const char all[] = "SELECT string_agg(left(x, 10), '|') FROM regexp_split_to_table("
                              "%s, '\n') x";
    char sql[512];
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
        "SELECT i, 1, 'r' || i, '1.r' || i, 'ACTIVE', 1, '{}', now() FROM unnest('{9999,20000}'::integer[]) i");
    ask("SELECT metric_partitions(20000)");
    for (int trial = 9999; trial <= 20000; trial += 10001) { /* the second in a partition made just
                                                              * now */
        snprintf(sql, sizeof sql, add, trial);
        assert_string_equal(ask(sql), "");
        snprintf(sql, sizeof sql, few, trial);
        assert_string_equal(ask(sql),
                            "[7,1,1]|[2,6,6][37,11,11]|[1,23,23][39,17,17]|[31,33,33]|[38,34,34]|"
                            "[5,35,35]|[12,36,36]|[19,37,37]|[26,38,38]|[33,39,39]|[0,40,40]");
    }
    /* The former release reads a report a line. */
    snprintf(sql, sizeof sql, all, "series_lines(9999, 'training', 15, 34, 'loss', 100, true)");
    assert_string_equal(ask(sql), "#1,2,3,4,5|#17,18,19,|[31,33,33]|[38,34,34]");
    snprintf(sql, sizeof sql, all, "series_items(9999, 'training', 31, 34, 'loss', 100)");
    assert_string_equal(ask(sql), "[17,31,31]|[24,32,32]|[31,33,33]|[38,34,34]");
}

/* At which steps an experiment has reported what, once chunks are full: what is known there already
 * changes nothing, one more number does, and what is no number does not. */
static void test_steps(void **state)
{
    static const char add[] =
        "SELECT string_agg(report_metrics(%d, 1, 'own', s, jsonb_build_object('avg_metrics', "
        "CASE %d * s WHEN 110 THEN '{\"n\":1,\"late\":2}'::jsonb WHEN 154 THEN '{\"n\":\"x\"}' "
        "WHEN 198 THEN '{\"n\":1,\"s\":\"t\"}' ELSE '{\"n\":1}' END), now()), '') "
        "FROM generate_series(1, 16) s";
    char sql[512];
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
        "SELECT i, 1, 'r' || i, '1.r' || i, 'ACTIVE', 1, '{}', now() FROM generate_series(21, 23) i");
    for (int trial = 21; trial <= 23; trial++) {
        snprintf(sql, sizeof sql, add, trial, trial);
        assert_string_equal(ask(sql), "");
    }
    assert_string_equal(
        ask("SELECT string_agg(x, ' ' ORDER BY x) FROM (SELECT count(*) || names::text || trial_id x "
            "FROM metric_steps WHERE grp = 'own' GROUP BY names, trial_id) y"),
        "15{n}21 1{late,n}22");
    assert_string_equal(
        ask("SELECT string_agg(name || trials, ' ' ORDER BY name) FROM metric_names WHERE grp = 'own'"),
        "late1 n3 s1");
}

/* A trial that comes and ends between the two parts of a snapshot is in the second. */
static void test_snapshot_between(void **state)
{
    struct pg_answer open = {0}, got = {0};
    struct db_metric_news n = {
        .exp_id = 1, .group = "between", .name = "n", .from = 1, .to = 9, .open = open.text};
    db_metric_snapshot_settled(db, &n, pg_private_on_answer, &open);
    assert_true(loop_until(&loop, &open.done, 60000));
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time) "
        "VALUES (31, 1, 'r31', '1.r31', 'ACTIVE', 1, '{}', now())");
    ask("SELECT report_metrics(31, 1, 'between', 5, '{\"avg_metrics\": {\"n\": 1}}', now())");
    ask("UPDATE trials SET state = 'COMPLETED', has_tail = false WHERE id = 31");
    db_metric_snapshot(db, &n, pg_private_on_answer, &got);
    assert_true(loop_until(&loop, &got.done, 60000));
    assert_non_null(strstr(got.text, "{\"trialId\":31,"));
    assert_null(strstr(open.text, "31"));
}

static void on_committed(void *arg, const struct db_result *r)
{
    on_did(arg, db_rc(r), db_error(r));
}

static void test_timeline(void **state)
{
    const struct row_timeline rows[] = {{1, 1, -1, "queued", 1700000000000001, 0, "1 slot", 7},
                                        {1, 1, 0, "prepared", 1700000000000002, 5000, "", 7}};
    for (size_t n = 1; n <= 2; n++) { /* the second time repeats the first row */
        struct did d = {0};
        struct db_tx *tx = db_tx_begin(db);
        db_save_timeline(tx, rows, n);
        db_tx_commit(tx, on_committed, &d);
        assert_true(loop_until(&loop, &d.done, 60000));
        assert_int_equal(d.rc, 0);
    }
    assert_string_equal(ask("SELECT string_agg(kind || '@' || at_us || '+' || duration_us || ' ' "
                            "|| detail, '; ' ORDER BY at_us) FROM trial_timeline"),
                        "queued@1700000000000001+0 1 slot; prepared@1700000000000002+5000 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_small_reports),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_wide_report),
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_snapshot_between),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_together_chunks),
        cmocka_unit_test(test_quick_chunks),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_odd_tails),
        cmocka_unit_test(test_least),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
