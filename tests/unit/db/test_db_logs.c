/* Marks in logs: whatever lines have some, a log read by time is as a look at each line tells. */
#include "buf.h"
#include "db_log_read.h"
#include "db_logs.h"
#include "db_retention.h"
#include "db_rows.h"
#include "mem.h"
#include "pg_private.h"
#include "rng.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;
static struct mt19937 rng;

static struct got {
    bool done;
    struct buf ids; /* first columns, by ' ' */
} got;

static void on_rows(void *arg, const struct db_result *r)
{
    got.done = true;
    if (db_rc(r) < 0)
        buf_add_str(&got.ids, db_error(r)->text);
    for (int i = 0; db_rc(r) == 0 && i < db_rows(r); i++)
        buf_addf(&got.ids, "%s%s", i ? " " : "", db_text(r, i, 0));
}

static const char *wait(void)
{
    assert_true(loop_until(&loop, &got.done, 60000));
    return buf_str(&got.ids);
}

static const char *ask(const char *sql)
{
    got.done = false;
    buf_clear(&got.ids);
    db_query(db, sql, NULL, on_rows, NULL);
    return wait();
}

static void does(const char *sql)
{
    got.done = false;
    buf_clear(&got.ids);
    db_write(db, sql, NULL, on_rows, NULL);
    assert_string_equal(wait(), "");
}

static int start(void **state)
{
    mt19937_seed(&rng, 7);
    return pg_private_open(&pg, &loop, &db);
}

static int end(void **state)
{
    buf_finish(&got.ids);
    pg_private_close(&pg, &loop, db);
    return 0;
}

#define BASE_S 1735689600 /* 2025-01-01 */
#define SPAN_S 4000

/* Lines of two tasks in turn, as of clocks that are ahead or behind now and then. */
static void lines(int from, int upto)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "INSERT INTO task_logs (task_id, rank_id, time, log) SELECT "
             "'t' || (hashint4(i) & 1), i %% 4, to_timestamp(%d) + interval '1 s' * "
             "(i / 9 + CASE WHEN i %% 997 < 9 THEN 400 WHEN i %% 889 < 9 THEN -300 ELSE 0 END), "
             "'x' FROM generate_series(%d, %d) i",
             BASE_S, from, upto);
    does(sql);
}

/* At a line's time, just before or after it, or none. */
static int64_t draw_time(void)
{
    int64_t s = BASE_S - 500 + (int64_t)mt19937_bounded(&rng, SPAN_S + 1000);
    return mt19937_bounded(&rng, 3) ? s * 1000000 + (int64_t)mt19937_bounded(&rng, 2) - 1 : 0;
}

static char *plain(const struct db_log_filter *f, int64_t beyond, int64_t n)
{
    char sql[1024];
    snprintf(
        sql, sizeof sql,
        "SELECT id FROM task_logs WHERE task_id = '%s' AND (%lld = 0 OR time <= "
        "'epoch'::timestamptz "
        "+ %lld * interval '1 us') AND (%lld = 0 OR time > 'epoch'::timestamptz + %lld * interval "
        "'1 us') AND (%s OR rank_id = 3) AND (%lld = 0 OR id %c %lld) ORDER BY id %s LIMIT %lld",
        f->task_id, (long long)f->before_us, (long long)f->before_us, (long long)f->after_us,
        (long long)f->after_us, f->rank_ids ? "false" : "true", (long long)beyond,
        f->desc ? '<' : '>', (long long)beyond, f->desc ? "DESC" : "ASC", (long long)n);
    return det_strdup(ask(sql));
}

static void as_plain(const char *task_id, int times)
{
    for (int i = 0; i < times; i++) {
        struct db_log_filter f = {.task_id = task_id,
                                  .rank_ids = mt19937_bounded(&rng, 2) ? NULL : "[3]",
                                  .before_us = draw_time(),
                                  .after_us = draw_time(),
                                  .desc = mt19937_bounded(&rng, 1)};
        int64_t beyond = mt19937_bounded(&rng, 1) ? (int64_t)mt19937_bounded(&rng, 30000) : 0;
        int64_t n = mt19937_bounded(&rng, 1) ? 1 : 200;
        char *wanted = plain(&f, beyond, n);
        got.done = false;
        buf_clear(&got.ids);
        db_log_read(db, &f, beyond, n, on_rows, NULL);
        assert_string_equal(wait(), wanted);
        free(wanted);
    }
}

static void all_as_plain(void)
{
    as_plain("t0", 12);
    as_plain("t1", 12);
    as_plain("none", 2);
}

/* The lines read in vain, from where the marks say to the first after a time, or to the last before
 * it: some, but of one mark at most. */
#define VAIN(first, order, between)                                                                \
    "SELECT max((SELECT count(*) FROM task_logs WHERE task_id = 't1' AND " between ")) "           \
    "BETWEEN 100 AND 2000 FROM "                                                                   \
    "(SELECT to_timestamp(1735689600 + 57 * g) t FROM generate_series(0, 70) g) x, "               \
    "LATERAL (SELECT log_since('t1', t, 0) since, log_upto('t1', t, 0) upto OFFSET 0) m, "         \
    "LATERAL (SELECT id FROM task_logs WHERE task_id = 't1' AND time " first                       \
    " t ORDER BY id " order " LIMIT 1) l"
#define VAIN_UP   VAIN(">", "ASC", "id > since AND id < l.id")
#define VAIN_DOWN VAIN("<=", "DESC", "id <= upto AND id > l.id")

static void test_any_marks(void **state)
{
    does("ALTER TABLE task_logs DISABLE TRIGGER task_logs_marked");
    lines(1, 9000); /* as of a release without marks */
    all_as_plain();
    does("ALTER TABLE task_logs ENABLE TRIGGER task_logs_marked");
    for (int i = 9001; i < 24000; i += 1000)
        lines(i, i + 999);
    assert_string_equal(ask("SELECT count(*) > 6 FROM log_marks"), "t");
    all_as_plain();
    does("DELETE FROM task_logs WHERE id < 2000 OR id % 5 = 0 OR id BETWEEN 8000 AND 14000");
    all_as_plain();
    does("DELETE FROM log_marks WHERE task_id = 't1'");
    all_as_plain();
    lines(24001, 30000);
    all_as_plain();
}

static void test_old_log(void **state)
{
    does("DELETE FROM log_marks WHERE task_id = 't1'");
    assert_string_equal(ask("SELECT log_lags('t1')"), "t");
    db_logs_mark(db, "t1");
    for (int i = 0; i < 1000 && strcmp(ask("SELECT log_lags('t1')"), "f") != 0; i++)
        ;
    assert_string_equal(ask("SELECT log_lags('t1')"), "f");
    db_logs_mark(db, "t1");
    db_logs_mark(db, "none");
    all_as_plain();
    assert_string_equal(ask(VAIN_UP), "t");
    assert_string_equal(ask(VAIN_DOWN), "t");
}

/* They go with a log's lines, and come again with new ones. */
static void test_gone(void **state)
{
    does("INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, labels, config, "
         "original_config) VALUES (1, 'j', 1, 'COMPLETED', now(), 'x', '[]', '{}', '')");
    does("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, "
         "start_time, end_time) VALUES (1, 1, 'r', 't1', 'COMPLETED', 1, '{}', now(), now())");
    struct db_retention_portion p = {.kind = RETENTION_LOGS, .trial_id = 1, .rows = 3000};
    got.done = false;
    buf_clear(&got.ids);
    db_retention_delete(db, &p, on_rows, NULL);
    assert_string_equal(wait(), "");
    assert_string_equal(ask("SELECT count(*) FROM log_marks WHERE task_id = 't1'"), "0");
    assert_string_equal(ask("SELECT count(*) > 0 FROM log_marks"), "t");
    all_as_plain();
    lines(30001, 33000);
    assert_string_equal(ask("SELECT count(*) > 0 FROM log_marks WHERE task_id = 't1'"), "t");
    all_as_plain();
    struct db_tx *tx = db_tx_begin(db);
    db_delete_experiment(tx, 1);
    got.done = false;
    buf_clear(&got.ids);
    db_tx_commit(tx, on_rows, NULL);
    assert_string_equal(wait(), "");
    assert_string_equal(ask("SELECT task_id FROM log_marks UNION SELECT task_id FROM task_logs"),
                        "t0");
}

/* What a session writes that is not done comes to lie before what others have written since. */
static void test_not_done(void **state)
{
    PGconn *other = PQconnectdb(pg.uri);
    PQclear(PQexec(other, "BEGIN; INSERT INTO task_logs (task_id, time, log) SELECT 't1', "
                          "to_timestamp(1735689600 + i), 'x' "
                          "FROM generate_series(1, 50) i"));
    assert_int_equal(PQtransactionStatus(other), PQTRANS_INTRANS);
    lines(33001, 43000);
    db_logs_mark(db, "t1");
    assert_string_equal(ask("SELECT mark_old_log('t1')"), "f");
    assert_string_equal(ask("SELECT count(*) FROM log_marks WHERE task_id = 't1'"), "0");
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    lines(43001, 47000);
    assert_string_equal(ask("SELECT count(*) > 0 FROM log_marks WHERE task_id = 't1'"), "t");
    all_as_plain();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_marks),
        cmocka_unit_test(test_old_log),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_not_done),
    };
    return cmocka_run_group_tests(tests, start, end);
}
