/* What a trial's measurements say, summed up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "mem.h"
#include "profile_sum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

static void add(struct profile *p, const char *text)
{
    JSON_OWN j = parse(text);
    profile_add(p, j);
}

#define LABELS(name, kind)                                                                         \
    "\"labels\":{\"name\":\"" name                                                                 \
    "\",\"agentId\":\"a\",\"metricType\":\"PROFILER_METRIC_TYPE_" kind "\"}"
#define TIMES                                                                                      \
    "\"timestamps\":[\"2026-01-01T00:00:01Z\",\"2026-01-01T00:00:02Z\",\"2026-01-01T00:00:03.5Z\"]"
#define BATCHES "\"batches\":[7,8,9]"

static void sums(void **state)
{
    struct profile p = {0};
    add(&p, "{\"values\":[0.5,2,1]," BATCHES "," TIMES "," LABELS("train_batch", "TIMING") "}");
    add(&p, "{\"values\":[0.25],\"batches\":[10],\"timestamps\":[\"2026-01-01T00:00:04Z\"]," LABELS(
                "train_batch", "TIMING") "}");
    add(&p,
        "{\"values\":[90,10,50]," BATCHES "," TIMES "," LABELS("cpu_util_simple", "SYSTEM") "}");
    assert_int_equal(p.series.n, 2);
    struct profile_sum s = profile_sum(profile_find(&p, "train_batch"));
    assert_int_equal(s.n, 4);
    assert_true(s.total == 3.75 && s.mean == 0.9375 && s.median == 1);
    assert_true(s.least == 0.25 && s.most == 2 && s.p99 == 1);
    assert_int_equal(s.most_batch, 8);
    struct profile_span span = profile_span(&p); /* 0.0 (batch 8 began) to 4.0 */
    assert_int_equal(span.first, 7);
    assert_int_equal(span.last, 10);
    assert_true(span.seconds == 4);
    assert_string_equal(profile_unit(&p.series.v[0]), "s");
    assert_string_equal(profile_unit(&p.series.v[1]), "%");
    assert_null(profile_find(&p, "no"));
    assert_int_equal(profile_sum(NULL).n, 0);
    profile_finish(&p);
}

static void stalls(void **state)
{
    struct profile p = {0};
    assert_int_equal(profile_stalls(&p).n, 0);
    add(&p, "{\"values\":[5,0.1,7]," BATCHES "," TIMES "," LABELS("dataloader_next", "TIMING") "}");
    assert_int_equal(profile_stalls(&p).n, 0); /* how long a batch trains is not known */
    add(&p, "{\"values\":[1,1,6]," BATCHES "," TIMES "," LABELS("train_batch", "TIMING") "}");
    struct profile_stalls s = profile_stalls(&p);
    assert_int_equal(s.n, 2);
    assert_true(s.limit == 1 && s.seconds == 12);
    profile_finish(&p);
}

static void parts(void **state)
{
    struct profile p = {0};
    assert_null(profile_within(&p, "train_batch.backward")); /* its whole is not known */
    add(&p, "{\"values\":[1,1,6]," BATCHES "," TIMES "," LABELS("train_batch", "TIMING") "}");
    add(&p, "{\"values\":[1,1,6]," BATCHES "," TIMES "," LABELS("validate", "TIMING") "}");
    assert_string_equal(profile_within(&p, "train_batch.backward"), "train_batch");
    assert_string_equal(profile_within(&p, "evaluate_batch"), "validate");
    assert_null(profile_within(&p, "train_batch"));
    assert_null(profile_within(&p, "train_batches"));
    profile_finish(&p);
}

/* Whoever has a trial's token may report: lists of other lengths, values that are none. */
static void hostile(void **state)
{
    static const char *const none[] = {
        "{}",
        "[]",
        "{\"labels\":7,\"values\":[1]}",
        "{\"values\":[1]," BATCHES "," TIMES "}",
        "{\"values\":[1]," BATCHES "," TIMES "," LABELS("", "TIMING") "}",
        "{\"values\":[1]," BATCHES "," TIMES "," LABELS("x", "OTHER") "}"};
    struct profile p = {0};
    for (size_t i = 0; i < DET_ARRAY_LEN(none); i++)
        add(&p, none[i]);
    assert_int_equal(p.series.n, 0);
    add(&p, "{\"values\":[1,\"NaN\",null,4]," BATCHES "," TIMES "," LABELS("x", "MISC") "}");
    add(&p, "{\"values\":[1,2],\"batches\":[\"7\",8],\"timestamps\":[\"soon\",\"later\"]," LABELS(
                "x", "MISC") "}");
    assert_int_equal(p.series.n, 1);
    assert_int_equal(profile_sum(&p.series.v[0]).n, 1);
    struct profile_span span = profile_span(&p);
    assert_true(span.seconds == 0 && span.first == 0 && span.last == 0);
    profile_finish(&p);
}

static void reports(void **state)
{
    struct profile p = {0};
    struct profile_span span;
    JSON_OWN one = parse("[{\"training\":{\"totalBatches\":10,\"endTime\":"
                         "\"2026-01-01T00:00:01Z\"}}]");
    assert_false(profile_add_reports(&p, one, &span));
    assert_false(profile_add_reports(&p, NULL, &span));
    JSON_OWN many =
        parse("[{\"training\":{\"totalBatches\":10,\"endTime\":\"2026-01-01T00:00:01Z\"}}, 7, {},"
              "{\"training\":{\"totalBatches\":20,\"endTime\":\"2026-01-01T00:00:03Z\"}},"
              "{\"training\":{\"totalBatches\":15,\"endTime\":\"2026-01-01T00:00:04Z\"}},"
              "{\"training\":{\"totalBatches\":30,\"endTime\":\"2026-01-01T00:00:03.0005Z\"}},"
              "{\"training\":{\"totalBatches\":\"x\",\"endTime\":\"2026-01-01T00:00:05Z\"}},"
              "{\"training\":{\"totalBatches\":40,\"endTime\":\"2026-01-01T00:00:04Z\"}},"
              "{\"training\":{\"totalBatches\":50,\"endTime\":\"2026-01-01T00:00:04Z\"}}]");
    assert_true(profile_add_reports(&p, many, &span));
    const struct profile_sum s = profile_sum(profile_find(&p, "batches_per_second"));
    assert_int_equal(s.n, 2);
    assert_true(s.least == 5 && s.most == 20 && s.most_batch == 40);
    assert_true(span.first == 10 && span.last == 50 && span.seconds == 3);
    profile_finish(&p);
}

static void assert_when(int64_t begin_on_batch, double since, const char *expected)
{
    char *got det_cleanup(freep) = profile_when(begin_on_batch, since);
    assert_string_equal(got, expected);
}

/* A trial that waits, or imports what it needs, has no batch to count from. */
static void when_measurements_come(void **state)
{
    JSON_OWN two = parse("[{}, {\"training\":{\"totalBatches\":10,\"endTime\":"
                         "\"1970-01-01T00:00:07Z\"}}, {\"training\":{\"totalBatches\":20,"
                         "\"endTime\":\"1970-01-01T00:00:09Z\"}}]");
    assert_int_equal(profile_first_report(two), 7000000);
    assert_int_equal(profile_first_report(NULL), 0);
    assert_when(0, -1, "the first measurements come 10 s after its first batch");
    assert_when(0, 4, "the first measurements come in about 6 s");
    assert_when(0, 10, "the first measurements come 10 s after its first batch");
    assert_when(5, 4, "the first measurements come 10 s after batch 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),    cmocka_unit_test(stalls),
        cmocka_unit_test(parts),   cmocka_unit_test(hostile),
        cmocka_unit_test(reports), cmocka_unit_test(when_measurements_come)};
    return cmocka_run_group_tests_name("profile of det", tests, NULL, NULL);
}
