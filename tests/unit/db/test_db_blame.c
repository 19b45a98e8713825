/* Whose fault a failure is, and who has to bear it, against a real PostgreSQL. */
#include "db_cluster.h"
#include "mem.h"
#include "pg_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

struct got {
    bool done, is_late;
    int rc;
    enum db_blame blame;
    enum db_state state;
    int64_t i64;
};

static void on_got(void *arg, const struct db_result *r)
{
    *(struct got *)arg = (struct got){.done = true,
                                      .is_late = db_timed_out(r),
                                      .rc = db_rc(r),
                                      .blame = db_blame(r),
                                      .state = db_state(r),
                                      .i64 = db_rows(r) ? db_i64(r, 0, 0) : 0};
}

static int64_t write_wait(const char *sql)
{
    struct got g = {0};
    db_write(db, sql, NULL, on_got, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(g.rc, 0);
    return g.i64;
}

static int start(void **state)
{
    if (pg_private_open_as(&pg, &loop, (struct db_options){0}, &db) < 0)
        return -1;
    write_wait("CREATE SEQUENCE tried");
    write_wait("CREATE TABLE t (k integer)");
    return 0;
}

static int end(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

#define RAISE(code) "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '" code "'; END $$"

static void test_blame(void **state)
{
    static const struct {
        const char *sql;
        enum db_blame blame;
    } cases[] = {
        {RAISE("53200"), DB_BLAME_STRAIN},  {RAISE("58030"), DB_BLAME_STRAIN},
        {RAISE("53100"), DB_BLAME_SERVER},  {RAISE("57014"), DB_BLAME_MOMENT},
        {RAISE("57P01"), DB_BLAME_SERVER},  {RAISE("22023"), DB_BLAME_DATA},
        {RAISE("XX000"), DB_BLAME_UNKNOWN}, {"SELECT * FROM no_such_table", DB_BLAME_SCHEMA},
        {"SELECT 1", DB_BLAME_NOBODY},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct got g = {0};
        db_write(db, cases[i].sql, NULL, on_got, &g);
        assert_true(loop_until(&loop, &g.done, 60000));
        assert_int_equal(g.blame, cases[i].blame);
    }
}

/* What is decided by a code, and that its class does not swallow it. */
static void test_states(void **state)
{
    static const struct {
        const char *sql;
        enum db_state state;
        int rc;
    } cases[] = {
        {RAISE("DE001"), DB_STATE_DEPOSED, DET_EPERM},
        {RAISE("DE005"), DB_STATE_DONE, DET_EEXIST},
        {RAISE("DE004"), DB_STATE_OTHER, DET_ESTATE},
        {RAISE("23505"), DB_STATE_TAKEN, DET_EEXIST},
        {RAISE("23503"), DB_STATE_MISSING, DET_ENOENT},
        {RAISE("23514"), DB_STATE_OTHER, DET_EINVAL},
        {RAISE("P0002"), DB_STATE_NO_ROWS, DET_EIO},
        {RAISE("P0001"), DB_STATE_OTHER, DET_EIO},
        {RAISE("55P03"), DB_STATE_LOCKED, DET_EUNAVAIL},
        {RAISE("40P01"), DB_STATE_LOCKED, DET_EUNAVAIL},
        {RAISE("57014"), DB_STATE_OVERTIME, DET_EUNAVAIL},
        {RAISE("XX000"), DB_STATE_OTHER, DET_EIO},
        {"SELECT 1", DB_STATE_OTHER, 0},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct got g = {0};
        db_query(db, cases[i].sql, NULL, on_got, &g);
        assert_true(loop_until(&loop, &g.done, 60000));
        assert_int_equal(g.state, cases[i].state);
        assert_int_equal(g.rc, cases[i].rc);
    }
}

/* What took longer than it may is not tried again by itself: the others are, and written. */
static void test_late_among_others(void **state)
{
    struct got before = {0}, late = {0}, behind = {0};
    db_write(db, "INSERT INTO t VALUES (1)", NULL, on_got, &before);
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, "SELECT set_config('statement_timeout', '100', true)", NULL);
    db_tx_add(tx, "SELECT pg_sleep(20) FROM nextval('tried')", NULL);
    db_tx_commit(tx, on_got, &late);
    db_write(db, "INSERT INTO t VALUES (2)", NULL, on_got, &behind);
    assert_true(loop_until(&loop, &behind.done, 60000) && late.done && before.done);
    assert_true(late.is_late);
    assert_int_equal(before.rc, 0);
    assert_int_equal(behind.rc, 0);
    assert_int_equal(write_wait("SELECT last_value FROM tried"), 1);
    assert_int_equal(write_wait("SELECT count(*) FROM t"), 2);
}

/* A unit's own limit is that of no other, whether it fails or not. */
static void test_own_limit(void **state)
{
    for (int fails = 0; fails < 2; fails++) {
        struct got before = {0}, own = {0}, behind = {0};
        db_write(db, "SELECT pg_sleep(0.3)", NULL, on_got, &before);
        struct db_tx *tx = db_tx_begin(db);
        db_limit_statements(tx, 100);
        db_tx_add(tx, fails ? "SELECT pg_sleep(20)" : "SELECT 1", NULL);
        db_tx_commit(tx, on_got, &own);
        db_write(db, "SELECT pg_sleep(0.3)", NULL, on_got, &behind);
        assert_true(loop_until(&loop, &behind.done, 60000) && own.done && before.done);
        assert_int_equal(own.is_late, fails);
        assert_int_equal(before.rc, 0);
        assert_int_equal(behind.rc, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_late_among_others),
        cmocka_unit_test(test_own_limit),
    };
    return cmocka_run_group_tests(tests, start, end);
}
