#include "metric_chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct metric_point_set reports[METRIC_BATCH_MAX];
static struct metric_chunks chunks;

static void drop(size_t i)
{
    free((char *)reports[i].doc);
    free((struct metric_value *)reports[i].values);
    reports[i] = (struct metric_point_set){0};
}

static int teardown(void **state)
{
    metric_chunks_finish(&chunks);
    for (size_t i = 0; i < DET_ARRAY_LEN(reports); i++)
        drop(i);
    return 0;
}

static void put(size_t i, const char *values)
{
    struct buf doc = BUF_INIT;
    struct metric_values found = {0};
    JSON_OWN j = json_parse(values, strlen(values), NULL);
    assert_non_null(j);
    metric_values_write(&doc, j, &found);
    drop(i);
    reports[i] = (struct metric_point_set){.steps = (int64_t)i * 10,
                                           .time_us = 1700000000000000 + (int64_t)i * 500000,
                                           .doc = doc.p,
                                           .values = found.v,
                                           .n = found.n};
}

static void fill(size_t n)
{
    char text[80];
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "{\"loss\":%zu,\"lr\":0.5}", (i * 7) % 16);
        put(i, text);
    }
}

static void one_chunk(void **state)
{
    fill(16);
    put(3, "{\"lr\":1.5e-07,\"loss\":2.5e16}"); /* in another order */
    put(15, "{\"lr\":-0.0,\"loss\":-1.25}");
    assert_true(metric_chunks_make(&chunks, reports, 16));
    assert_int_equal(chunks.n, 1);
    assert_int_equal(chunks.v[0].end, 16);
    const char *doc = "{\"loss\":[16,2.500000000000011e+16,[-1.25,150,1700000007.5],"
                      "[2.5e+16,30,1700000001.5],-1.25],"
                      "\"lr\":[16,7.00000015,[-0,150,1700000007.5],[0.5,0,1700000000],-0.0]}";
    assert_string_equal(buf_str(&chunks.v[0].doc), doc);
    assert_string_equal(buf_str(&chunks.whole), doc);
    assert_string_equal(buf_str(&chunks.v[0].values),
                        "{\"loss\":\"0,7,14,25000000000000000,12,3,10,1,8,15,6,13,4,11,2,-1.25\","
                        "\"lr\":\"0.5,0.5,0.5,0.00000015,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,"
                        "0.5,0.0\"}");
    assert_string_equal(buf_str(&chunks.v[0].line),
                        "0,10,20,30,40,50,60,70,80,90,100,110,120,130,140,150;"
                        "1700000000,1700000000.5,1700000001,1700000001.5,1700000002,1700000002.5,"
                        "1700000003,1700000003.5,1700000004,1700000004.5,1700000005,1700000005.5,"
                        "1700000006,1700000006.5,1700000007,1700000007.5");
}

/* Never fewer than 16 reports in one, and never more than four. */
static void how_many(void **state)
{
    fill(METRIC_BATCH_MAX);
    for (size_t n = METRIC_CHUNK_REPORTS; n <= METRIC_BATCH_MAX; n++) {
        assert_true(metric_chunks_make(&chunks, reports, n));
        for (size_t i = 0, from = 0; i < chunks.n; from = chunks.v[i++].end)
            assert_in_range(chunks.v[i].end - from, METRIC_CHUNK_REPORTS, 2 * METRIC_CHUNK_REPORTS);
        assert_int_equal(chunks.v[chunks.n - 1].end, n);
        metric_chunks_finish(&chunks);
    }
}

static void refused(void)
{
    assert_false(metric_chunks_make(&chunks, reports, 20));
    assert_int_equal(chunks.n, 0);
}

/* The database looks itself. */
static void not_here(void **state)
{
    static const char *const odd[] = {"{}",
                                      "{\"loss\":1}",
                                      "{\"loss\":1,\"other\":1}",
                                      "{\"loss\":1,\"lr\":2,\"more\":1}",
                                      "{\"loss\":1,\"lr\":\"NaN\"}",
                                      "{\"loss\":1,\"lr\":[1]}",
                                      "{\"loss\":1,\"lr\":null}",
                                      "{\"loss\":1,\"l\\\"r\":1}",
                                      "{\"loss\":1,\"lr\":1e300}"};
    fill(20);
    assert_false(metric_chunks_make(&chunks, reports, METRIC_CHUNK_REPORTS - 1));
    for (size_t i = 0; i < DET_ARRAY_LEN(odd); i++) {
        put(i % 2 ? 19 : 0, odd[i]);
        refused();
        fill(20);
    }
    reports[7].steps = reports[6].steps;
    refused();
    reports[7].steps = 70;
    drop(4);
    reports[4].steps = 40;
    refused();
}

static void too_many_names(void **state)
{
    struct buf b = BUF_INIT;
    for (int i = 0; i <= METRIC_CHUNK_NAMES; i++)
        buf_addf(&b, "%c\"m%d\":1", i ? ',' : '{', i);
    buf_add_ch(&b, '}');
    for (size_t i = 0; i < 20; i++)
        put(i, buf_str(&b));
    buf_finish(&b);
    refused();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_chunk, teardown),
        cmocka_unit_test_teardown(how_many, teardown),
        cmocka_unit_test_teardown(not_here, teardown),
        cmocka_unit_test_teardown(too_many_names, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
