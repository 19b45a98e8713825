#include "account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct account_rule each = {NULL, ACCOUNT_FIRST, ACCOUNT_LAST};

static struct account chosen(const struct account_rule *r, struct account_wish w)
{
    struct account a = {0};
    struct det_err err = {0};
    if (account_choose(r, &w, &a, &err) < 0)
        fail_msg("%s", err.text);
    return a;
}

static void test_each_has_its_own(void **state)
{
    struct account a = chosen(&each, (struct account_wish){.owner = 17});
    assert_int_equal(a.kind, ACCOUNT_OWN);
    assert_int_equal(a.uid, 1900000017);
    assert_int_equal(a.gid, 1900000000);
    a = chosen(&each, (struct account_wish){.owner = 99999999});
    assert_int_equal(a.uid, ACCOUNT_LAST);
}

static void test_bound(void **state)
{
    struct account_wish w = {.owner = 17, .is_bound = true, .uid = 1000, .gid = 100};
    const struct account_rule as_agent = {"", 1, 9}, named = {"det", 1, 9};
    const struct account_rule *const rules[] = {&each, &as_agent, &named};
    for (size_t i = 0; i < 3; i++) {
        struct account a = chosen(rules[i], w);
        assert_int_equal(a.kind, ACCOUNT_BOUND);
        assert_int_equal(a.uid, 1000);
        assert_int_equal(a.gid, 100);
    }
    w.uid = 0; /* nobody becomes root by the master's word */
    assert_int_equal(chosen(&each, w).uid, 1900000017);
    assert_int_equal(chosen(&named, w).kind, ACCOUNT_NAMED);
    assert_int_equal(chosen(&as_agent, w).kind, ACCOUNT_AGENT);
    w.uid = 1900000017;
    assert_int_equal(chosen(&each, w).uid, 1900000017);
}

static void refused(struct account_wish w, const char *why)
{
    struct account a;
    struct det_err err = {0};
    assert_int_equal(account_choose(&each, &w, &a, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, why));
}

static void test_refused(void **state)
{
    refused((struct account_wish){.owner = 0}, "upgrade it");
    refused((struct account_wish){.owner = 100000000}, "--task-uids");
    refused((struct account_wish){.owner = 17, .is_bound = true, .uid = 1900000018, .gid = 1},
            "another user's");
    refused((struct account_wish){.owner = 17, .is_bound = true, .uid = 1900000000, .gid = 1},
            "another user's");
}

static void test_range(void **state)
{
    static const char *const bad[] = {"",    "5",   "5-",    "-5-9",          "0-9",
                                      "9-5", "5-5", "5-9 x", "1-99999999999", "10-4294967295",
                                      "a-b"};
    int64_t first, last;
    struct det_err err = {0};
    assert_int_equal(account_range_parse("5000-6000", &first, &last, &err), 0);
    assert_int_equal(first, 5000);
    assert_int_equal(last, 6000);
    assert_int_equal(account_range_parse(ACCOUNT_RANGE_TEXT, &first, &last, &err), 0);
    assert_int_equal(first, ACCOUNT_FIRST);
    assert_int_equal(last, ACCOUNT_LAST);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (account_range_parse(bad[i], &first, &last, &err) != DET_EINVAL)
            fail_msg("'%s' was taken", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_has_its_own),
                                       cmocka_unit_test(test_bound), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_range)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
