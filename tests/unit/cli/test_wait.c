/* How often `det experiment wait` asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "experiment.h"

static void asks_every_so_many_seconds(void **state)
{
    assert_int_equal(wait_pause(1).tv_sec, 1);
    assert_int_equal(wait_pause(3600).tv_sec, 3600);
    assert_int_equal(wait_pause(3600).tv_nsec, 0);
}

static void asks_often_where_nothing_is_said(void **state)
{
    assert_int_equal(wait_pause(0).tv_sec, 0);
    assert_in_range(wait_pause(0).tv_nsec, 1, 999999999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_every_so_many_seconds),
        cmocka_unit_test(asks_often_where_nothing_is_said),
    };
    return cmocka_run_group_tests_name("wait", tests, NULL, NULL);
}
