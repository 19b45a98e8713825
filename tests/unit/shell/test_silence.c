/* Trials that run elsewhere are not given up for what nobody could hear: an absent database. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "db.h"
#include "db_impl.h"
#include "db_unmanaged.h"
#include "masterconf.h"
#include "shell.h"
#include "silence.h"

#include <libpq-fe.h>

enum { TIMEOUT_MS = 5000, TENTH_MS = 500 };

static bool is_up;
static int says; /* what the database says of a look */
static unsigned looks;

bool __wrap_db_is_up(const struct db *db);
bool __wrap_db_is_up(const struct db *db)
{
    return is_up;
}

void __wrap_db_unmanaged_silent(struct db *db, int64_t silent_s, db_cb *cb, void *arg);
void __wrap_db_unmanaged_silent(struct db *db, int64_t silent_s, db_cb *cb, void *arg)
{
    PGresAttDesc count = {.name = (char *)"n"};
    PGresult *none = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    assert_true(PQsetResultAttrs(none, 1, &count) && PQsetvalue(none, 0, 0, (char *)"0", 1));
    looks++;
    cb(arg, &(struct db_result){.rc = says, .pg = none});
    PQclear(none);
}

/* Nobody waits: the clock is the test. */
static uv_timer_t *timer;
static uv_timer_cb on_time;
static uint64_t due_ms;

int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb cb, uint64_t ms, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb cb, uint64_t ms, uint64_t repeat)
{
    timer = t;
    on_time = cb;
    due_ms = ms;
    return 0;
}

/* For how long it is set after it has fired. */
static uint64_t fire(void)
{
    on_time(timer);
    return due_ms;
}

static void an_outage_is_no_silence(void **state)
{
    uv_loop_t loop;
    struct masterconf conf = {.unmanaged_timeout_ms = TIMEOUT_MS};
    struct shell sh = {.conf = &conf, .loop = &loop};
    assert_int_equal(uv_loop_init(&loop), 0);
    struct silence *s = silence_create(&sh);
    assert_int_equal(due_ms, TIMEOUT_MS);
    is_up = true;
    assert_int_equal(fire(), TENTH_MS);
    assert_int_equal(looks, 1);
    says = DET_EUNAVAIL; /* it went away meanwhile */
    assert_int_equal(fire(), TENTH_MS);
    assert_int_equal(looks, 2);
    is_up = false;
    assert_int_equal(fire(), TENTH_MS);
    assert_int_equal(looks, 2);
    is_up = true; /* from here they have their whole time */
    says = 0;
    assert_int_equal(fire(), TIMEOUT_MS);
    assert_int_equal(looks, 2);
    assert_int_equal(fire(), TENTH_MS);
    assert_int_equal(looks, 3);
    silence_destroy(s);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_outage_is_no_silence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
