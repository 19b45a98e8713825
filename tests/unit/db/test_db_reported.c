/* Which runs of trials have reported (db_reported.h). */
#include "db_reported.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void the_first_of_a_run(void **state)
{
    (void)state;
    static struct db_reported r;
    assert_false(db_reported_has(&r, 7, 0, 100));
    db_reported_note(&r, 7, 0, 100);
    assert_true(db_reported_has(&r, 7, 0, 100) && db_reported_has(&r, 7, 0, 101));
    assert_false(db_reported_has(&r, 7, 1, 200)); /* the next run */
    assert_false(db_reported_has(&r, 8, 0, 100)); /* another trial */
    db_reported_note(&r, 7, 1, 200);
    assert_true(db_reported_has(&r, 7, 1, 200));
    assert_false(db_reported_has(&r, 7, 0, 100));
}

/* Fewer steps than before may take back more. */
static void of_fewer_steps(void **state)
{
    (void)state;
    static struct db_reported r;
    db_reported_note(&r, 7, 3, 100);
    assert_false(db_reported_has(&r, 7, 3, 99));
    db_reported_note(&r, 7, 3, 50);
    db_reported_note(&r, 7, 3, 80);
    assert_true(db_reported_has(&r, 7, 3, 50));
    assert_false(db_reported_has(&r, 7, 3, 49));
}

/* Of two that share a place the later one is known. */
static void of_one_place(void **state)
{
    (void)state;
    static struct db_reported r;
    db_reported_note(&r, 7, 0, 100);
    db_reported_note(&r, 7 + DB_REPORTED_PLACES, 0, 100);
    assert_true(db_reported_has(&r, 7 + DB_REPORTED_PLACES, 0, 100));
    assert_false(db_reported_has(&r, 7, 0, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_a_run),
        cmocka_unit_test(of_fewer_steps),
        cmocka_unit_test(of_one_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
