/* Which bucket a duration falls into. */
#include "hist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_buckets(void **state)
{
    struct hist h = {0};
    hist_add(&h, -5);
    hist_add(&h, 100);
    hist_add(&h, 101);
    hist_add(&h, 3600000001);
    assert_int_equal(h.n[0], 2);
    assert_int_equal(h.n[1], 1);
    assert_int_equal(h.n[HIST_BOUNDS], 1);
    assert_int_equal(h.count, 4);
    assert_true(h.sum_s > 3600.0001 && h.sum_s < 3600.001);
    for (int i = 1; i < HIST_BOUNDS; i++)
        assert_true(hist_bounds_us[i - 1] < hist_bounds_us[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_buckets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
