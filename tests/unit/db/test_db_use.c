/* Slot use: what is kept of a run when it ends, and its sums by day and month of UTC. */
#include "buf.h"
#include "db_task_read.h"
#include "pg_private.h"

#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;
static PGconn *conn; /* in a zone whose days are not all of one length */

static struct got {
    bool done;
    struct buf rows; /* columns by '|', rows by ' ' */
} got;

static void on_rows(void *arg, const struct db_result *r)
{
    int columns = *(int *)arg;
    got.done = true;
    if (db_rc(r) < 0)
        buf_add_str(&got.rows, db_error(r)->text);
    for (int i = 0; db_rc(r) == 0 && i < db_rows(r); i++)
        for (int k = 0; k < columns; k++)
            buf_addf(&got.rows, "%s%s", k ? "|" : i ? " " : "", db_text(r, i, k));
}

static const char *wait(void)
{
    assert_true(loop_until(&loop, &got.done, 60000));
    return buf_str(&got.rows);
}

/* Rows are written behind the master's back here: after a write of its own no answer is a recent
 * one. */
static void write_something(void)
{
    static int columns;
    got.done = false;
    db_write(db, "SELECT 1", NULL, on_rows, &columns);
    wait();
}

static const char *sums(const char *from, const char *until, bool by_month)
{
    static int columns = USE_SECONDS + 1;
    write_something();
    got.done = false;
    buf_clear(&got.rows);
    db_use_sums(db, from, until, by_month, 1000, on_rows, &columns);
    return wait();
}

/* Of 2026. */
static const char *runs(int64_t max)
{
    static int columns = USE_RUN_WORKSPACE + 1;
    write_something();
    got.done = false;
    buf_clear(&got.rows);
    db_use_runs(db, 1767225600000000, 1798761600000000, max, on_rows, &columns);
    return wait();
}

static const char *ask(const char *sql)
{
    return pg_private_ask(conn, sql);
}

#define EXPERIMENT(id, labels)                                                                     \
    "INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, labels, config, "     \
    "original_config) VALUES (" id ", 'j" id "', 1, 'ACTIVE', now(), 'x', '" labels "', '{}', '')"
/* placed and ended: as SQL has them. */
#define ALLOCATION(id, exp, state, slots, placed, ended)                                           \
    "INSERT INTO allocations (id, task_id, experiment_id, run_id, state, slots, resource_pool, "   \
    "start_time, placed_time, end_time) VALUES ('" id "', 't', " exp ", 1, '" state "', " slots    \
    ", 'gpu', '2026-01-01 00:00+00', " placed ", " ended ")"
#define ENDS(id, ended)                                                                            \
    "UPDATE allocations SET state = 'TERMINATED', end_time = " ended " WHERE id = '" id "'"

static int start(void **state)
{
    if (pg_private_open(&pg, &loop, &db) < 0)
        return -1;
    conn = PQconnectdb(pg.uri);
    ask("SET timezone = 'Europe/Berlin'");
    ask("UPDATE users SET username = 'ann' WHERE id = 1");
    ask(EXPERIMENT("1", "[\"fast\", \"small\"]"));
    ask(EXPERIMENT("2", "[]"));
    return 0;
}

static int end(void **state)
{
    PQfinish(conn);
    buf_finish(&got.rows);
    pg_private_close(&pg, &loop, db);
    return 0;
}

static void check_days(const char *from, const char *until, const char *first, const char *beyond,
                       const char *want)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "SELECT coalesce(string_agg(day || '=' || seconds, ' ' ORDER BY day), '') FROM "
             "use_by_day('%s+00', '%s+00', '%s', '%s')",
             from, until, first, beyond);
    assert_string_equal(ask(sql), want);
}

static void test_days(void **state)
{
    /* over the day that has 23 hours in this session's zone */
    const char *from = "2026-03-28 22:00", *until = "2026-03-30 01:30";
    check_days(from, until, "2026-03-01", "2026-04-01",
               "2026-03-28=7200 2026-03-29=86400 2026-03-30=5400");
    check_days(from, until, "2026-03-29", "2026-03-30", "2026-03-29=86400");
    check_days(from, until, "2026-03-30", "2026-04-01", "2026-03-30=5400");
    check_days(from, until, "2026-03-01", "2026-03-28", "");
    check_days(from, until, "2026-03-31", "2026-04-01", "");
    check_days("2026-01-31 23:00", "2026-02-01 00:00", "2026-01-01", "2027-01-01",
               "2026-01-31=3600");
    check_days("2026-01-31 00:00", "2026-02-01 00:00", "2026-01-01", "2027-01-01",
               "2026-01-31=86400");
    check_days("2028-02-29 12:00", "2028-02-29 12:00:00.25", "2028-01-01", "2029-01-01",
               "2028-02-29=0.25");
    check_days("2026-01-31 12:00", "2026-01-31 12:00", "2026-01-01", "2027-01-01", "");
    check_days("2026-01-31 12:00", "2026-01-31 11:00", "2026-01-01", "2027-01-01",
               ""); /* a clock went back */
}

#define LAST_OF_JANUARY                                                                            \
    "2026-01-31|experiment_label|fast|7200 2026-01-31|experiment_label|small|7200 "                \
    "2026-01-31|resource_pool|gpu|7200 2026-01-31|total||7200 2026-01-31|username|ann|7200 "       \
    "2026-01-31|workspace|Uncategorized|7200"

/* A master of the former release leads beside a newer standby: only its timeline tells. A label
 * that is there twice counts once. */
static void test_former_master(void **state)
{
    ask("UPDATE experiments SET labels = '[\"x\", \"x\"]' WHERE id = 2");
    ask(ALLOCATION("2.g.1", "2", "PENDING", "2", "NULL", "NULL"));
    ask("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, "
        "start_time) VALUES (7, 2, 'g', '2.g', 'ACTIVE', 1, '{}', now())");
    ask("INSERT INTO trial_timeline (trial_id, run_id, node, kind, at_us, duration_us, detail) "
        "SELECT 7, 1, -1, 'placed', "
        "extract(epoch FROM '2025-12-31 23:00+00'::timestamptz) * 1e6, 0, ''");
    ask("UPDATE allocations SET state = 'RUNNING', trial_id = 7 WHERE id = '2.g.1'");
    ask(ENDS("2.g.1", "'2025-12-31 23:30+00'"));
    assert_string_equal(sums("2025-12-01", "2026-01-01", true),
                        "2025-12|experiment_label|x|3600 2025-12|resource_pool|gpu|3600 "
                        "2025-12|total||3600 2025-12|username|ann|3600 "
                        "2025-12|workspace|Uncategorized|3600");
    ask("DELETE FROM allocations");
    ask("DELETE FROM slot_uses");
    ask("DELETE FROM slot_use_days");
    ask("UPDATE experiments SET labels = '[]' WHERE id = 2");
}

/* Once, when it ends; and it is there when its experiment is not. */
static void test_kept(void **state)
{
    ask(ALLOCATION("1.a.1", "1", "PENDING", "2", "NULL", "NULL"));
    ask("UPDATE allocations SET state = 'ASSIGNED', placed_time = '2026-01-31 23:00+00'");
    ask("UPDATE allocations SET state = 'RUNNING', placed_time = '2026-01-31 23:00+00', end_time = "
        "NULL");
    assert_string_equal(ask("SELECT count(*) FROM slot_uses"), "0");
    ask(ENDS("1.a.1", "'2026-02-01 01:00+00'"));
    ask(ENDS("1.a.1", "'2026-02-02 01:00+00'"));
    assert_string_equal(sums("2026-01-31", "2026-02-01", false), LAST_OF_JANUARY);
    assert_string_equal(runs(10),
                        "TRIAL|2026-01-31T23:00:00.000000Z|2026-02-01T01:00:00.000000Z|1|ann|1|"
                        "[\"fast\", \"small\"]|7200|2|1.a.1|gpu|Uncategorized");
    ask("DELETE FROM experiments WHERE id = 1");
    assert_string_equal(ask("SELECT count(*) FROM allocations"), "0");
    assert_string_equal(sums("2026-01-31", "2026-02-01", false), LAST_OF_JANUARY);
    assert_string_equal(sums("2026-02-02", "2026-03-01", false), "");
}

static void test_not_kept(void **state)
{
    ask(ALLOCATION("2.a.1", "2", "PENDING", "2", "NULL", "NULL"));
    ask(ENDS("2.a.1", "'2026-01-31 23:00+00'")); /* it had none yet */
    ask(ALLOCATION("2.b.1", "2", "RUNNING", "0", "'2026-01-31 01:00+00'", "NULL"));
    ask(ENDS("2.b.1", "'2026-01-31 23:00+00'")); /* a collection */
    assert_string_equal(ask("SELECT count(*) FROM slot_uses"), "1");
}

static void test_months(void **state)
{
    ask(ALLOCATION("2.c.1", "2", "TERMINATED", "1", "'2026-02-10 00:00+00'",
                   "'2026-02-10 00:30+00'"));
    assert_string_equal(sums("2026-01-01", "2026-03-01", true),
                        "2026-01|experiment_label|fast|7200 2026-01|experiment_label|small|7200 "
                        "2026-01|resource_pool|gpu|7200 2026-01|total||7200 "
                        "2026-01|username|ann|7200 2026-01|workspace|Uncategorized|7200 "
                        "2026-02|experiment_label|fast|7200 2026-02|experiment_label|small|7200 "
                        "2026-02|resource_pool|gpu|9000 2026-02|total||9000 "
                        "2026-02|username|ann|9000 2026-02|workspace|Uncategorized|9000");
    runs(1);
    assert_null(strstr(buf_str(&got.rows), "2.c.1"));
    ask("UPDATE slot_uses SET workspace_id = 77 WHERE allocation_id = '2.c.1'");
    ask("UPDATE slot_use_days SET workspace_id = 77 WHERE day = '2026-02-10'");
    assert_non_null(strstr(runs(10), "workspace 77, deleted"));
    assert_non_null(
        strstr(sums("2026-02-10", "2026-02-11", false), "|workspace|workspace 77, deleted|1800"));
}

/* What runs counts up to now, and has no end. */
static void test_running(void **state)
{
    char from[16], until[16];
    ask(ALLOCATION("2.d.1", "2", "RUNNING", "3", "now() - interval '2 days'", "NULL"));
    snprintf(from, sizeof from, "%s", ask("SELECT ((now() AT TIME ZONE 'UTC')::date - 1)::text"));
    snprintf(until, sizeof until, "%s", ask("SELECT ((now() AT TIME ZONE 'UTC')::date)::text"));
    char want[64];
    snprintf(want, sizeof want, "%s|total||259200", from); /* yesterday, whole, three slots */
    assert_non_null(strstr(sums(from, until, false), want));
    static int columns = USE_RUN_END + 1;
    got.done = false;
    buf_clear(&got.rows);
    db_use_runs(db, 1798761600000000 - (int64_t)365 * 86400 * 1000000, INT64_C(4102444800000000),
                10, on_rows, &columns);
    const char *text = wait(), *last = strrchr(text, '|');
    assert_string_equal(last, "|");
}

static void on_written(void *arg, const struct db_result *r)
{
    assert_int_equal(db_rc(r), 0);
    *(int64_t *)arg = db_affected(r);
    got.done = true;
}

/* Runs go by their age, what they had stays in the sums. */
static void test_forgotten(void **state)
{
    char was[1024];
    ask(ALLOCATION("2.e.1", "2", "TERMINATED", "1", "'2020-05-01 23:00+00'",
                   "'2020-05-02 01:00+00'"));
    snprintf(was, sizeof was, "%s", sums("2020-05-01", "2020-05-03", false));
    assert_non_null(strstr(was, "2020-05-01|total||3600"));
    assert_non_null(strstr(was, "2020-05-02|total||3600"));
    for (int64_t want = 1, n = -1; want >= 0; want--) {
        got.done = false;
        db_use_forget(db, 2000, on_written, &n);
        assert_true(loop_until(&loop, &got.done, 60000));
        assert_int_equal(n, want);
    }
    assert_string_equal(ask("SELECT count(*) FROM slot_uses WHERE allocation_id = '2.e.1'"), "0");
    assert_string_equal(sums("2020-05-01", "2020-05-03", false), was);
}

/* No index has the labels themselves: they are not too many for it. */
static void test_many_labels(void **state)
{
    ask("UPDATE experiments SET labels = (SELECT jsonb_agg(md5(i::text)) "
        "FROM generate_series(1, 1000) i) WHERE id = 2");
    ask(ALLOCATION("2.f.1", "2", "TERMINATED", "1", "'2020-06-01 00:00+00'",
                   "'2020-06-01 01:00+00'"));
    ask(ALLOCATION("2.f.2", "2", "TERMINATED", "1", "'2020-06-01 01:00+00'",
                   "'2020-06-01 02:00+00'"));
    assert_string_equal(
        ask("SELECT count(*) || ' ' || sum(slot_seconds) FROM slot_use_days WHERE day "
            "= '2020-06-01'"),
        "1 7200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days),      cmocka_unit_test(test_former_master),
        cmocka_unit_test(test_kept),      cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_months),    cmocka_unit_test(test_running),
        cmocka_unit_test(test_forgotten), cmocka_unit_test(test_many_labels),
    };
    return cmocka_run_group_tests(tests, start, end);
}
