#include "metric_bundle.h"

#include "rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct metric_bundle bundle;

static int teardown(void **state)
{
    metric_bundle_finish(&bundle);
    return 0;
}

static bool read_text(const char *text)
{
    metric_bundle_finish(&bundle);
    return metric_bundle_read(&bundle, text, strlen(text));
}

static void expect_texts(size_t i, const char *metrics, const char *batches)
{
    const struct metric_report *r = &bundle.v[i];
    assert_string_equal(bundle.texts.p + r->metrics, metrics);
    if (!batches) {
        assert_int_equal(r->batches, SIZE_MAX);
        return;
    }
    assert_string_equal(bundle.texts.p + r->batches, batches);
    assert_int_equal(r->batches_len, strlen(batches));
}

static void expect_number(size_t i, const char *name, const char *text, double number)
{
    const struct metric_report *r = &bundle.v[0];
    const struct metric_value *v = &bundle.values.v[r->values + i];
    const char *object = bundle.texts.p + r->object;
    assert_int_equal(v->name_len, strlen(name));
    assert_memory_equal(object + v->name, name, v->name_len);
    assert_int_equal(v->text_len, strlen(text));
    assert_memory_equal(object + v->text, text, v->text_len);
    assert_true(v->number == number);
}

static void as_trials_send(void **state)
{
    assert_true(read_text(
        "{\"reports\":[{\"group\":\"training\",\"metrics\":{\"metrics\":{\"avgMetrics\":"
        "{\"loss\":0.25,\"lr\":1e-07},\"batchMetrics\":null},\"stepsCompleted\":7,\"trialId\":3,"
        "\"trialRunId\":2}},\n {\"metrics\": {\"trialId\": 3, \"metrics\": {\"batchMetrics\": "
        "[{\"a\": 1, \"b\": 2.50}, {\"b\": 3, \"a\": 1}, {}], \"avgMetrics\": {}}}, \"group\": "
        "\"validation\"} ] }\n"));
    assert_int_equal(bundle.n, 2);
    assert_int_equal(bundle.v[0].steps, 7);
    assert_int_equal(bundle.v[0].trial_id, 3);
    assert_int_equal(bundle.v[0].run_id, 2);
    assert_string_equal(bundle.texts.p + bundle.v[0].group, "training");
    expect_texts(0, "{\"avg_metrics\":{\"loss\":0.25,\"lr\":1e-07}}", NULL);
    assert_int_equal(bundle.v[0].values_n, 2);
    expect_number(0, "loss", "0.25", 0.25);
    expect_number(1, "lr", "1e-07", 1e-07);
    assert_int_equal(bundle.v[1].steps, 0);
    assert_int_equal(bundle.v[1].run_id, 0);
    assert_int_equal(bundle.v[1].values_n, 0);
    expect_texts(1, "{\"validation_metrics\":{}}", "[{\"a\":1,\"b\":2.5},{\"b\":3,\"a\":1},{}]");
}

#define ONE(averages)                                                                              \
    "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":" averages            \
    "},\"stepsCompleted\":1}}]}"

/* Each is left to json_parse(), which takes it or says why not. */
static void not_plain(void **state)
{
    static const char *const odd[] = {
        "",
        "{}",
        "[]",
        "{\"reports\":[]}",
        "{\"reports\":null}",
        "{\"reports\":[{}]}",
        "\0{",
        ONE("{}") "x",
        ONE("null"),
        ONE("{\"a\":1,\"b\":2,\"a\":1}"),
        ONE("{\"a\":\"NaN\"}"),
        ONE("{\"a\":null}"),
        ONE("{\"a\":[1]}"),
        ONE("{\"a\":1,}"),
        ONE("{\"a\" 1}"),
        ONE("{\"\\u0061\":1}"),
        ONE("{\"\xc3\xa4\":1}"),
        ONE("{\"a\n\":1}"),
        ONE("{\"a\":01}"),
        ONE("{\"a\":-}"),
        ONE("{\"a\":1.}"),
        ONE("{\"a\":.5}"),
        ONE("{\"a\":1e}"),
        ONE("{\"a\":1e999}"),
        ONE("{\"a\":0x10}"),
        ONE("{\"a\":+1}"),
        ONE("{\"a\":-0}"),
        ONE("{\"a\":1234567890123456789}"),
        ONE("{\"a\":1") /* cut */,
        ONE("{},\"more\":1"),
        ONE("{},\"avgMetrics\":{}"),
        ONE("{},\"batchMetrics\":[{\"a\":1,\"a\":1}]"),
        ONE("{},\"batchMetrics\":[1]"),
        ONE("{},\"batchMetrics\":{}"),
        ONE("{},\"batch_metrics\":[]"),
        "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{}}}]}",
        "{\"reports\":[{\"group\":\"x\"}]}",
        "{\"reports\":[{\"metrics\":{\"metrics\":{\"avgMetrics\":{}}}}]}",
        "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":{}},"
        "\"stepsCompleted\":-1}}]}",
        "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":{}},"
        "\"stepsCompleted\":\"1\"}}]}",
        "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":{}},"
        "\"trialId\":2147483648}}]}",
        "{\"reports\":[{\"group\":\"x.y\",\"metrics\":{\"metrics\":{\"avgMetrics\":{}}}}]}",
        "{\"reports\":[{\"group\":\"\",\"metrics\":{\"metrics\":{\"avgMetrics\":{}}}}]}"};
    for (size_t i = 0; i < DET_ARRAY_LEN(odd); i++) {
        if (read_text(odd[i]))
            fail_msg("taken: %s", odd[i]);
        assert_int_equal(bundle.n, 0);
        assert_null(bundle.texts.p);
    }
    const char nul[] = ONE("{}") "\0";
    assert_false(metric_bundle_read(&bundle, nul, sizeof nul - 1));
    assert_true(read_text(nul));
}

/* Wherever the text ends. */
static void cut_short(void **state)
{
    static const char text[] = ONE("{\"a\":1.5e3,\"b\":-2},\"batchMetrics\":[{\"a\":1}]");
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *copy = det_memdup(text, n ? n : 1);
        assert_false(metric_bundle_read(&bundle, copy, n));
        free(copy);
    }
    assert_true(read_text(text));
}

static void as_many_as_fit(void **state)
{
    struct buf b = BUF_INIT;
    for (int i = 0; i < METRIC_CHUNK_NAMES; i++)
        buf_addf(&b, "%c\"m%d\":1", i ? ',' : '{', i);
    det_cleanup(freep) char *most = det_asprintf(
        "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":%s}}}}]}", b.p);
    det_cleanup(freep) char *more = det_asprintf(
        "{\"reports\":[{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":%s,\"n\":1}}}}]}",
        b.p);
    assert_true(read_text(most));
    assert_false(read_text(more));
    buf_clear(&b);
    buf_add_str(&b, "{\"reports\":[");
    for (int i = 0; i <= METRIC_BATCH_MAX; i++) {
        buf_addf(&b, "%s{\"group\":\"x\",\"metrics\":{\"metrics\":{\"avgMetrics\":{}}}}",
                 i ? "," : "");
        size_t len = b.len;
        buf_add_str(&b, "]}");
        assert_int_equal(read_text(b.p), i < METRIC_BATCH_MAX);
        b.len = len;
    }
    buf_finish(&b);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* The number in a report is what json_write() makes of it. */
static void compare_number(const char *text)
{
    struct buf wanted = BUF_INIT;
    char report[200];
    snprintf(report, sizeof report, ONE("{\"a\":%s}"), text);
    JSON_OWN j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    json_write(&wanted, j);
    if (!read_text(report))
        fail_msg("not taken: %s", text);
    expect_number(0, "a", wanted.p, json_number_value(j));
    buf_finish(&wanted);
}

static void number_forms(void **state)
{
    static const char *const forms[] = {"0",
                                        "7",
                                        "-7",
                                        "123456789012345678",
                                        "0.0",
                                        "-0.0",
                                        "0.00",
                                        "-0.000",
                                        "1.0",
                                        "1.50",
                                        "100.0",
                                        "0.1",
                                        "0.0001",
                                        "0.00012",
                                        "0.00001",
                                        "0.000012",
                                        "-0.00001",
                                        "1e5",
                                        "1E5",
                                        "1e-5",
                                        "1.5e+22",
                                        "1e-400",
                                        "1e308",
                                        "5e-324",
                                        "0.1234567",
                                        "0.30000000000000004",
                                        "0.12345678955316544",
                                        "0.300000000000000000001",
                                        "999999999999999.0",
                                        "99999999999999.5",
                                        "123456789012345.0",
                                        "1234567890123456.0",
                                        "12345678901234567890.5",
                                        "0.100000000000000",
                                        "2.2250738585072011e-308"};
    for (size_t i = 0; i < DET_ARRAY_LEN(forms); i++)
        compare_number(forms[i]);
}

static double random_double(struct mt19937 *r)
{
    return (mt19937_double(r) - 0.5) * pow(10, mt19937_uniform(r, -12, 17));
}

static void random_numbers(void **state)
{
    static const char *const formats[] = {"%.*f", "%.*e", "%.*g"};
    struct mt19937 r;
    char text[64];
    mt19937_seed(&r, 7);
    for (size_t i = 0; i < 100000; i++) {
        int digits = (int)mt19937_bounded(&r, 18);
        snprintf(text, sizeof text, formats[i % 3], digits, random_double(&r));
        if (strlen(text) <= 40 && (strpbrk(text, ".e") || strcmp(text, "-0") != 0))
            compare_number(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(as_trials_send, teardown),
        cmocka_unit_test_teardown(not_plain, teardown),
        cmocka_unit_test_teardown(cut_short, teardown),
        cmocka_unit_test_teardown(as_many_as_fit, teardown),
        cmocka_unit_test_teardown(number_forms, teardown),
        cmocka_unit_test_teardown(random_numbers, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
