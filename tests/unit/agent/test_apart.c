#include "apart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool says(struct apart a, const char *what)
{
    char out[512];
    return strstr(apart_gap(&a, out, sizeof out), what) != NULL;
}

static void test_gaps(void **state)
{
    char out[512];
    const struct apart whole = {true, NULL, 0, ""};
    assert_string_equal(apart_gap(&whole, out, sizeof out), "");
    assert_true(
        says((struct apart){true, NULL, DET_EPERM, "clone: no"}, "no namespaces (clone: no)"));
    assert_true(says((struct apart){true, "det", 0, ""}, "one account"));
    assert_false(says((struct apart){true, "det", 0, ""}, "end each other"));
    assert_true(says((struct apart){true, "", 0, ""}, "end each other"));
    assert_true(says((struct apart){false, NULL, 0, ""}, "each other's checkpoints"));
    assert_true(says((struct apart){false, NULL, DET_EPERM, "no"}, "the agent's token"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
