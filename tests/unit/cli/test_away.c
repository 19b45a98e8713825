/* How long a master that does not answer is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "away.h"

static const struct det_err refused = {.code = DET_EUNAVAIL}, slow = {.code = DET_ETIMEOUT},
                            absent = {.code = DET_ENOENT};

static void one_that_never_answered_is_not_there(void **state)
{
    struct away a = {0};
    assert_false(away_is_borne(&a, &refused, 1, 1));
}

static void one_that_did_is_asked_again(void **state)
{
    struct away a = {0};
    assert_false(away_answered(&a));
    assert_true(away_is_borne(&a, &refused, 1000, 61000)); /* a call that took a minute */
    assert_int_equal(a.since_ms, 1000);
    assert_true(away_is_borne(&a, &slow, 1000 + AWAY_MAX_MS - 1, 1000 + AWAY_MAX_MS - 1));
    assert_false(away_is_borne(&a, &refused, 1000 + AWAY_MAX_MS, 1000 + AWAY_MAX_MS));
}

static void each_absence_counts_anew(void **state)
{
    struct away a = {.was_there = true};
    assert_true(away_is_borne(&a, &refused, 1000, 1000));
    assert_true(away_answered(&a));
    assert_false(away_answered(&a));
    assert_true(away_is_borne(&a, &refused, 1000 + AWAY_MAX_MS, 1000 + AWAY_MAX_MS));
    assert_int_equal(a.since_ms, 1000 + AWAY_MAX_MS);
}

static void what_it_refuses_is_no_absence(void **state)
{
    struct away a = {.was_there = true};
    assert_false(away_is_borne(&a, &absent, 1000, 1000));
    assert_int_equal(a.since_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_never_answered_is_not_there),
        cmocka_unit_test(one_that_did_is_asked_again),
        cmocka_unit_test(each_absence_counts_anew),
        cmocka_unit_test(what_it_refuses_is_no_absence),
    };
    return cmocka_run_group_tests_name("away", tests, NULL, NULL);
}
