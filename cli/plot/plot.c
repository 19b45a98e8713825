#include "plot.h"

#include "mem.h"
#include "plot_range.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- dots ---- */

struct dots {
    int width, height;
    uint8_t *set;
};

static void set_dot(struct dots *d, double x, double y)
{
    int i = (int)lround(x * (d->width - 1)), k = (int)lround((1 - y) * (d->height - 1));
    if (i >= 0 && i < d->width && k >= 0 && k < d->height)
        d->set[k * d->width + i] = 1;
}

/* From one point to the next, as many dots as are between them. */
static void draw_between(struct dots *d, double x0, double y0, double x1, double y1)
{
    int steps = 1 + (int)fmax(fabs(x1 - x0) * d->width, fabs(y1 - y0) * d->height);
    for (int i = 0; i <= steps; i++)
        set_dot(d, x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
}

static void draw_line(struct dots *d, const struct plot_line *line, const struct plot_range *r)
{
    bool joined = false;
    double x0 = 0, y0 = 0;
    for (size_t i = 0; i < line->n; i++) {
        struct plot_point p = line->v[i];
        bool good = isfinite(p.x) && isfinite(p.y);
        double x = good ? plot_part(p.x, r->x0, r->x1) : 0,
               y = good ? plot_part(p.y, r->y0, r->y1) : 0;
        if (good)
            draw_between(d, joined ? x0 : x, joined ? y0 : y, x, y);
        joined = good;
        x0 = x;
        y0 = y;
    }
}

/* ---- characters ---- */

static void add_utf8(struct buf *out, unsigned code)
{
    buf_addf(out, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 0x3f)),
             (int)(0x80 | (code & 0x3f)));
}

static void add_braille(struct buf *out, const struct dots *d, int column, int row)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned code = 0x2800;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++)
            if (d->set[(row * 4 + k) * d->width + column * 2 + i])
                code |= bits[k][i];
    add_utf8(out, code);
}

static void add_row(struct buf *out, const struct dots *d, struct plot_size size, int row)
{
    for (int i = 0; i < size.columns; i++)
        if (size.plain)
            buf_add_ch(out, d->set[row * d->width + i] ? '*' : ' ');
        else
            add_braille(out, d, i, row);
    buf_add_ch(out, '\n');
}

void plot_text(const struct plot_line *lines, size_t n, struct plot_size size, struct buf *out)
{
    struct plot_range r = plot_range_of(lines, n);
    if (!r.any) {
        buf_add_str(out, "no points\n");
        return;
    }
    struct dots d = {size.columns * (size.plain ? 1 : 2), size.rows * (size.plain ? 1 : 4), NULL};
    d.set = det_zalloc((size_t)d.width * (size_t)d.height);
    for (size_t i = 0; i < n; i++)
        draw_line(&d, &lines[i], &r);
    for (int row = 0; row < size.rows; row++) {
        if (row == 0)
            buf_addf(out, "%10.4g |", r.y1);
        else if (row == size.rows - 1)
            buf_addf(out, "%10.4g |", r.y0);
        else
            buf_addf(out, "%10s |", "");
        add_row(out, &d, size, row);
    }
    char first[32];
    snprintf(first, sizeof first, "%g", r.x0);
    buf_addf(out, "%11s %s%*g\n", "", first, size.columns - (int)strlen(first), r.x1);
    free(d.set);
}
