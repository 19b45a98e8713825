#include "logpolicy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mem.h"

#include <string.h>

static struct logpolicies *all;
static json_t *policies;

static int setup(void **state)
{
    static const char text[] =
        "[{\"pattern\":\"bad GPU$\",\"action\":{\"type\":\"exclude_node\"}},"
        "{\"pattern\":\"out of memory\",\"action\":{\"type\":\"cancel_retries\"}},"
        "{\"pattern\":\"(\",\"action\":{\"type\":\"cancel_retries\"}}]";
    all = logpolicies_create();
    policies = json_parse(text, strlen(text), NULL);
    return policies ? 0 : -1;
}

static int teardown(void **state)
{
    json_decref(policies);
    logpolicies_destroy(all);
    return 0;
}

static struct db_log_line line(const char *agent, const char *text)
{
    return (struct db_log_line){.agent_id = agent, .log = text, .log_len = strlen(text)};
}

static void test_hits(void **state)
{
    struct logpolicy_hit hits[LOGPOLICY_HITS_MAX];
    struct db_log_line lines[] = {
        line("a", "all is well\n"),
        line("a", "bad GPU here\n"),
        line("a", "this is a bad GPU\r\n"),
        line("a", "bad GPU\n"),
        line("b", "bad GPU\n"),
        line("b", "CUDA out of memory.\n"),
        line("b", "again: out of memory\n"),
    };
    size_t n = logpolicies_match(all, 7, policies, lines, DET_ARRAY_LEN(lines), hits);
    assert_int_equal(n, 3);
    assert_int_equal(hits[0].policy.action, CORE_EXCLUDE_NODE);
    assert_string_equal(hits[0].policy.pattern, "bad GPU$");
    assert_string_equal(hits[0].agent_id, "a");
    assert_string_equal(hits[1].agent_id, "b");
    assert_int_equal(hits[2].policy.action, CORE_CANCEL_RETRIES);
    assert_int_equal(logpolicies_match(all, 8, NULL, lines, DET_ARRAY_LEN(lines), hits), 0);
}

/* The configuration that a trial prints holds the patterns themselves. */
static void test_printed_configuration(void **state)
{
    struct logpolicy_hit hits[LOGPOLICY_HITS_MAX];
    struct db_log_line l = line("a", "{\"log_policies\": [{\"pattern\": \"out of memory\"}]}");
    assert_int_equal(logpolicies_match(all, 7, policies, &l, 1, hits), 0);
    l = line("a", "\"log_policies\" out of memory");
    assert_int_equal(logpolicies_match(all, 7, policies, &l, 1, hits), 1);
}

static void test_bounds(void **state)
{
    struct logpolicy_hit hits[LOGPOLICY_HITS_MAX];
    struct db_log_line lines[2 * LOGPOLICY_HITS_MAX];
    char big[9000];
    for (size_t i = 0; i < DET_ARRAY_LEN(lines); i++)
        lines[i] = line(i % 2 ? "a" : "b", "bad GPU");
    assert_int_equal(logpolicies_match(all, 7, policies, lines, DET_ARRAY_LEN(lines), hits),
                     LOGPOLICY_HITS_MAX);
    memset(big, 'x', sizeof big);
    memcpy(big + 8500, "out of memory", sizeof "out of memory");
    lines[0] = line("a", big);
    assert_int_equal(logpolicies_match(all, 7, policies, lines, 1, hits), 0);
    for (int64_t exp = 1; exp < 300; exp++) { /* more than are remembered */
        lines[0] = line("a", "out of memory");
        assert_int_equal(logpolicies_match(all, exp, policies, lines, 1, hits), 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hits),
        TEST(test_printed_configuration),
        TEST(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
