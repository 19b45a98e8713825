/* The master stops while PostgreSQL is away or hangs: whoever waits for an answer is told, once. */
#include "db.h"
#include "pg_private.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { READS = 100 }; /* more than all connections take at a time */

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;
static int told;

struct asker {
    int times, rc;
};

static void on_told(void *arg, const struct db_result *r)
{
    struct asker *a = arg;
    a->times++;
    a->rc = db_rc(r);
    told++;
}

static bool is_down;

static void on_state(void *arg, bool up)
{
    is_down = !up;
}

static int setup(void **state)
{
    is_down = false;
    told = 0;
    return pg_private_open_as(&pg, &loop, (struct db_options){.on_state = on_state}, &db);
}

static void read_some(struct asker a[READS])
{
    for (int i = 0; i < READS; i++)
        db_query(db, "SELECT $1::bigint", db_i64_arg(DB_ARGS, i), on_told, &a[i]);
}

static void was_told(const struct asker *a, int rc)
{
    assert_int_equal(a->times, 1);
    assert_int_equal(a->rc, rc);
}

/* What tells of a request that was done waits for PostgreSQL to come back, and the master does not.
 */
static void while_it_is_away(void **state)
{
    struct asker kept[2] = {0}, write = {0}, read = {0};
    pg_private_stop(&pg);
    assert_true(loop_until(&loop, &is_down, 60000));
    for (int i = 0; i < 2; i++)
        db_query_kept(db, "SELECT $1::bigint", i, on_told, &kept[i]);
    db_write(db, "SELECT 1", NULL, on_told, &write);
    db_query(db, "SELECT 1", NULL, on_told, &read);
    while (told < 2)
        uv_run(&loop, UV_RUN_ONCE);
    was_told(&write, DET_EUNAVAIL);
    was_told(&read, DET_EUNAVAIL);
    assert_int_equal(kept[0].times + kept[1].times, 0);
    pg_private_close(&pg, &loop, db);
    was_told(&kept[0], DET_ECANCELED);
    was_told(&kept[1], DET_ECANCELED);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* Nothing that is under way or waits behind it holds up the end. */
static void while_it_hangs(void **state)
{
    struct asker reads[READS] = {0}, writes[3] = {0}, kept = {0};
    pg_private_signal(&pg, SIGSTOP);
    read_some(reads);
    db_query_kept(db, "SELECT $1::bigint", 7, on_told, &kept);
    for (int i = 0; i < 3; i++)
        db_write(db, "SELECT 1", NULL, on_told, &writes[i]);
    assert_int_equal(told, 0); /* never from inside */
    bool closed = false;
    db_close(db, on_closed, &closed);
    assert_true(loop_until(&loop, &closed, 60000));
    pg_private_signal(&pg, SIGCONT);
    assert_int_equal(uv_loop_close(&loop), 0);
    for (int i = 0; i < READS; i++)
        assert_true(reads[i].times == 1 && reads[i].rc < 0);
    for (int i = 0; i < 3; i++)
        was_told(&writes[i], DET_ECANCELED);
    assert_true(kept.times == 1 && kept.rc < 0);
    pg_private_stop(&pg);
    pg_private_down(&pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(while_it_is_away, setup),
        cmocka_unit_test_setup(while_it_hangs, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
