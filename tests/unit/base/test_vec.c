/* Places in a vector that is in order. */
#include "vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

static void test_bound(void **state)
{
    VEC(int) v = {0};
    for (int n = 0; n < 40; n++) { /* 1 3 5 ... */
        for (int want = 0; want <= 2 * n + 1; want++)
            assert_int_equal(vec_bound(&v, e, *e < want), want / 2);
        vec_push(&v, 2 * n + 1);
    }
    vec_free(&v);
}

static void test_bound_of_equals(void **state)
{
    VEC(int) v = {0};
    for (int i = 0; i < 9; i++)
        vec_push(&v, i / 3);
    assert_int_equal(vec_bound(&v, e, *e < 1), 3);
    assert_int_equal(vec_bound(&v, e, *e <= 1), 6);
    assert_int_equal(vec_bound(&v, e, *e <= 2), 9);
    vec_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_bound_of_equals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
