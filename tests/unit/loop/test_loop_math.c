/* The loop's arithmetic against the tables of docs/contract/loop.md 2, 5, 7, 8. */
#include "loop_math.h"
#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Batch indices after which the scheduler was stepped: 12 batches, epochs of 5. */
static void steps_of(int64_t a, enum loop_step_mode mode, int64_t f, char *out, size_t cap)
{
    struct loop_lr lr = {.mode = mode, .frequency = f};
    out[0] = 0;
    for (int64_t b = 0; b < 12; b++)
        for (int64_t n = loop_lr_steps(&lr, a, b, 5); n > 0; n--) {
            size_t at = strlen(out);
            snprintf(out + at, cap - at, "%s%lld", at ? "," : "", (long long)b);
        }
}

static void lr_steps(void **state)
{
    static const struct {
        int64_t aggregation;
        enum loop_step_mode mode;
        int64_t frequency;
        const char *want;
    } rows[] = {
        {1, LOOP_STEP_EVERY_BATCH, 1, "0,1,2,3,4,5,6,7,8,9,10,11"},
        {1, LOOP_STEP_EVERY_OPTIMIZER_STEP, 1, "0,1,2,3,4,5,6,7,8,9,10,11"},
        {1, LOOP_STEP_EVERY_BATCH, 2, "1,3,5,7,9,11"},
        {1, LOOP_STEP_EVERY_OPTIMIZER_STEP, 2, "1,3,5,7,9,11"},
        {1, LOOP_STEP_EVERY_EPOCH, 1, "4,9"},
        {1, LOOP_STEP_EVERY_EPOCH, 2, "9"},
        {2, LOOP_STEP_EVERY_BATCH, 1, "1,1,3,3,5,5,7,7,9,9,11,11"},
        {2, LOOP_STEP_EVERY_BATCH, 2, "1,3,5,7,9,11"},
        {2, LOOP_STEP_EVERY_OPTIMIZER_STEP, 1, "1,3,5,7,9,11"},
        {2, LOOP_STEP_EVERY_OPTIMIZER_STEP, 2, "1,3,5,7,9,11"},
        {2, LOOP_STEP_EVERY_EPOCH, 1, "3,9"},
        {2, LOOP_STEP_EVERY_EPOCH, 2, "9"},
        {3, LOOP_STEP_EVERY_BATCH, 1, "2,2,2,5,5,5,8,8,8,11,11,11"},
        {3, LOOP_STEP_EVERY_BATCH, 2, "2,5,5,8,11,11"},
        {3, LOOP_STEP_EVERY_OPTIMIZER_STEP, 1, "2,5,8,11"},
        {3, LOOP_STEP_EVERY_OPTIMIZER_STEP, 2, "5,11"},
        {3, LOOP_STEP_EVERY_EPOCH, 1, "2,8"},
        {3, LOOP_STEP_EVERY_EPOCH, 2, "8"},
        {1, LOOP_STEP_MANUAL, 1, ""},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        char got[100];
        steps_of(rows[i].aggregation, rows[i].mode, rows[i].frequency, got, sizeof got);
        assert_string_equal(got, rows[i].want);
    }
}

static void due(void **state)
{
    assert_false(loop_due((struct loop_unit){.n = 0}, 0, 3));
    assert_true(loop_due((struct loop_unit){.n = 2}, 3, 3));
    assert_false(loop_due((struct loop_unit){.n = 2}, 2, 3));
    assert_true(loop_due((struct loop_unit){.kind = LOOP_EPOCHS, .n = 2}, 5, 3));
    assert_false(loop_due((struct loop_unit){.kind = LOOP_EPOCHS, .n = 2}, 2, 3));
    assert_false(loop_due((struct loop_unit){.kind = LOOP_EPOCHS, .n = 1}, 3, 3));
    assert_false(loop_due((struct loop_unit){.kind = LOOP_EPOCHS, .n = 1}, 3, INT64_MAX));
}

static double value_of(const struct loop_metrics *m, const char *name)
{
    const struct loop_metric *x = loop_metrics_find(m, name);
    double v = 0;
    assert_non_null(x);
    assert_true(loop_metric_scalar(x, &v));
    return v;
}

static void averages(void **state)
{
    struct loop_metrics rows[2] = {LOOP_METRICS_INIT, LOOP_METRICS_INIT}, avg = LOOP_METRICS_INIT;
    double a[] = {1, 2, 3}, b[] = {4, 5, 9};
    struct det_err err;
    for (int i = 0; i < 2; i++) {
        loop_metrics_f64(&rows[i], "loss", i + 1);
        loop_metrics_array(&rows[i], "array", i ? b : a, 3);
        loop_metrics_array(&rows[i], "ragged", a, (size_t)i + 1);
        loop_metrics_none(&rows[i], "never");
        if (i)
            loop_metrics_f64(&rows[i], "once", 7);
        else
            loop_metrics_none(&rows[i], "once");
        JSON_OWN text = json_string("x");
        loop_metrics_json(&rows[i], "text", text);
    }
    assert_int_equal(loop_average(rows, 2, &avg, &err), 0);
    assert_true(value_of(&avg, "loss") == 1.5);
    assert_true(value_of(&avg, "array") == 4);
    assert_true(value_of(&avg, "once") == 7);
    assert_true(isnan(value_of(&avg, "never")));
    assert_int_equal(loop_metrics_find(&avg, "ragged")->kind, LOOP_METRIC_NONE);
    assert_int_equal(loop_metrics_find(&avg, "text")->kind, LOOP_METRIC_NONE);
    loop_metrics_f64(&rows[1], "late", 1);
    assert_int_equal(loop_average(rows, 2, &avg, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "inconsistent training metrics"));
    assert_non_null(strstr(err.text, "late"));
    for (int i = 0; i < 2; i++)
        loop_metrics_finish(&rows[i]);
    loop_metrics_finish(&avg);
}

static void what_comes_later_is_settled(void **state)
{
    struct loop_metrics m = LOOP_METRICS_INIT, copy = LOOP_METRICS_INIT;
    double v;
    loop_metrics_f64(&m, "now", 1);
    loop_metrics_later(&m, "loss", 1);
    loop_metrics_later(&m, "lost", 2);
    assert_false(loop_metric_scalar(loop_metrics_find(&m, "loss"), &v));
    loop_metrics_merge(&copy, &m);
    loop_metrics_settle(&copy, (double[]){7, 8}, 2);
    assert_true(value_of(&copy, "now") == 1);
    assert_true(value_of(&copy, "loss") == 8);
    assert_true(isnan(value_of(&copy, "lost")));
    loop_metrics_later(&copy, "now", 0);
    loop_metrics_f64(&copy, "now", 2); /* set again before it came */
    loop_metrics_settle(&copy, (double[]){7}, 1);
    assert_true(value_of(&copy, "now") == 2);
    loop_metrics_finish(&m);
    loop_metrics_finish(&copy);
}

static void averages_over_ranks(void **state)
{
    struct loop_metrics r[2] = {LOOP_METRICS_INIT, LOOP_METRICS_INIT}, out = LOOP_METRICS_INIT;
    const struct loop_metrics *ranks[2] = {&r[0], &r[1]};
    double a[] = {1, 2};
    loop_metrics_f64(&r[0], "x", 1);
    loop_metrics_f64(&r[1], "x", 4);
    loop_metrics_array(&r[0], "array", a, 2);
    loop_metrics_array(&r[1], "array", a, 2);
    loop_metrics_none(&r[0], "half");
    loop_metrics_f64(&r[1], "half", 3);
    loop_metrics_none(&r[0], "none");
    loop_metrics_none(&r[1], "none");
    assert_int_equal(loop_average_ranks(ranks, 2, 1, &out, NULL), 0);
    assert_true(value_of(&out, "x") == 2.5);
    assert_true(value_of(&out, "array") == 1.5);
    assert_true(value_of(&out, "half") == 3);
    assert_true(isnan(value_of(&out, "none")));
    loop_metrics_finish(&r[0]);
    loop_metrics_finish(&r[1]);
    loop_metrics_finish(&out);
}

/* The rank, and the word for it, are those of the value that is named. */
static void infinite_values_of_ranks(void **state)
{
    struct loop_metrics a = LOOP_METRICS_INIT, b = LOOP_METRICS_INIT, avg = LOOP_METRICS_INIT;
    const struct loop_metrics *ranks[] = {&a, &b};
    loop_metrics_none(&a, "note");
    loop_metrics_f64(&a, "loss", 1);
    loop_metrics_f64(&a, "aux", INFINITY);
    loop_metrics_none(&b, "note");
    loop_metrics_f64(&b, "loss", NAN);
    loop_metrics_f64(&b, "aux", -INFINITY);
    assert_int_equal(loop_average_ranks(ranks, 2, 1, &avg, NULL), 0);
    struct loop_infinite f = loop_find_infinite(ranks, 2, &avg, 1);
    assert_string_equal(f.name, "loss");
    assert_true(f.rank == 1 && isnan(f.value));
    loop_metrics_f64(&b, "loss", 1);
    assert_int_equal(loop_average_ranks(ranks, 2, 1, &avg, NULL), 0);
    f = loop_find_infinite(ranks, 2, &avg, 1); /* the mean is NaN */
    assert_string_equal(f.name, "aux");
    assert_true(f.rank == 0 && isinf(f.value));
    loop_metrics_f64(&a, "aux", 1e308);
    loop_metrics_f64(&b, "aux", 1e308);
    assert_int_equal(loop_average_ranks(ranks, 2, 1, &avg, NULL), 0);
    f = loop_find_infinite(ranks, 2, &avg, 1);
    assert_true(f.rank == -1 && isinf(f.value));
    loop_metrics_f64(&b, "aux", 1);
    assert_int_equal(loop_average_ranks(ranks, 2, 1, &avg, NULL), 0);
    assert_null(loop_find_infinite(ranks, 2, &avg, 1).name); /* nor is a note that nobody has */
    loop_metrics_finish(&a);
    loop_metrics_finish(&b);
    loop_metrics_finish(&avg);
}

static void validation_reductions(void **state)
{
    struct loop_metrics rows[2] = {LOOP_METRICS_INIT, LOOP_METRICS_INIT}, out = LOOP_METRICS_INIT;
    enum loop_reduction how[] = {LOOP_AVG, LOOP_SUM, LOOP_MAX, LOOP_MIN};
    static const char *names[] = {"avg", "sum", "max", "min"};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            double v[] = {i + 1, 2 * i - 3};
            loop_metrics_array(&rows[i], names[k], v, 2);
        }
    assert_int_equal(loop_reduce_rows(rows, 2, how, &out, NULL), 0); /* 1 -3 2 -1 */
    assert_true(value_of(&out, "avg") == -0.25);
    assert_true(value_of(&out, "sum") == -1);
    assert_true(value_of(&out, "max") == 2);
    assert_true(value_of(&out, "min") == -3);
    struct loop_partial p[3] = {{.batches = 3}, {.batches = 0}, {.batches = 1}};
    for (int k = 0; k < 4; k++) {
        loop_metrics_f64(&p[0].metrics, names[k], 1);
        loop_metrics_f64(&p[2].metrics, names[k], 5);
    }
    assert_int_equal(loop_reduce_ranks(p, 3, how, &out, NULL), 0);
    assert_true(value_of(&out, "avg") == 2);
    assert_true(value_of(&out, "sum") == 6);
    assert_true(value_of(&out, "max") == 5);
    assert_true(value_of(&out, "min") == 1);
    for (int i = 0; i < 2; i++)
        loop_metrics_finish(&rows[i]);
    for (int i = 0; i < 3; i++)
        loop_metrics_finish(&p[i].metrics);
    loop_metrics_finish(&out);
}

static void metrics_table(void **state)
{
    struct loop_metrics m = LOOP_METRICS_INIT, back = LOOP_METRICS_INIT;
    double a[] = {1, NAN};
    loop_metrics_f64(&m, "b", INFINITY);
    loop_metrics_array(&m, "a", a, 2);
    loop_metrics_none(&m, "n");
    loop_metrics_f64(&m, "b", 0.1);
    JSON_OWN j = loop_metrics_to_json(&m);
    det_cleanup(freep) char *text = json_text(j);
    assert_string_equal(text, "{\"b\":0.1,\"a\":[1.0,\"NaN\"],\"n\":null}");
    loop_metrics_from_json(&back, j);
    assert_true(value_of(&back, "b") == 0.1);
    assert_int_equal(loop_metrics_find(&back, "n")->kind, LOOP_METRIC_NONE);
    const struct loop_metric *list = loop_metrics_find(&back, "a"); /* as before the wire */
    assert_int_equal(list->kind, LOOP_METRIC_ARRAY);
    assert_true(list->n == 2 && list->array[0] == 1 && isnan(list->array[1]));
    char name[2 * LOOP_METRIC_NAME_MAX];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    loop_metrics_f64(&m, name, 1);
    loop_metrics_f64(&m, name, 2);
    assert_int_equal(m.n, 4);
    assert_int_equal(strlen(m.v[3].name), LOOP_METRIC_NAME_MAX);
    loop_metrics_finish(&m);
    loop_metrics_finish(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lr_steps),
        cmocka_unit_test(due),
        cmocka_unit_test(averages),
        cmocka_unit_test(what_comes_later_is_settled),
        cmocka_unit_test(averages_over_ranks),
        cmocka_unit_test(infinite_values_of_ranks),
        cmocka_unit_test(validation_reductions),
        cmocka_unit_test(metrics_table),
    };
    return cmocka_run_group_tests_name("loop_math", tests, NULL, NULL);
}
