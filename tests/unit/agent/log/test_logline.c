#include "logline.h"

#include "buf.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void collect(void *arg, const struct logline *l)
{
    buf_addf(arg, "%d/%d/%.*s", l->rank, (int)l->level, (int)l->len, l->text);
}

static void test_split(void **state)
{
    struct buf out = BUF_INIT;
    struct logline_split s = LOGLINE_SPLIT_INIT;
    const char *text = "one\ntwo\rthree\r\nfo";
    for (const char *p = text; *p; p++) /* a byte at a time: pieces make no difference */
        logline_feed(&s, p, 1, collect, &out);
    logline_feed(&s, "ur\n\n", 4, collect, &out);
    logline_feed(&s, "end", 3, collect, &out);
    logline_flush(&s, collect, &out);
    logline_flush(&s, collect, &out);
    assert_string_equal(out.p, "-1/0/one\n-1/0/two\n-1/0/three\n-1/0/four\n-1/0/\n-1/0/end\n");
    buf_finish(&out);
}

static void count(void *arg, const struct logline *l)
{
    size_t *n = arg;
    assert_true(l->len <= LOGLINE_MAX);
    assert_int_equal(l->text[l->len - 1], '\n');
    n[0]++;
    n[1] += l->len;
}

static void test_long_lines_are_cut(void **state)
{
    struct logline_split s = LOGLINE_SPLIT_INIT;
    size_t n[2] = {0, 0};
    det_cleanup(freep) char *big = det_alloc(20000);
    memset(big, 'x', 20000);
    logline_feed(&s, big, 20000, count, n);
    logline_flush(&s, count, n);
    assert_int_equal(n[0], 3);
    assert_int_equal(n[1], 20003);
}

static void test_prefixes(void **state)
{
    static const struct {
        const char *in, *text;
        int rank;
        enum logline_level level;
    } rows[] = {
        {"plain\n", "plain\n", -1, LOGLINE_UNKNOWN},
        {"[rank=0] x\n", "x\n", 0, LOGLINE_UNKNOWN},
        {"  [rank=12] INFO: up\n", "up\n", 12, LOGLINE_INFO},
        {"WARNING:root:odd\n", "root:odd\n", -1, LOGLINE_WARNING},
        {"CRITICAL: [rank=1] no\n", "[rank=1] no\n", -1, LOGLINE_CRITICAL},
        {"[rank=] x\n", "[rank=] x\n", -1, LOGLINE_UNKNOWN},
        {"[rank=99999999] x\n", "[rank=99999999] x\n", -1, LOGLINE_UNKNOWN},
        {"[rank=3", "[rank=3", -1, LOGLINE_UNKNOWN},
        {"INFOX: x\n", "INFOX: x\n", -1, LOGLINE_UNKNOWN},
        {"\n", "\n", -1, LOGLINE_UNKNOWN},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        struct logline l = logline_parse(rows[i].in, strlen(rows[i].in));
        assert_int_equal(l.rank, rows[i].rank);
        assert_int_equal(l.level, rows[i].level);
        assert_int_equal(l.len, strlen(rows[i].text));
        assert_memory_equal(l.text, rows[i].text, l.len);
    }
    assert_string_equal(logline_level_name(LOGLINE_ERROR), "LOG_LEVEL_ERROR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_long_lines_are_cut),
        cmocka_unit_test(test_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
