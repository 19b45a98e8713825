/* Bodies: spellings, types, bounds, and what errors say. */
#include "wire.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

struct thing {
    const char *name_of_it;
    int flag, level;
    int64_t small, big, at;
    double x;
    json_t *obj, *arr, *any;
};
#define T(member) offsetof(struct thing, member)
static const struct wire_field fields[] = {
    {"nameOfIt", WIRE_STR, T(name_of_it), 0, NULL},
    {"flag", WIRE_BOOL, T(flag), 0, NULL},
    {"level", WIRE_ENUM, T(level), 0, wire_log_level},
    {"small", WIRE_I32, T(small), 0, NULL},
    {"big", WIRE_I64, T(big), 0, NULL},
    {"at", WIRE_TIME, T(at), 0, NULL},
    {"x", WIRE_F64, T(x), 0, NULL},
    {"obj", WIRE_OBJECT, T(obj), 0, NULL},
    {"arr", WIRE_ARRAY, T(arr), 0, NULL},
    {"any", WIRE_ANY, T(any), 0, NULL},
};

static struct thing got;
static struct det_err err;
static json_t *body;

static int decode(const char *text)
{
    json_decref(body);
    body = json_parse(text, strlen(text), &err);
    assert_non_null(body);
    got = (struct thing){
        .name_of_it = "unset", .flag = -1, .level = -1, .small = -7, .big = -7, .at = -7};
    err.text[0] = '\0';
    return wire_decode(body, "thing", fields, sizeof fields / sizeof fields[0], &got, &err);
}

static void refused(const char *text, const char *words)
{
    assert_int_equal(decode(text), DET_EINVAL);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not hold \"%s\"", err.text, words);
}

static void test_spellings(void **state)
{
    assert_int_equal(decode("{\"nameOfIt\":\"a\"}"), 0);
    assert_string_equal(got.name_of_it, "a");
    assert_int_equal(decode("{\"name_of_it\":\"b\",\"unknown\":[1]}"), 0);
    assert_string_equal(got.name_of_it, "b");
    assert_int_equal(decode("{\"nameOfIt\":null,\"flag\":null,\"any\":null}"), 0);
    assert_string_equal(got.name_of_it, "unset");
    assert_int_equal(got.flag, -1);
    assert_null(got.any);
}

static void test_numbers(void **state)
{
    assert_int_equal(
        decode("{\"small\":\"12\",\"big\":\"9223372036854775807\",\"x\":\"-Infinity\"}"), 0);
    assert_int_equal(got.small, 12);
    assert_int_equal(got.big, INT64_MAX);
    assert_true(isinf(got.x) && got.x < 0);
    assert_int_equal(decode("{\"small\":3.0,\"x\":\"NaN\"}"), 0);
    assert_int_equal(got.small, 3);
    assert_true(isnan(got.x));
    refused("{\"small\":2147483648}", "thing.small: 2147483648 does not fit 32 bits");
    refused("{\"small\":1.5}", "thing.small: 1.5 is not");
    refused("{\"big\":\"9223372036854775808\"}", "not an integer");
    refused("{\"big\":\"\"}", "not an integer");
    refused("{\"big\":\" 1\"}", "not an integer");
    refused("{\"big\":1e300}", "64-bit");
    refused("{\"x\":\"1x\"}", "not a number");
    refused("{\"x\":true}", "expected a number, got true");
}

static void test_enums(void **state)
{
    assert_int_equal(decode("{\"level\":\"LOG_LEVEL_WARNING\"}"), 0);
    assert_int_equal(got.level, 4);
    assert_int_equal(decode("{\"level\":5}"), 0);
    assert_int_equal(got.level, 5);
    assert_int_equal(decode("{\"level\":\"ERROR\"}"), 0); /* what shippers are known to send */
    assert_int_equal(got.level, 5);
    refused("{\"level\":\"LOG_LEVEL_WARNIN\"}", "did you mean \"LOG_LEVEL_WARNING\"?");
    refused("{\"level\":77}", "there is no value 77");
    refused("{\"level\":[]}", "expected an enum's name");
    assert_string_equal(wire_name_of(wire_log_level, 5), "LOG_LEVEL_ERROR");
    assert_string_equal(wire_name_of(wire_log_level, 99), "");
}

static void test_types(void **state)
{
    assert_int_equal(decode("{\"at\":\"1970-01-01T00:00:01Z\",\"obj\":{},\"arr\":[],\"any\":7}"),
                     0);
    assert_int_equal(got.at, 1000000);
    assert_int_equal(json_integer_value(got.any), 7);
    refused("{\"nameOfIt\":5}", "thing.nameOfIt: expected a string, got a number");
    refused("{\"flag\":\"true\"}", "thing.flag: expected true or false, got a string");
    refused("{\"obj\":[]}", "expected an object, got an array");
    refused("{\"arr\":{}}", "expected an array, got an object");
    refused("{\"at\":\"yesterday\"}", "thing.at");
    refused("[]", "thing: expected an object, got an array");
}

static void test_required(void **state)
{
    static const struct wire_field need[] = {
        {"nameOfIt", WIRE_STR, T(name_of_it), WIRE_REQUIRED, NULL}};
    JSON_OWN empty = json_object();
    assert_int_equal(wire_decode(empty, "", need, 1, &got, &err), DET_EINVAL);
    assert_string_equal(err.text, "nameOfIt is required");
    assert_int_equal(wire_decode(NULL, "user", need, 1, &got, &err), DET_EINVAL);
    assert_string_equal(err.text, "user is required");
}

static void test_snake(void **state)
{
    char out[16];
    wire_snake("experimentIdFilter.notIn", out, sizeof out);
    assert_true(strlen(out) < sizeof out);
    wire_snake("rankId", out, sizeof out);
    assert_string_equal(out, "rank_id");
}

static int end(void **state)
{
    json_decref(body);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_enums),     cmocka_unit_test(test_types),
        cmocka_unit_test(test_required),  cmocka_unit_test(test_snake),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
