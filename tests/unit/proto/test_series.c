#include "series.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

static void test_within(void **state)
{
    struct series_item items[4] = {raw(1, 5), raw(2, 3), raw(9, 4), raw(12, 1)};
    items[1].high = raw(7, 8).high;
    const struct series_bounds steps = {.from = 2, .to = 10}, part = {.from = 5, .to = 10};
    assert_int_equal(series_within(&steps, items, 4), 2);
    assert_int_equal(items[0].low.steps, 2);
    assert_int_equal(items[0].high.steps, 7);
    assert_int_equal(series_within(&part, items, 2), 2);
    assert_int_equal(items[0].low.steps, 7); /* the other point is not wanted */
    const struct series_bounds times = {.to = INT32_MAX, .after = 7, .before = 9};
    assert_int_equal(series_within(&times, items, 2), 1);
    assert_int_equal(items[0].low.steps, 9);
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

/* Ends of two points each leave no room for a bucket: the extremes are drawn all the same. */
static void test_no_room(void **state)
{
    struct series_item items[10];
    struct series_point p[5];
    for (int i = 0; i < 10; i++) {
        items[i].low = (struct series_point){.steps = i * 10, .value = i == 4 ? -7 : 1};
        items[i].high = (struct series_point){.steps = i * 10 + 5, .value = i == 6 ? 9 : 2};
    }
    for (size_t max = 1; max <= 5; max++) {
        assert_int_equal(series_points(items, 10, max, p), 4);
        assert_true(p[0].steps == 0 && p[1].value == -7 && p[2].value == 9 && p[3].steps == 95);
    }
}

/* Together about as many as one answer may draw, whatever is asked for. */
static void test_share(void **state)
{
    assert_int_equal(series_share(1000, 25), 1000);
    assert_int_equal(series_share(100000, 1), 100000);
    assert_int_equal(series_share(100000, 0), 100000);
    assert_int_equal(series_share(100000, 100), 2000);
    assert_int_equal(series_share(100000, 1000), 200);
    assert_int_equal(series_share(100000, 1000000), SERIES_POINTS_MIN);
    assert_int_equal(series_share(2, 1000000), 2);
}

static void test_parse(void **state)
{
    struct series_item i[4];
    const char *text =
        "[-1.5e3, 20, 1700000000.25][7, 30, 1700000001]\n[0.5,40,1700000002]\n[3,50,4]";
    assert_int_equal(series_items_max(text), 3);
    assert_int_equal(series_parse(text, i), 3);
    assert_true(i[0].low.value == -1500 && i[0].low.steps == 20 && i[0].low.at == 1700000000.25);
    assert_true(i[0].high.value == 7 && i[0].high.steps == 30 && i[0].high.at == 1700000001);
    assert_true(i[1].low.value == 0.5 && i[1].low.steps == 40 && i[1].high.steps == 40);
    assert_true(i[2].low.value == 3 && i[2].high.at == 4);
}

/* Values that are no numbers: their lines are passed over, the next one is read. */
static void test_parse_others(void **state)
{
    static const char *const bad[] = {"[",
                                      "[]",
                                      "x",
                                      "[1, 2]",
                                      "[1 2 3]",
                                      "[1, -2, 3]",
                                      "[1, 3e9, 3]",
                                      "[\"NaN\",2,3]",
                                      "[\"[1,2,3]\",2,3]",
                                      "[[1,2,3],2,3]",
                                      "[{\"a\": [1,2,3]},2,3]",
                                      "[true,2,3]",
                                      "[null,2,3]",
                                      "[1, 2, 3][1, 2]",
                                      "[1, 2, 3]["};
    struct series_item i[2];
    char text[64];
    assert_int_equal(series_items_max(""), 0);
    assert_int_equal(series_parse("", i), 0);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        assert_int_equal(series_parse(bad[b], i), 0);
        snprintf(text, sizeof text, "%s\n[4,5,6]", bad[b]);
        assert_int_equal(series_items_max(text), 2);
        assert_int_equal(series_parse(text, i), 1);
        assert_true(i[0].low.value == 4 && i[0].low.steps == 5 && i[0].high.at == 6);
    }
}

/* Reports of a chunk in one line, between others; one that is cut short ends there. */
static void test_parse_reports(void **state)
{
    static const char *const bad[] = {"#",      "#1",      "#;;",      "#1;2",  "#1;2\n;3",
                                      "#x;2;3", "#-1;2;3", "#3e9;2;3", "#1;;3", "#1;2;x"};
    struct series_item i[8];
    const char *text = "[1,10,5]\n#20,30,40;6,7.5,8;-1e3,0.25,3\n#50;9;4\n#60,70;1,2;5";
    assert_int_equal(series_items_max(text), 7);
    assert_int_equal(series_parse(text, i), 6);
    assert_true(i[1].low.steps == 20 && i[1].low.at == 6 && i[1].low.value == -1000);
    assert_true(i[2].high.steps == 30 && i[2].high.at == 7.5 && i[2].high.value == 0.25);
    assert_true(i[3].low.steps == 40 && i[4].high.steps == 50 && i[5].low.steps == 60);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        assert_int_equal(series_parse(bad[b], i), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),          cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_chunks),       cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_share),        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_within),       cmocka_unit_test(test_parse_others),
        cmocka_unit_test(test_parse_reports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
