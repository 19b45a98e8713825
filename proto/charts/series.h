/*
 * Charts of long series: the points that draw them at a given resolution, extremes kept.
 *
 * A series comes as items in order of steps: each the lowest and the highest point of some
 * neighbouring reports, or one report (low and high equal). Items are gathered into buckets of
 * equal count; of each bucket its lowest and highest point are drawn, in order of steps. So the
 * drawn series has the minimum and the maximum of all of it, and of what falls on a pixel. Thread:
 * any.
 */
#ifndef PROTO_SERIES_H
#define PROTO_SERIES_H

#include <stddef.h>
#include <stdint.h>

struct series_point {
    int64_t steps;
    double at; /* wall seconds */
    double value;
};
struct series_item {
    struct series_point low, high;
};

/* Points within [from, to] steps, later than `after` and not later than `before` (wall seconds; 0:
 * any). Keeps of n items what is within: all, one of its points as both, or nothing. Returns how
 * many are left. */
struct series_bounds {
    int64_t from, to;
    double after, before;
};
size_t series_within(const struct series_bounds *b, struct series_item *items, size_t n);

#define SERIES_POINTS_MIN 4

/* The points of n items, at most max (at least SERIES_POINTS_MIN are allowed whatever max says):
 * the first and the last item whole, the rest in buckets; where there is no room for a bucket, the
 * first and the last point and the extremes. ret has room for max, or
 * SERIES_POINTS_MIN. Returns their number. */
size_t series_points(const struct series_item *items, size_t n, size_t max,
                     struct series_point *ret);
/* How many of max points each of n series gets that are drawn in one answer: together they have
 * about SERIES_POINTS_ALL, of which a master makes 20 MB of text. At least SERIES_POINTS_MIN. */
#define SERIES_POINTS_ALL 200000
int64_t series_share(int64_t max, int64_t n);
/* How many items a series wants for max points: from so many up, coarser items will do. */
int64_t series_buckets(int64_t max);
/* Items as the database has them in lines: "[value, steps, at]" is one report, "[low, steps,
 * at][high, steps, at]" several as one item, "#steps,..;at,..;value,.." several by themselves.
 * Other lines are passed over: reports whose value is no number. ret has room for
 * series_items_max(text) items. Returns their number. */
size_t series_parse(const char *text, struct series_item *ret);
size_t series_items_max(const char *text);

#endif
