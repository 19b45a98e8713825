#include "json.h"
#include "json_cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct json_step path[] = {{"metrics", "metrics"}, {"batchMetrics", "batch_metrics"}};

static bool cut(const char *text, struct json_span *ret)
{
    return json_cut(text, strlen(text), path, 2, ret);
}

static void test_found(void **state)
{
    const char *text = "{\"a\": {\"batchMetrics\": [0]}, \"metrics\" :{ \"x\":1, "
                       "\"batch_metrics\" : [{\"l\":1e3}, {}] , \"y\":\"\\u00e9\\ud83d\\ude00\"} }";
    struct json_span s;
    struct buf rest = BUF_INIT;
    assert_true(cut(text, &s));
    assert_int_equal(s.len, strlen("[{\"l\":1e3}, {}]"));
    assert_memory_equal(s.p, "[{\"l\":1e3}, {}]", s.len);
    json_cut_rest(text, strlen(text), &s, &rest);
    JSON_OWN j = json_parse(rest.p, rest.len, NULL);
    assert_non_null(j);
    assert_int_equal(json_array_size(json_path(j, "metrics.batch_metrics")), 0);
    assert_int_equal(json_int(json_obj(j, "metrics"), "x", 0), 1);
    buf_finish(&rest);
}

static void test_absent(void **state)
{
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "5",
                                        "null",
                                        " {\"metrics\":{}} ",
                                        "{\"metrics\":[{\"batchMetrics\":[1]}]}",
                                        "{\"metrics\":{\"batchMetrics\":{}}}"};
    struct json_span s;
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++) {
        assert_true(cut(texts[i], &s));
        assert_null(s.p);
    }
}

static void test_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "{\"a\"}",
        "{\"a\":1,}",
        "[1,]",
        "01",
        "1.",
        ".5",
        "-",
        "+1",
        "1e",
        "1e999",
        "nul",
        "NaN",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\x\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xed\xa0\x80\"",
        "\"\xc0\xaf\"",
        "\"\xf4\x90\x80\x80\"",
        "\"open",
        "{} {}",
        "99999999999999999999",
        "{\"metrics\":{},\"metrics\":{}}",
        "{\"metrics\":{\"batchMetrics\":[],\"batch_metrics\":[]}}",
        "{\"m\\u0065trics\":{}}",
    };
    struct json_span s;
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++)
        if (cut(texts[i], &s))
            fail_msg("taken: %s", texts[i]);
}

static void test_deep(void **state)
{
    struct json_span s;
    char text[2 * (JSON_CUT_DEPTH + 2)];
    memset(text, '[', sizeof text / 2);
    memset(text + sizeof text / 2, ']', sizeof text / 2);
    assert_false(json_cut(text, sizeof text, path, 2, &s));
    assert_true(json_cut(text + 2, sizeof text - 4, path, 2, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_absent),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_deep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
