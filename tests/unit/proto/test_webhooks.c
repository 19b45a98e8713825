#include "webhooks.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static void assert_url(const char *url, const char *base, const char *host, const char *path)
{
    struct webhook_url u;
    struct det_err err;
    assert_int_equal(webhook_read_url(url, &u, &err), 0);
    assert_int_equal(u.base_len, strlen(base));
    assert_memory_equal(url, base, u.base_len);
    assert_int_equal(u.host_len, strlen(host));
    assert_memory_equal(u.host, host, u.host_len);
    assert_string_equal(u.path, path);
}

static void test_taken_apart(void **state)
{
    assert_url("https://hooks.example.com/services/T0/B0?a=b", "https://hooks.example.com",
               "hooks.example.com", "/services/T0/B0?a=b");
    assert_url("HTTP://h:8080", "HTTP://h:8080", "h", "");
    assert_url("http://127.0.0.1:9?x", "http://127.0.0.1:9", "127.0.0.1", "?x");
    assert_url("http://[::1]:65535/a@b", "http://[::1]:65535", "::1", "/a@b");
    assert_url("http://10.0.0.7/", "http://10.0.0.7", "10.0.0.7", "/");
}

static void test_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "h",
                                        "ftp://h/",
                                        "file:///etc/passwd",
                                        "http://",
                                        "http:///x",
                                        "http://a:b@h/",
                                        "http://h/a b",
                                        "http://h/#x",
                                        "http://h\\@x/",
                                        "http://h/\xc3\xa9",
                                        "http://h:0/",
                                        "http://h:65536/",
                                        "http://h:/",
                                        "http://h:8x/",
                                        "http://h:000080/",
                                        "http://[::1/",
                                        "http://[::1]x/",
                                        "http://[h]/",
                                        "http://a%40b/",
                                        "http://169.254.169.254/latest/meta-data",
                                        "http://2852039166/",
                                        "http://0xa9.0xfe.0xa9.0xfe/",
                                        "http://0/",
                                        "http://127.1/",
                                        "http://0.0.0.0/",
                                        "http://224.0.0.1/",
                                        "http://255.255.255.255/",
                                        "http://[::]/",
                                        "http://[fe80::1]/",
                                        "http://[ff02::1]/",
                                        "http://[::ffff:169.254.169.254]/",
                                        "http://[fd00:ec2::254]/"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct webhook_url u;
        struct det_err err = {0};
        assert_int_equal(webhook_read_url(wrong[i], &u, &err), DET_EINVAL);
        assert_memory_equal(err.text, "url: ", 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken_apart),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
