/* Tables of settings beyond what the master's own uses: lists of maps, maps within them. */
#include "settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "mem.h"
#include "yamljson.h"

struct kept {
    int first;
    char *name;
    int64_t wait_ms;
    int small, kind;
    bool on;
    double share;
};

#define KEPT(m) .at = offsetof(struct kept, m), .bytes = sizeof(((struct kept *)NULL)->m)
static const struct setting rows[] = {
    {.path = "name", .type = SETTING_TEXT, .fallback = "x", .help = "A name", KEPT(name)},
    {.path = "wait", .type = SETTING_SECONDS, .fallback = "5", .help = "A wait", KEPT(wait_ms)},
    {.path = "a.small",
     .type = SETTING_INT,
     .min = -3,
     .max = 3,
     .fallback = "2",
     .help = "Small",
     KEPT(small)},
    {.path = "a.kind",
     .type = SETTING_ENUM,
     .choices = "one two",
     .fallback = "two",
     .help = "Kind",
     KEPT(kind)},
    {.path = "a.on", .type = SETTING_BOOL, .fallback = "true", .help = "On", KEPT(on)},
    {.path = "a.share", .type = SETTING_NUM, .help = "Share", KEPT(share)},
    {.path = "pools[].name", .type = SETTING_TEXT, .fallback = "p", .max = 8, .help = "Its name"},
    {.path = "pools[].inner.key", .type = SETTING_TEXT, .help = "A key", .secret = true},
};
static const struct settings table = {rows, DET_ARRAY_LEN(rows)};

static json_t *yaml(const char *text, json_t **lines)
{
    json_t *j = NULL;
    struct det_err err;
    if (yamljson_parse_lines(text, strlen(text), &j, lines, &err) < 0)
        fail_msg("%s", err.text);
    return j;
}

static void assert_says(const char *text, const char *said)
{
    struct mistakes errs = MISTAKES_INIT;
    JSON_OWN lines = NULL;
    JSON_OWN raw = yaml(text, &lines);
    settings_check(&table, raw, lines, &errs);
    assert_string_equal(buf_str(&errs.text), said);
    mistakes_finish(&errs);
}

static void test_check(void **state)
{
    assert_says("", "");
    assert_says("name: y\npools:\n- {name: a, inner: {key: b}}\n- inner: null\n", "");
    assert_says("a:\n  smal: 1\n", "line 2: a.smal: no such setting; did you mean small?\n");
    assert_says("pools:\n- nam: a\n- 5\n- inner:\n    kee: 1\n",
                "line 2: pools[0].nam: no such setting; did you mean name?\n"
                "line 3: pools[1]: expected a map\n"
                "line 5: pools[2].inner.kee: no such setting; did you mean key?\n");
    assert_says("pools: [{name: \"12345678\"}]\n", "");
    assert_says("pools: [{name: \"123456789\"}]\n",
                "line 1: pools[0].name: expected text of at most 8 bytes, got \"123456789\"\n");
    assert_says("pools: {}\na: []\n", "line 1: pools: expected a list of maps\n"
                                      "line 2: a: expected a map of settings\n");
    assert_says("a: {small: 4, share: 0, kind: three, on: 1}\n",
                "line 1: a.small: expected a whole number from -3 to 3, got 4\n"
                "line 1: a.share: expected a number above 0, got 0\n"
                "line 1: a.kind: expected one of: one two, got \"three\"\n"
                "line 1: a.on: expected true or false, got 1\n");
    assert_says("a.small: 4\n", "line 1: a.small: no such setting; --print-example shows all\n");
    assert_says("pools[]: 1\n", "line 1: pools[]: no such setting; did you mean pools?\n");
}

static void test_fill_and_bind(void **state)
{
    JSON_OWN lines = NULL;
    JSON_OWN raw =
        yaml("pools: [{inner: {key: s3cret}}, {name: q}]\na: {kind: ONE, share: 1.5}\n", &lines);
    JSON_OWN tree = settings_fill(&table, raw);
    JSON_OWN masked = settings_mask(&table, tree);
    det_cleanup(freep) char *text = json_text(masked);
    assert_string_equal(text,
                        "{\"name\":\"x\",\"wait\":5,\"a\":{\"small\":2,\"kind\":\"ONE\",\"on\":"
                        "true,\"share\":1.5},\"pools\":[{\"name\":\"p\",\"inner\":{\"key\":"
                        "\"********\"}},{\"name\":\"q\",\"inner\":{\"key\":null}}]}");
    struct kept k = {.share = 9};
    settings_bind(&table, tree, &k);
    assert_string_equal(k.name, "x");
    assert_int_equal(k.wait_ms, 5000);
    assert_int_equal(k.small, 2);
    assert_int_equal(k.kind, 0);
    assert_true(k.on);
    assert_true(k.share == 1.5);
    settings_unbind(&table, &k);
}

static void test_env(void **state)
{
    static char *env[] = {"DET_A_SMALL=-1", "DET_NAME=1", "DET_WAIT=1s",
                          "DET_NAMES=z",    "PATH=/",     NULL};
    struct mistakes errs = MISTAKES_INIT;
    JSON_OWN raw = json_object();
    settings_set_env(&table, raw, env, &errs);
    assert_string_equal(
        buf_str(&errs.text),
        "DET_WAIT: expected a whole number of seconds from 0 to 2147483647, got \"1s\"\n");
    det_cleanup(freep) char *text = json_text(raw);
    assert_string_equal(text, "{\"name\":\"1\",\"a\":{\"small\":-1}}");
    mistakes_finish(&errs);
}

static void test_example(void **state)
{
    struct buf out = BUF_INIT;
    settings_example(&table, &out);
    const char *list = strstr(buf_str(&out), "#pools:\n#  - name: p\n");
    assert_non_null(list);
    assert_non_null(strstr(list, "#    inner:\n#      key: null\n"));
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_fill_and_bind),
        cmocka_unit_test(test_env),
        cmocka_unit_test(test_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
