#include "guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define HERE "10.0.0.1"

static void test_a_name_is_told_to_wait(void **state)
{
    struct guard *g = guard_create();
    for (int i = 0; i < GUARD_NAME_BURST; i++)
        assert_int_equal(guard_begin(g, "ada", HERE, 1000), 0);
    assert_int_equal(guard_begin(g, "ada", HERE, 1000), GUARD_NAME_MS);
    assert_int_equal(guard_begin(g, "ada", HERE, 1500), GUARD_NAME_MS - 500);
    assert_int_equal(guard_begin(g, "bob", HERE, 1500), 0);
    assert_int_equal(guard_begin(g, "ada", "10.0.0.2", 1500), 0); /* its owner, elsewhere */
    assert_int_equal(guard_begin(g, "ada", HERE, 1000 + GUARD_NAME_MS), 0);
    assert_true(guard_begin(g, "ada", HERE, 1000 + GUARD_NAME_MS) > 0);
    guard_destroy(g);
}

static void test_being_right_counts_as_nothing(void **state)
{
    struct guard *g = guard_create();
    for (int i = 0; i < 10 * GUARD_ADDRESS_BURST; i++) {
        assert_int_equal(guard_begin(g, "ada", HERE, 5), 0);
        guard_forgive(g, "ada", HERE);
    }
    guard_forgive(g, "nobody", "10.9.9.9"); /* never counted */
    guard_destroy(g);
}

static void test_an_address_tries_many_names(void **state)
{
    struct guard *g = guard_create();
    char name[16];
    for (int i = 0; i < GUARD_ADDRESS_BURST; i++) {
        snprintf(name, sizeof name, "u%d", i);
        assert_int_equal(guard_begin(g, name, HERE, 5), 0);
    }
    assert_int_equal(guard_begin(g, "another", HERE, 5), GUARD_ADDRESS_MS);
    assert_int_equal(guard_begin(g, "another", "10.0.0.2", 5), 0);
    guard_destroy(g);
}

/* Every address of a network, again and again: the tables stay small, and old entries go first. */
static void test_memory_is_bounded(void **state)
{
    struct guard *g = guard_create();
    char address[32];
    for (int i = 0; i < 3 * GUARD_KEYS_MAX; i++) {
        snprintf(address, sizeof address, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        assert_int_equal(guard_begin(g, "ada", address, i * 10), 0);
    }
    for (int i = 1; i < GUARD_NAME_BURST; i++) /* the last one is still known */
        assert_int_equal(guard_begin(g, "ada", address, 3 * GUARD_KEYS_MAX * 10), 0);
    assert_true(guard_begin(g, "ada", address, 3 * GUARD_KEYS_MAX * 10) > 0);
    guard_destroy(g);
}

static void test_a_flood_writes_few_lines(void **state)
{
    struct notes n = {0};
    int64_t more = 7;
    int written = 0;
    for (int i = 0; i < 100000; i++)
        written += notes_may(&n, 1000, &more);
    assert_int_equal(written, NOTES_BURST);
    assert_int_equal(more, 0);
    assert_true(notes_may(&n, 1000 + NOTES_MS, &more));
    assert_int_equal(more, 100000 - NOTES_BURST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_told_to_wait),
        cmocka_unit_test(test_being_right_counts_as_nothing),
        cmocka_unit_test(test_an_address_tries_many_names),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_a_flood_writes_few_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
