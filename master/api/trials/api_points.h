/* Points of a metric as pages draw them. */
#ifndef API_API_POINTS_H
#define API_API_POINTS_H

#include "series.h"
#include <stddef.h>

struct buf;
struct api_points {
    struct series_bounds within;
    size_t max;       /* points at most (proto/charts/series.h) */
    const char *name; /* of the metric */
};
/* Appends DataPoints, with commas between, of a metric's items as the database has them
 * (series_parse). */
void api_put_points(struct buf *out, const char *items, const struct api_points *p);

#endif
