/*
 * Lines of a series as the database sends them, drawn at a resolution that the first byte says: as
 * many points as allowed, each step once and in order, all of them from the lines, and the extremes
 * among them.
 */
#include "mem.h"
#include "series.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static bool is_same(const struct series_point *a, const struct series_point *b)
{
    return a->steps == b->steps && memcmp(&a->value, &b->value, sizeof a->value) == 0;
}

static bool is_of(const struct series_point *p, const struct series_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(p, &items[i].low) || is_same(p, &items[i].high))
            return true;
    return false;
}

/* As the database makes them: by steps, each a report, or the lowest and highest of several. */
static bool is_sound(const struct series_item *items, size_t n)
{
    int64_t last = -1;
    for (size_t i = 0; i < n; i++) {
        const struct series_item *x = &items[i];
        bool one = x->low.steps == x->high.steps, low_first = x->low.steps < x->high.steps;
        if ((low_first ? x->low.steps : x->high.steps) <= last ||
            !(x->low.value <= x->high.value) || (one && x->low.value < x->high.value))
            return false;
        last = low_first ? x->high.steps : x->low.steps;
    }
    return true;
}

static void check_extremes(const struct series_item *items, size_t n, const struct series_point *p,
                           size_t points)
{
    double low = INFINITY, high = -INFINITY, drawn_low = INFINITY, drawn_high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, items[i].low.value);
        high = fmax(high, items[i].high.value);
    }
    for (size_t i = 0; i < points; i++) {
        drawn_low = fmin(drawn_low, p[i].value);
        drawn_high = fmax(drawn_high, p[i].value);
    }
    require(low == drawn_low && high == drawn_high);
}

static void check_drawn(const struct series_item *items, size_t n, size_t max)
{
    size_t room = max < SERIES_POINTS_MIN ? SERIES_POINTS_MIN : max;
    det_cleanup(freep) struct series_point *p = det_reallocarray(NULL, room, sizeof *p);
    size_t points = series_points(items, n, max, p);
    require(points <= room && (points > 0) == (n > 0));
    for (size_t i = 0; i < points; i++)
        require(is_of(&p[i], items, n) && (i == 0 || p[i].steps > p[i - 1].steps));
    if (is_sound(items, n))
        check_extremes(items, n, p, points);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    det_cleanup(freep) char *text = det_strndup((const char *)data + 1, size - 1);
    size_t lines = series_items_max(text);
    det_cleanup(freep) struct series_item *items = det_reallocarray(NULL, lines + 1, sizeof *items);
    size_t n = series_parse(text, items);
    require(n <= lines && series_buckets(data[0]) > 0);
    for (size_t i = 0; i < n; i++)
        require(items[i].low.steps >= 0 && items[i].high.steps >= 0);
    check_drawn(items, n, data[0]);
    return 0;
}
