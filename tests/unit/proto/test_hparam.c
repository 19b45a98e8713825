#include "hparam.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "yamljson.h"
#include <math.h>
#include <string.h>

static json_t *space_of(const char *yaml)
{
    json_t *raw = NULL;
    struct det_err err;
    if (yamljson_parse(yaml, strlen(yaml), &raw, &err) < 0)
        fail_msg("%s", err.text);
    json_t *space = hparam_normalise(raw);
    json_decref(raw);
    return space;
}

static void assert_json(const json_t *j, const char *want)
{
    det_cleanup(freep) char *text = json_text(j);
    assert_string_equal(text, want);
}

static void test_normalise(void **state)
{
    JSON_OWN s =
        space_of("{a: 1, b: [x], c: null, g: {d: {type: int, minval: 1e1, maxval: 20}, e: {}}}");
    assert_json(s,
                "{\"a\":{\"type\":\"const\",\"val\":1},\"b\":{\"type\":\"const\",\"val\":[\"x\"]},"
                "\"c\":{\"type\":\"const\",\"val\":null},\"g\":{\"d\":{\"type\":\"int\","
                "\"minval\":10,\"maxval\":20,\"count\":null},\"e\":{}}}");
    JSON_OWN again = hparam_normalise(s);
    assert_true(json_equal(s, again));
}

static void test_check(void **state)
{
    static const struct {
        const char *leaf, *path;
    } bad[] = {
        {"{type: integer, minval: 1, maxval: 2}", "h.x.type: "},
        {"{type: 5}", "h.x.type: "},
        {"{type: const}", "h.x.val: "},
        {"{type: const, val: 1, vals: [1]}", "h.x.vals: "},
        {"{type: int, minval: 1, maxval: 1}", "h.x.maxval: "},
        {"{type: int, minval: 1.5, maxval: 3}", "h.x.minval: "},
        {"{type: int, minval: 1, maxval: 3, count: 0}", "h.x.count: "},
        {"{type: int, maxval: 3}", "h.x.minval: missing"},
        {"{type: double, minval: 2, maxval: 1}", "h.x.maxval: "},
        {"{type: double, minval: -1.7e308, maxval: 1.7e308}", "h.x.maxval: "},
        {"{type: double, minval: a, maxval: 1}", "h.x.minval: "},
        {"{type: log, minval: 0, maxval: 1}", "h.x.base: missing"},
        {"{type: log, base: 0, minval: 0, maxval: 1}", "h.x.base: "},
        {"{type: log, base: 10, minval: 0, maxval: 400}", "h.x.base: "},
        {"{type: categorical, vals: []}", "h.x.vals: "},
        {"{type: categorical, vals: 5}", "h.x.vals: "},
        {"{inner: {type: int, minval: 1, maxvall: 2}}", "h.x.inner.maxvall: unknown"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        struct mistakes m = MISTAKES_INIT;
        det_cleanup(freep) char *yaml = det_asprintf("{x: %s}", bad[i].leaf);
        json_t *raw = NULL;
        assert_int_equal(yamljson_parse(yaml, strlen(yaml), &raw, NULL), 0);
        hparam_check(raw, "h", &m);
        if (!strstr(buf_str(&m.text), bad[i].path))
            fail_msg("%s\n%s", yaml, buf_str(&m.text));
        json_decref(raw);
        mistakes_finish(&m);
    }
}

/* The draws, one by one, from the rules: names in order b, g.a, g.z, l, then c. */
static void test_sample(void **state)
{
    JSON_OWN s = space_of(
        "{l: {type: log, base: 10, minval: -4, maxval: -1},"
        " g: {z: {type: categorical, vals: [p, q, r]}, a: {type: double, minval: 1, maxval: 3}},"
        " b: {type: int, minval: -2, maxval: 7}, k: 5}");
    struct mt19937 r, want;
    mt19937_seed(&r, 42);
    want = r;
    for (int i = 0; i < 100; i++) {
        JSON_OWN got = hparam_sample(s, &r);
        assert_int_equal(json_int(got, "b", 0), -2 + (int64_t)mt19937_bounded(&want, 9));
        assert_true(json_num(json_obj(got, "g"), "a", 0) == mt19937_uniform(&want, 1, 3));
        size_t k = mt19937_bounded(&want, 2);
        assert_string_equal(json_str(json_obj(got, "g"), "z", ""),
                            ((const char *[]){"p", "q", "r"})[k]);
        assert_int_equal(json_int(got, "k", 0), 5);
        assert_true(json_num(got, "l", 0) == pow(10, mt19937_uniform(&want, -4, -1)));
    }
    assert_memory_equal(&r, &want, sizeof r);
}

static void test_sample_wide(void **state)
{
    JSON_OWN s =
        space_of("{x: {type: int, minval: -9223372036854775808, maxval: 9223372036854775807}}");
    struct mt19937 r;
    mt19937_seed(&r, 1);
    JSON_OWN got = hparam_sample(s, &r);
    assert_true(json_is_integer(json_object_get(got, "x")));
}

static void assert_grid(const char *yaml, const char *want)
{
    JSON_OWN s = space_of(yaml);
    JSON_OWN points = json_array();
    for (size_t i = 0; i < hparam_grid_points(s); i++)
        json_array_append_new(points, hparam_grid_point(s, i));
    assert_json(points, want);
}

static void test_grid(void **state)
{
    assert_grid("{}", "[{}]");
    assert_grid("{c: {type: int, minval: 0, maxval: 10, count: 3}}",
                "[{\"c\":0},{\"c\":5},{\"c\":10}]");
    assert_grid("{c: {type: int, minval: 0, maxval: 3, count: 3}}",
                "[{\"c\":0},{\"c\":2},{\"c\":3}]");
    assert_grid("{c: {type: int, minval: -3, maxval: 0, count: 3}}",
                "[{\"c\":-3},{\"c\":-2},{\"c\":0}]");
    assert_grid("{c: {type: int, minval: 0, maxval: 1, count: 9}}", "[{\"c\":0},{\"c\":1}]");
    assert_grid("{c: {type: int, minval: 0, maxval: 5, count: 1}}", "[{\"c\":3}]");
    assert_grid("{c: {type: double, minval: 0, maxval: 1, count: 1}}", "[{\"c\":0.5}]");
    assert_grid("{c: {type: double, minval: 0, maxval: 1, count: 3}}",
                "[{\"c\":0.0},{\"c\":0.5},{\"c\":1.0}]");
    assert_grid("{c: {type: log, base: 10, minval: -2, maxval: 0, count: 3}}",
                "[{\"c\":0.01},{\"c\":0.1},{\"c\":1.0}]");
    assert_grid(
        "{b: {y: {type: categorical, vals: [1, x]}}, a: {type: categorical, vals: [p, q]}, k: 7}",
        "[{\"a\":\"p\",\"b\":{\"y\":1},\"k\":7},{\"a\":\"p\",\"b\":{\"y\":\"x\"},\"k\":7},"
        "{\"a\":\"q\",\"b\":{\"y\":1},\"k\":7},{\"a\":\"q\",\"b\":{\"y\":\"x\"},\"k\":7}]");
}

static void test_grid_limit(void **state)
{
    static const char *const big[] = {
        "{c: {type: double, minval: 0, maxval: 1, count: 100001}}",
        "{c: {type: int, minval: -9223372036854775808, maxval: 9223372036854775807, count: "
        "9223372036854775807}}",
        "{a: {type: double, minval: 0, maxval: 1, count: 1000}, b: {type: double, minval: 0, "
        "maxval: 1, count: 101}}",
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(big); i++) {
        JSON_OWN s = space_of(big[i]);
        assert_true(hparam_grid_points(s) > HPARAM_GRID_MAX);
    }
    JSON_OWN s = space_of("{c: {type: double, minval: 0, maxval: 1, count: 100000}}");
    assert_int_equal(hparam_grid_points(s), 100000);
    JSON_OWN last = hparam_grid_point(s, 99999);
    assert_json(last, "{\"c\":1.0}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalise), cmocka_unit_test(test_check),
        cmocka_unit_test(test_sample),    cmocka_unit_test(test_sample_wide),
        cmocka_unit_test(test_grid),      cmocka_unit_test(test_grid_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
