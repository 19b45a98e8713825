/* The copies of a snapshot: every byte arrives, however they are shared among threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "trial_state_impl.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Together three shares; their limits are inside of copies, at odd places. */
static const size_t sizes[] = {0, 1, (5 << 20) + 3, 0, (40 << 20) + 7, 64, (9 << 20) - 1};
enum { COPIES = sizeof sizes / sizeof *sizes };

static void copy_and_check(int threads)
{
    struct state_copies copies = {0};
    unsigned char *from[COPIES], *to[COPIES];
    for (size_t i = 0; i < COPIES; i++) {
        from[i] = malloc(sizes[i] + 1);
        to[i] = calloc(sizes[i] + 1, 1);
        for (size_t k = 0; k <= sizes[i]; k++)
            from[i][k] = (unsigned char)(k % 251 + i + 1);
        state_copies_add(&copies, to[i], from[i], sizes[i]);
    }
    state_copies_run(&copies, threads);
    assert_int_equal(copies.v.n, 0);
    assert_int_equal(copies.bytes, 0);
    for (size_t i = 0; i < COPIES; i++) {
        assert_memory_equal(to[i], from[i], sizes[i]);
        assert_int_equal(to[i][sizes[i]], 0); /* and nothing behind it */
        free(from[i]);
        free(to[i]);
    }
    state_copies_finish(&copies);
}

static void by_any_number_of_threads(void **state)
{
    for (int threads = 1; threads <= 4; threads++)
        copy_and_check(threads);
    copy_and_check(1000);
}

static void on_one_processor(void **state)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    copy_and_check(2);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void of_nothing(void **state)
{
    struct state_copies copies = {0};
    state_copies_run(&copies, 2);
    state_copies_finish(&copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_any_number_of_threads),
        cmocka_unit_test(on_one_processor),
        cmocka_unit_test(of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
