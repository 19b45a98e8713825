#include "yamljson.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "buf.h"
#include <string.h>

/* The canonical JSON text of a YAML text; the caller frees. */
static char *to_json(const char *yaml)
{
    struct det_err err;
    json_t *j = NULL;
    if (yamljson_parse(yaml, strlen(yaml), &j, &err) < 0)
        fail_msg("%s\n%s", yaml, err.text);
    char *text = json_text(j);
    json_decref(j);
    return text;
}

static void test_values(void **state)
{
    static const char *const cases[][2] = {
        {"", "null"},
        {"# nothing", "null"},
        {"~", "null"},
        {"Null", "null"},
        {"True", "true"},
        {"false", "false"},
        {"yes", "\"yes\""},
        {"on", "\"on\""},
        {"NO", "\"NO\""},
        {"1e-4", "0.0001"},
        {"1E4", "10000.0"},
        {"1.e-3", "0.001"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"+3", "3"},
        {"010", "10"},
        {"0o14", "12"},
        {"0x1F", "31"},
        {"1_000", "\"1_000\""},
        {"12:30:45", "\"12:30:45\""},
        {"2024-01-01", "\"2024-01-01\""},
        {".", "\".\""},
        {"-", "[null]"},
        {"1e", "\"1e\""},
        {"e5", "\"e5\""},
        {"0x", "\"0x\""},
        {"1.2.3", "\"1.2.3\""},
        {"9223372036854775807", "9223372036854775807"},
        {"9223372036854775808", "9.223372036854776e+18"},
        {".nan", "\"NaN\""},
        {"-.inf", "\"-Infinity\""},
        {"'1'", "\"1\""},
        {"\"a\\n\"", "\"a\\n\""},
        {"!!str 5", "\"5\""},
        {"!!int '5'", "5"},
        {"!!float 5", "5"},
        {"! 5", "\"5\""},
        {"{a: 1, 'b': [x, {c: ~}]}", "{\"a\":1,\"b\":[\"x\",{\"c\":null}]}"},
        {"a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\"}"},
        {"1: a\ntrue: b", "{\"1\":\"a\",\"true\":\"b\"}"},
        {"{\n\t\"a\":\t\"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}"},
        {"---\na: 1\n...\n", "{\"a\":1}"},
        {"? a\n: 1", "{\"a\":1}"},
        {"\xef\xbb\xbf"
         "a: 1",
         "{\"a\":1}"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        det_cleanup(freep) char *got = to_json(cases[i][0]);
        assert_string_equal(got, cases[i][1]);
    }
}

static void test_anchors(void **state)
{
    static const char *const cases[][2] = {
        {"a: &x {b: 1}\nc: *x", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}",
         "{\"a\":{\"b\":1,\"c\":2},\"d\":{\"b\":3,\"c\":2}}"},
        {"d: {b: 3, <<: [{b: 1, c: 2}, {c: 9, e: 5}]}", "{\"d\":{\"b\":3,\"c\":2,\"e\":5}}"},
        {"a: &x 1\nb: &x 2\nc: *x", "{\"a\":1,\"b\":2,\"c\":2}"},
        {"'<<': 1", "{\"<<\":1}"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        det_cleanup(freep) char *got = to_json(cases[i][0]);
        assert_string_equal(got, cases[i][1]);
    }
}

static void test_errors(void **state)
{
    static const char *const cases[][2] = {
        {"a: 1\nb: 2\na: 3", "line 3, column 1: key given twice: \"a\""},
        {"a: [1, 2", "line "},
        {"a: *x", "line 1, column 4"},
        {"a: &x [*x]", "no anchor"},
        {"[a]: 1", "key must be plain text"},
        {"a: 1\n---\nb: 2", "line 2, column 1: a second document"},
        {"a: 1e999", "out of range"},
        {"a: !thing 5", "unknown tag"},
        {"a: \"\\0\"", "NUL"},
        {"a: {<<: 5}", "<< needs"},
        {"a: 1\n b: 2", "line 2"},
        {"a: \tb: c", "line 1"},
        {"\"\\0\": 1", "NUL"},
        {"{\"a\": 1, \"a\": 2}", "key given twice"},
        {"\xff\xfe\xfa", "YAML"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct det_err err;
        json_t *j = NULL;
        int rc = yamljson_parse(cases[i][0], strlen(cases[i][0]), &j, &err);
        if (rc >= 0)
            fail_msg("accepted: %s", cases[i][0]);
        if (!strstr(err.text, cases[i][1]))
            fail_msg("%s\n%s", cases[i][0], err.text);
        assert_null(j);
    }
}

/* Ten times ten times ... aliases in a few hundred bytes. */
static void test_bomb(void **state)
{
    struct buf b = BUF_INIT;
    struct det_err err;
    json_t *j = NULL;
    buf_add_str(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        buf_addf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            buf_addf(&b, "%s*a%d", k ? "," : "", i - 1);
        buf_add_str(&b, "]\n");
    }
    assert_int_equal(yamljson_parse(b.p, b.len, &j, &err), DET_ETOOBIG);
    buf_clear(&b);
    for (int i = 0; i < 5000; i++)
        buf_add_ch(&b, '[');
    assert_true(yamljson_parse(b.p, b.len, &j, &err) < 0);
    buf_finish(&b);
}

/* Who changes one use of an anchor changes no other. */
static void test_uses_are_apart(void **state)
{
    static const char text[] = "a: &a {x: {y: 1}}\nb: *a\nc: {<<: *a}\nd: [*a, *a]\n";
    struct det_err err;
    JSON_OWN j = NULL;
    assert_int_equal(yamljson_parse(text, strlen(text), &j, &err), 0);
    json_t *d = json_arr(j, "d");
    json_t *uses[] = {json_obj(j, "a"), json_obj(j, "b"), json_obj(j, "c"), json_array_get(d, 0),
                      json_array_get(d, 1)};
    for (size_t i = 0; i < DET_ARRAY_LEN(uses); i++) {
        assert_int_equal(json_int(json_obj(uses[i], "x"), "y", 0), 1);
        json_set(json_obj(uses[i], "x"), "y", json_integer(2));
    }
}

/* Each level is an anchor, so that copies of each would be a hundred times the whole. */
static void test_anchors_in_anchors(void **state)
{
    struct buf b = BUF_INIT;
    struct det_err err;
    JSON_OWN j = NULL;
    for (int i = 0; i < YAMLJSON_DEPTH_MAX - 2; i++)
        buf_addf(&b, "&a%d [", i);
    for (int i = 0; i < YAMLJSON_NODES_MAX - 1000; i++)
        buf_add_str(&b, "x,");
    for (int i = 0; i < YAMLJSON_DEPTH_MAX - 2; i++)
        buf_add_ch(&b, ']');
    assert_int_equal(yamljson_parse(b.p, b.len, &j, &err), 0);
    assert_int_equal(json_array_size(j), 1);
    buf_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),         cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_errors),         cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_uses_are_apart), cmocka_unit_test(test_anchors_in_anchors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
