#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
static void test_distance(void **state)
{
    assert_int_equal(near_distance("kitten", "sitting"), 3);
    assert_int_equal(near_distance("", "abc"), 3);
    assert_int_equal(near_distance("Same", "same"), 0);
    assert_int_equal(near_distance("modle", "moDel"), 1);
    assert_int_equal(near_distance("abcd", "badc"), 2);
    assert_true(near_distance("0123456789012345678901234567890123456789012345678901234567890123456",
                              "a") == SIZE_MAX);
}

static void test_name(void **state)
{
    static const char *const names[] = {"searcher", "resources", "max_restarts"};
    assert_string_equal(near_name("seacher", names, 3), "searcher");
    assert_string_equal(near_name("max_restart", names, 3), "max_restarts");
    assert_null(near_name("integrations", names, 3));
    assert_null(near_name("x", names, 0));
    assert_string_equal(near_name("modle", (const char *const[]){"master", "model"}, 2), "model");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
