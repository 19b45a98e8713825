/* views.h: names and addresses of views. */
#include "views.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

struct bad {
    const char *text, *words;
};

static void test_names(void **state)
{
    static const char *const good[] = {"a", "slow <b>against</b> fast", "a/b", "\xc3\xa9t\xc3\xa9",
                                       "7"};
    static const struct bad bad[] = {{"", "not blank"}, {" \t", "not blank"}, {" a", "space"},
                                     {"a ", "space"},   {"a\nb", "control"},  {"a\x7f", "control"}};
    struct det_err err;
    char name[VIEW_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(view_check_name(good[i], &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(view_check_name(bad[i].text, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, bad[i].words));
    }
    memset(name, 'x', sizeof name);
    name[VIEW_NAME_MAX + 1] = '\0';
    assert_int_equal(view_check_name(name, &err), DET_EINVAL);
    name[VIEW_NAME_MAX] = '\0';
    assert_int_equal(view_check_name(name, &err), 0);
}

static void test_addresses(void **state)
{
    static const struct bad bad[] = {{"", "expected one of the page's"},
                                     {"https://elsewhere.invalid/det/", "expected one"},
                                     {"//x/det/", "expected one"},
                                     {"javascript:0", "expected one"},
                                     {"/det", "expected one"},
                                     {"/detour", "expected one"},
                                     {"/det//x", "expected one"},
                                     {"/det/views/7", "another view"},
                                     {"/det/x y", "%XX"},
                                     {"/det/x\n", "%XX"},
                                     {"/det/\xc3\xa9", "%XX"}};
    struct det_err err;
    char address[VIEW_ADDRESS_MAX + 2] = "/det/";
    assert_int_equal(view_check_address("/det/experiments?f=%7B%7D&sort=-hp.lr", &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(view_check_address(bad[i].text, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, bad[i].words));
    }
    memset(address + 5, 'x', sizeof address - 5);
    address[VIEW_ADDRESS_MAX + 1] = '\0';
    assert_int_equal(view_check_address(address, &err), DET_EINVAL);
    assert_string_equal(err.text, "address: 8193 bytes; at most 8192");
    address[VIEW_ADDRESS_MAX] = '\0';
    assert_int_equal(view_check_address(address, &err), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                              cmocka_unit_test(test_addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
