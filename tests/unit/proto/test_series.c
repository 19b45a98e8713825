#include "series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

enum { ITEMS = 1000, POINTS = 64 };

static struct series_item raw(int64_t steps, double value)
{
    struct series_point p = {.steps = steps, .at = (double)steps, .value = value};
    return (struct series_item){p, p};
}

static void test_few(void **state)
{
    struct series_item items[3] = {raw(1, 5), raw(2, 3), raw(9, 4)};
    struct series_point p[SERIES_POINTS_MIN];
    assert_int_equal(series_points(items, 0, 10, p), 0);
    assert_int_equal(series_points(items, 3, 1, p), 3);
    assert_int_equal(p[2].steps, 9);
}

static bool has(const struct series_point *p, size_t n, int64_t steps)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].steps == steps)
            return true;
    return false;
}

/* A spike up, one down, the ends: all are drawn, in order, within the number asked for. */
static void test_extremes(void **state)
{
    struct series_item items[ITEMS];
    struct series_point p[POINTS];
    for (size_t max = SERIES_POINTS_MIN; max <= POINTS; max++) {
        for (int i = 0; i < ITEMS; i++)
            items[i] = raw(i * 10, i % 7);
        items[333] = raw(3330, 1e9);
        items[777] = raw(7770, -1e9);
        size_t n = series_points(items, ITEMS, max, p);
        assert_true(n <= max);
        assert_true(has(p, n, 0) && has(p, n, 9990));
        if (max < 6)
            continue; /* one bucket: its two extremes are these two */
        assert_true(has(p, n, 3330) && has(p, n, 7770));
        for (size_t i = 1; i < n; i++)
            assert_true(p[i - 1].steps < p[i].steps);
    }
}

/* Items that are chunks already give both their points. */
static void test_chunks(void **state)
{
    struct series_item items[ITEMS];
    struct series_point p[POINTS];
    for (int i = 0; i < ITEMS; i++) {
        items[i] = raw(i * 10, 1);
        items[i].high = (struct series_point){.steps = i * 10 + 5, .value = 2};
    }
    assert_int_equal(series_points(items, 20, POINTS, p), 40);
    size_t n = series_points(items, ITEMS, POINTS, p);
    assert_true(n <= POINTS && n > POINTS / 2);
    assert_int_equal(p[1].steps, 5);
    assert_int_equal(p[n - 1].steps, 9995);
}

static void test_parse(void **state)
{
    static const char *const bad[] = {"",
                                      "[",
                                      "[16]",
                                      "[16, \"string\", [1, 2, 3]]",
                                      "[16, 8, [1, 2, 3]]",
                                      "[16, 8, [1, 2, 3], [1, 2]]",
                                      "[16, 8, [1, -2, 3], [1, 2, 3], 1]",
                                      "[16, 8, [1, 2, 3], [1, 3e9, 3], 1]",
                                      "[16, 8, [a, 2, 3], [1, 2, 3], 1]",
                                      "[16 8 [1, 2, 3], [1, 2, 3], 1]"};
    struct series_item i;
    struct det_err err;
    const char *text = "[16, 8.5, [-1.5e3, 20, 1700000000.25], [7, 30, 1700000001], \"NaN\"]";
    assert_int_equal(series_parse_chunk(text, &i, &err), 0);
    assert_true(i.low.value == -1500 && i.low.steps == 20 && i.low.at == 1700000000.25);
    assert_true(i.high.value == 7 && i.high.steps == 30 && i.high.at == 1700000001);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        assert_int_equal(series_parse_chunk(bad[b], &i, &err), DET_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_few), cmocka_unit_test(test_extremes),
                                       cmocka_unit_test(test_chunks), cmocka_unit_test(test_parse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
