/* What is said of limits that do not hold. */
#include "tasklimits.h"

#include "cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool says(struct tasklimits l, const char *what)
{
    char out[512];
    return strstr(tasklimits_gap(&l, out, sizeof out), what) != NULL;
}

static void test_gaps(void **state)
{
    char out[512];
    struct tasklimits whole = {.held = CGROUP_ALL, .slot_pids = 64}, none = {.slot_pids = 64};
    assert_string_equal(tasklimits_gap(&whole, out, sizeof out), "");
    whole.slot_pids = 0;
    assert_true(says(whole, "host's processes; --slot-pids is 0"));
    det_fail(&none.why, DET_ENOENT, "no cgroup");
    assert_true(says(none, "all of this host's memory, CPU, processes (no cgroup)"));
    none.by_uid = true;
    assert_true(
        says(none, "memory, CPU; processes are limited for all tasks of a person together"));
    none.held = CGROUP_MEMORY | CGROUP_PIDS;
    assert_true(says(none, "all of this host's CPU (no cgroup)"));
}

static void test_check(void **state)
{
    struct det_err err = {0};
    struct tasklimits l = {.slot_memory_mib = 64, .held = CGROUP_MEMORY};
    assert_int_equal(tasklimits_check(&l, &err), 0);
    l.held = CGROUP_PIDS | CGROUP_CPU;
    assert_int_equal(tasklimits_check(&l, &err), DET_ESTATE);
    assert_non_null(strstr(err.text, "--slot-memory-mib 64"));
    l.slot_memory_mib = 0;
    assert_int_equal(tasklimits_check(&l, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gaps), cmocka_unit_test(test_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
