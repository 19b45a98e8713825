#include "api_points.h"

#include "buf.h"
#include "clk.h"
#include "json.h"
#include "mem.h"
#include "series.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* name: with its quotes */
static void put_point(struct buf *out, const struct series_point *x, const struct buf *name)
{
    char time[CLK_RFC3339_MAX];
    clk_format(llround(x->at * 1e6), time);
    buf_add_str(out, "{\"batches\":");
    buf_add_i64(out, x->steps);
    buf_add_str(out, ",\"time\":\"");
    buf_add_str(out, time);
    buf_add_str(out, "\",\"values\":{");
    buf_add(out, name->p, name->len);
    buf_add_ch(out, ':');
    json_write_finite(out, x->value);
    buf_add_str(out, "}}");
}

void api_put_points(struct buf *out, const char *text, const struct api_points *p)
{
    size_t lines = series_items_max(text);
    if (lines == 0)
        return;
    size_t max = p->max > SERIES_POINTS_MIN ? p->max : SERIES_POINTS_MIN;
    size_t room = 2 * lines < max ? 2 * lines : max;
    room = room > SERIES_POINTS_MIN ? room : SERIES_POINTS_MIN;
    det_cleanup(freep) struct series_item *items = det_reallocarray(NULL, lines, sizeof *items);
    det_cleanup(freep) struct series_point *points = det_reallocarray(NULL, room, sizeof *points);
    size_t n = series_within(&p->within, items, series_parse(text, items));
    n = series_points(items, n, p->max, points);
    struct buf name = BUF_INIT;
    json_write_string(&name, p->name, strlen(p->name));
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_ch(out, ',');
        put_point(out, &points[i], &name);
    }
    buf_finish(&name);
}
