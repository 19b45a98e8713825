#include "clockdiff.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S INT64_C(1000000)

/* What an exchange at `at` shows of a clock that is ahead by that: on the way there, taken, on the
 * way back. */
static struct clockdiff shown(int64_t ahead_us, int64_t there_us, int64_t taken_us, int64_t back_us)
{
    int64_t at = 1000000 * S, got = at + there_us, answered = got + taken_us;
    return clockdiff_of(at + ahead_us, got, answered, answered + back_us + ahead_us);
}

static void test_bounds_hold(void **state)
{
    static const int64_t aheads[] = {-2 * 86400 * S, -3 * S, -1, 0, 1, 3 * S, 2 * 86400 * S};
    static const int64_t delays[] = {0, 300, 5 * S, 100 * S};
    for (size_t i = 0; i < DET_ARRAY_LEN(aheads) * 64; i++) {
        int64_t ahead = aheads[i / 64];
        struct clockdiff d = shown(ahead, delays[i % 4], delays[i / 4 % 4], delays[i / 16 % 4]);
        assert_true(d.least_us <= ahead && ahead <= d.most_us);
        assert_int_equal(d.most_us - d.least_us, delays[i % 4] + delays[i / 16 % 4]);
    }
}

static void test_apart(void **state)
{
    struct clockdiff d = shown(2 * 86400 * S, 1000, 0, 3000);
    assert_true(clockdiff_is_apart(&d, false));
    assert_float_equal(clockdiff_s(&d), 172800, 1e-9);
    d = shown(-3 * S, 1000, 5 * S, 1000); /* the master took its time, and says so */
    assert_true(clockdiff_is_apart(&d, false));
    assert_float_equal(clockdiff_s(&d), -3, 1e-9);
    d = shown(S, 1000, 0, 1000);
    assert_false(clockdiff_is_apart(&d, false));
    assert_false(clockdiff_is_apart(&d, true));
}

/* A slow exchange neither begins nor ends anything. */
static void test_slow(void **state)
{
    struct clockdiff d = shown(0, 100 * S, 0, 0);
    assert_false(clockdiff_is_apart(&d, false));
    assert_true(clockdiff_is_apart(&d, true));
    d = shown(200 * S, 100 * S, 0, 0);
    assert_true(clockdiff_is_apart(&d, false));
}

/* Set back by an hour between the two: whatever is said is of an ordered pair. */
static void test_set_meanwhile(void **state)
{
    struct clockdiff d = clockdiff_of(7200 * S, 7200 * S, 7200 * S, 3600 * S);
    assert_true(d.least_us <= d.most_us);
    d = clockdiff_of(0, INT64_MAX / 2, INT64_MAX / 2, 0);
    assert_true(clockdiff_is_apart(&d, false) && clockdiff_s(&d) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_hold),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_set_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
