#include "webhooks.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <string.h>

static struct webhook_networks networks_of(const char *text)
{
    struct webhook_networks nets;
    struct det_err err;
    assert_int_equal(webhook_read_networks(text, &nets, &err), 0);
    return nets;
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
static union address address_of(const char *addr)
{
    union address a = {.v4.sin_family = AF_INET};
    if (inet_pton(AF_INET, addr, &a.v4.sin_addr) == 1)
        return a;
    a = (union address){.v6.sin6_family = AF_INET6};
    assert_int_equal(inet_pton(AF_INET6, addr, &a.v6.sin6_addr), 1);
    return a;
}

static bool is_dialled(const char *networks, const char *addr)
{
    struct webhook_networks nets = networks_of(networks);
    union address a = address_of(addr);
    return webhook_may_dial(&nets, &a.any);
}

static void test_same(void **state)
{
    union address v4 = address_of("192.0.2.1"), mapped = address_of("::ffff:192.0.2.1"),
                  v6 = address_of("2001:db8::1"), other = address_of("192.0.2.2");
    struct sockaddr local = {.sa_family = AF_UNIX};
    mapped.v6.sin6_port = 1;
    assert_true(webhook_same_address(&v4.any, &mapped.any));
    assert_true(webhook_same_address(&v6.any, &v6.any));
    assert_false(webhook_same_address(&v4.any, &other.any));
    assert_false(webhook_same_address(&v4.any, &v6.any));
    assert_false(webhook_same_address(&local, &local));
}

static void assert_url(const char *url, const char *base, const char *host, const char *path)
{
    struct webhook_networks nets = networks_of("0.0.0.0/0 ::1");
    struct webhook_url u;
    struct det_err err;
    assert_int_equal(webhook_read_url(url, &nets, &u, &err), 0);
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
                                        "http://127.0.0.1/",
                                        "http://[::1]/",
                                        "http://[::ffff:127.0.0.1]/",
                                        "http://[64:ff9b::a9fe:a9fe]/",
                                        "http://[fd00:ec2::254]/"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct webhook_networks nets = networks_of("");
        struct webhook_url u;
        struct det_err err = {0};
        assert_int_equal(webhook_read_url(wrong[i], &nets, &u, &err), DET_EINVAL);
        assert_memory_equal(err.text, "url: ", 5);
    }
}

static void test_dialled(void **state)
{
    static const char *const never[] = {"0.0.0.0",
                                        "169.254.169.254",
                                        "224.0.0.1",
                                        "255.255.255.255",
                                        "100.100.100.200",
                                        "168.63.129.16",
                                        "::",
                                        "fe80::1",
                                        "febf::1",
                                        "ff02::1",
                                        "::169.254.169.254",
                                        "::ffff:169.254.169.254",
                                        "fd00:ec2::254",
                                        "fd00:ec2::23",
                                        "fd20:ce::254",
                                        "fd00:c1::a9fe:a9fe",
                                        "192.0.0.192",
                                        "64:ff9b::a9fe:a9fe",
                                        "2002:a9fe:a9fe::1"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        assert_false(is_dialled("", never[i]));
        assert_false(is_dialled("0.0.0.0/0 ::/0", never[i]));
    }
    static const struct {
        const char *networks, *addr;
        bool is_dialled;
    } rows[] = {
        {"", "192.0.2.1", true},
        {"", "10.0.0.7", true},
        {"", "fd00::1", true},
        {"", "127.0.0.1", false},
        {"", "127.255.0.3", false},
        {"", "::1", false},
        {"", "::ffff:127.0.0.1", false},
        {"", "::7f00:1", false},
        {"", "64:ff9b::7f00:1", false},
        {"", "2002:7f00:1::", false},
        {"127.0.0.0/8", "127.0.0.1", true},
        {"127.0.0.0/8", "::ffff:127.0.0.1", true},
        {"127.0.0.0/8", "::1", false},
        {"127.0.0.0/8", "192.0.2.1", false},
        {"10.0.0.0/9, 192.0.2.7", "10.127.0.1", true},
        {"10.0.0.0/9, 192.0.2.7", "10.128.0.1", false},
        {"10.0.0.0/9, 192.0.2.7", "192.0.2.7", true},
        {"10.0.0.0/9, 192.0.2.7", "192.0.2.6", false},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"none", "192.0.2.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(is_dialled(rows[i].networks, rows[i].addr), rows[i].is_dialled);
    struct webhook_networks nets = networks_of("0.0.0.0/0 ::/0");
    struct sockaddr local = {.sa_family = AF_UNIX};
    assert_false(webhook_may_dial(&nets, &local));
}

static void test_networks_refused(void **state)
{
    static const char *const wrong[] = {"10.0.0.0/33", "10.0.0.0/",    "10.0.0/8",    "x",
                                        "::/129",      "10.0.0.0/8/8", "10.0.0.0/-1", "none x",
                                        "::/0x1",      "10.0.0.0/0008"};
    struct webhook_networks nets;
    struct det_err err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(webhook_read_networks(wrong[i], &nets, &err), DET_EINVAL);
    char many[65 * 8 + 1] = "";
    for (int i = 0; i < 65; i++)
        memcpy(many + i * 8, "1.1.1.1 ", 8);
    assert_int_equal(webhook_read_networks(many, &nets, &err), DET_EINVAL);
    assert_int_equal(networks_of(" , ").is_given, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken_apart),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_dialled), cmocka_unit_test(test_same),
                                       cmocka_unit_test(test_networks_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
