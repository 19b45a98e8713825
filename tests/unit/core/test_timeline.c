/* Durations on a trial's timeline. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "timeline.h"
#include <string.h>

static const struct timeline_entry *find(const struct timeline_entry *v, size_t n, const char *kind,
                                         int64_t run)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].run_id == run && strcmp(v[i].kind, kind) == 0)
            return &v[i];
    fail_msg("no %s of run %d", kind, (int)run);
    return NULL;
}

#define E(us, run, what, took)                                                                     \
    {                                                                                              \
        .at_us = us, .run_id = run, .kind = what, .duration_us = took                              \
    }

static void two_runs(void **state)
{
    struct timeline_entry v[] = {
        E(900, 2, "placed", 0),   E(100, 1, "queued", 0),      E(150, 1, "placed", 0),
        E(180, 1, "prepared", 5), E(400, 1, "kill", 0),        E(450, 1, "end", 0),
        E(460, 2, "queued", 0),   E(300, 1, "validating", 40), E(190, 1, "compiled", 0),
    };
    size_t n = sizeof v / sizeof *v;
    timeline_durations(v, n, 1000);
    for (size_t i = 1; i < n; i++)
        assert_true(v[i - 1].at_us <= v[i].at_us);
    assert_int_equal(find(v, n, "queued", 1)->took_us, 50);
    assert_int_equal(find(v, n, "placed", 1)->took_us, 30);
    assert_int_equal(find(v, n, "prepared", 1)->took_us, 5);
    assert_int_equal(find(v, n, "validating", 1)->took_us, 40);
    assert_int_equal(find(v, n, "compiled", 1)->took_us, 0); /* from the cache: quicker than 1 ms */
    assert_int_equal(find(v, n, "kill", 1)->took_us, 50);
    assert_int_equal(find(v, n, "end", 1)->took_us, -1);
    assert_int_equal(find(v, n, "queued", 2)->took_us, 440);
    assert_true(find(v, n, "placed", 2)->open);
    assert_int_equal(find(v, n, "placed", 2)->took_us, 100);
}

static void ended_before_it_was_placed(void **state)
{
    struct timeline_entry v[] = {E(100, 1, "queued", 0), E(130, 1, "end", 0)};
    timeline_durations(v, 2, 1000);
    assert_int_equal(v[0].took_us, 30);
    assert_false(v[0].open);
}

static void clocks_that_differ(void **state)
{
    struct timeline_entry v[] = {E(100, 1, "placed", 0), E(60, 1, "prepared", 7)};
    timeline_durations(v, 2, 50);
    assert_int_equal(find(v, 2, "placed", 1)->took_us, 0);
    timeline_durations(NULL, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_runs),
                                       cmocka_unit_test(ended_before_it_was_placed),
                                       cmocka_unit_test(clocks_that_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
