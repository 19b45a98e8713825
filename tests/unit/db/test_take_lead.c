/* Two masters find no leader at the same moment: one leads, and the other does it no harm. */
#include "db.h"
#include "pg_private.h"

#include <libpq-fe.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct pg_private pg;

static int setup(void **state)
{
    struct det_err err;
    return pg_private_start(&pg) < 0 || db_migrate(pg.uri, &err) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    pg_private_stop(&pg);
    pg_private_down(&pg);
    return 0;
}

static long ask(PGconn *c, const char *sql)
{
    return strtol(pg_private_ask(c, sql), NULL, 10);
}

static void test_both_at_once(void **state)
{
    PGconn *one = PQconnectdb(pg.uri), *other = PQconnectdb(pg.uri);
    ask(one, "BEGIN");
    assert_int_equal(ask(one, "SELECT take_lead(0, 'http://one')"), 1);
    assert_int_equal(ask(other, "SELECT take_lead(0, 'http://other')"), 0);
    ask(one, "COMMIT");
    assert_int_equal(ask(other, "SELECT take_lead(0, 'http://other')"), 0);
    assert_int_equal(ask(one, "SELECT count(*) FROM leader WHERE url = 'http://one'"), 1);
    assert_int_equal(ask(other, "SELECT take_lead(1, 'http://other')"), 2); /* later it may */
    PQfinish(one);
    PQfinish(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_at_once)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
