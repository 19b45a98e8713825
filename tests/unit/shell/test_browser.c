#include "browser.h"

#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int check(struct browser_ask a)
{
    struct det_err err;
    a.names = "head.lab.example, 10.0.0.1 other.example";
    return browser_check(&a, &err);
}

static void test_programs_are_asked_nothing(void **state)
{
    assert_int_equal(check((struct browser_ask){.host = "any.example", .is_write = true}), 0);
    assert_int_equal(check((struct browser_ask){.is_write = true}), 0);
}

static void test_hosts(void **state)
{
    static const char *const own[] = {
        "127.0.0.1:8080",     "[::1]",   "[fe80::1]:80", "head", "head:1", "HEAD.lab.example",
        "other.example:8080", "10.0.0.1"};
    static const char *const foreign[] = {"",
                                          ":80",
                                          "evil.example",
                                          "evil.head.lab.example",
                                          "head.lab.example.evil",
                                          "lab.example",
                                          "1.2.3.4.5",
                                          "[]",
                                          "[evil.example]"};
    for (size_t i = 0; i < DET_ARRAY_LEN(own); i++)
        assert_int_equal(check((struct browser_ask){.host = own[i], .is_page = true}), 0);
    for (size_t i = 0; i < DET_ARRAY_LEN(foreign); i++) {
        assert_int_equal(check((struct browser_ask){.host = foreign[i], .is_page = true}),
                         DET_EPERM);
        assert_int_equal(check((struct browser_ask){.host = foreign[i], .by_cookie = true}),
                         DET_EPERM);
        struct browser_ask tls = {.host = foreign[i], .is_page = true, .is_tls = true};
        assert_int_equal(check(tls), 0); /* it has no certificate for that */
    }
    assert_int_equal(check((struct browser_ask){.is_page = true}), DET_EPERM);
}

static void test_origins(void **state)
{
    struct browser_ask a = {.host = "head:8080", .origin = "http://head:8080", .is_write = true};
    assert_int_equal(check(a), 0);
    a.origin = "https://head:8080"; /* something in front speaks TLS */
    assert_int_equal(check(a), 0);
    static const char *const foreign[] = {"null",
                                          "",
                                          "http://head",
                                          "http://head:8081",
                                          "http://evil.example",
                                          "http://head:8080.evil.example"};
    for (size_t i = 0; i < DET_ARRAY_LEN(foreign); i++) {
        a.origin = foreign[i];
        assert_int_equal(check(a), DET_EPERM);
    }
}

static void test_a_cookie_writes_with_the_mark_only(void **state)
{
    struct browser_ask a = {.host = "head", .by_cookie = true};
    assert_int_equal(check(a), 0);
    a.is_write = true;
    assert_int_equal(check(a), DET_EPERM);
    a.origin = "http://head";
    assert_int_equal(check(a), DET_EPERM);
    a.is_marked = true;
    assert_int_equal(check(a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_are_asked_nothing),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_a_cookie_writes_with_the_mark_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
