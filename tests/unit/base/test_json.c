#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "rng.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int allocs_left = -1; /* until one fails, once */
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    if (allocs_left < 0 || allocs_left-- > 0)
        return __real_malloc(n);
    errno = ENOMEM;
    return NULL;
}

static void assert_text(json_t *taken, const char *want)
{
    JSON_OWN j = taken;
    det_cleanup(freep) char *s = json_text(j);
    assert_string_equal(s, want);
}

static void test_doubles(void **state)
{
    assert_text(json_real(1.1), "1.1");
    assert_text(json_real(1), "1.0");
    assert_text(json_real(1e300), "1e+300");
    assert_text(json_real(0.1 + 0.2), "0.30000000000000004");
    assert_text(json_real(5e-324), "5e-324");
    assert_text(json_real(-0.0), "-0.0");
    assert_text(json_double(NAN), "\"NaN\"");
    assert_text(json_double(-INFINITY), "\"-Infinity\"");
    assert_text(json_i64s(INT64_MIN), "\"-9223372036854775808\"");
}

static void test_double_round_trip(void **state)
{
    struct mt19937 r;
    mt19937_seed(&r, 5);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = mt19937_bounded(&r, UINT64_MAX);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        JSON_OWN j = json_real(v);
        det_cleanup(freep) char *s = json_text(j);
        JSON_OWN back = json_parse(s, strlen(s), NULL);
        double got = json_real_value(back);
        assert_memory_equal(&got, &v, sizeof v);
    }
}

/* Integers beyond 64 bits are reals; those within stay what they are. */
static void test_long_integers(void **state)
{
    static const char text[] =
        "{\"a\":[10000000000000000905969664,-123456789012345678901234567890],"
        "\"12345678901234567890123\":\"\\\"98765432109876543210987\",\"n\":17}";
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    assert_true(json_number_value(json_array_get(json_arr(j, "a"), 0)) == 1e25);
    assert_true(json_number_value(json_array_get(json_arr(j, "a"), 1)) ==
                -123456789012345678901234567890.0);
    assert_string_equal(json_str(j, "12345678901234567890123", ""), "\"98765432109876543210987");
    assert_true(json_is_integer(json_object_get(j, "n")));
    struct det_err err = {0};
    assert_null(json_parse("99999999999999999999999 x", 25, &err));
    assert_null(json_parse("[1e999]", 7, &err));
}

static void test_write(void **state)
{
    static const char text[] = "{\"b\":[1,true,null,\"a\\\"\\\\\\n\\u0001\xc3\xa9\"],\"a\":{}}";
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    struct buf b = BUF_INIT;
    json_write(&b, j);
    assert_string_equal(b.p, text);
    buf_clear(&b);
    json_write_pretty(&b, json_object_get(j, "b"));
    assert_memory_equal(b.p, "[\n  1,\n  true,", 13);
    buf_finish(&b);
}

static void test_parse_errors(void **state)
{
    static const char *const bad[] = {"",    "{",       "{\"a\":1,\"a\":2}", "[1] x",
                                      "nul", "[1e999]", "\"\\u0000\"",       "\"\xff\""};
    struct det_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(json_parse(bad[i], strlen(bad[i]), &err));
        assert_non_null(strstr(err.text, "line "));
    }
    struct buf deep = BUF_INIT;
    for (int i = 0; i < 100000; i++)
        buf_add_ch(&deep, '[');
    assert_null(json_parse(deep.p, deep.len, &err));
    buf_finish(&deep);
}

static void test_access(void **state)
{
    JSON_OWN j = json_make("{s:s,s:i,s:s,s:f,s:b,s:{s:{s:i}},s:[i]}", "s", "x", "i", 5, "i64", "77",
                           "r", 2.0, "t", 1, "o", "p", "q", 9, "a", 1);
    assert_string_equal(json_str(j, "s", ""), "x");
    assert_string_equal(json_str(j, "i", "no"), "no");
    assert_int_equal(json_int(j, "i", 0), 5);
    assert_int_equal(json_int(j, "i64", 0), 77);
    assert_int_equal(json_int(j, "r", 0), 2);
    assert_int_equal(json_int(j, "s", -1), -1);
    assert_true(json_num(j, "i", 0) == 5);
    assert_true(json_flag(j, "t", false));
    assert_false(json_flag(j, "none", false));
    assert_int_equal(json_integer_value(json_path(j, "o.p.q")), 9);
    assert_null(json_path(j, "o.x.q"));
    assert_null(json_path(j, "s.p"));
    assert_null(json_obj(j, "a"));
    assert_non_null(json_arr(j, "a"));
    json_set(j, "s", NULL);
    assert_true(json_is_null(json_object_get(j, "s")));
    assert_int_equal(json_int(NULL, "x", 3), 3);
}

static void test_lossy(void **state)
{
    assert_text(json_lossy("a\xffz\0\xc3\xa9", 6), "\"a\xef\xbf\xbdz\xef\xbf\xbd\xc3\xa9\"");
    assert_text(json_lossy("\xc0\x80", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_text(json_lossy("\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_text(json_lossy("\xf0\x9f\x98\x80", 4), "\"\xf0\x9f\x98\x80\"");
    assert_text(json_lossy("\xf0\x9f", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* In a child: what is made of values is whole, or the process ends and says why. */
static int make_without_memory(int n)
{
    int out[2], status = 0;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        allocs_left = n;
        JSON_OWN j = json_make("{s:s}", "k", "v");
        json_set(j, "list", json_parse("[1, {\"b\": \"x\"}]", 15, NULL));
        json_set(j, "more", json_string("x"));
        allocs_left = -1;
        _exit(json_object_size(j) == 3 ? 0 : 1);
    }
    char said[256] = {0};
    close(out[1]);
    ssize_t got = read(out[0], said, sizeof said - 1);
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_true(got > 0 && strstr(said, "out of memory"));
        return 1;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return 0;
}

static void test_without_memory(void **state)
{
    int n = 0;
    while (n < 100 && make_without_memory(n))
        n++;
    assert_in_range(n, 6, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles),       cmocka_unit_test(test_double_round_trip),
        cmocka_unit_test(test_long_integers), cmocka_unit_test(test_write),
        cmocka_unit_test(test_parse_errors),  cmocka_unit_test(test_access),
        cmocka_unit_test(test_lossy),         cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
