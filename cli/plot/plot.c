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
    uint8_t *set; /* 0: none; the line's number from 1, of its character and colour */
    uint8_t line;
};

/* Where two lines meet the first is seen. */
static void set_dot(struct dots *d, double x, double y)
{
    int i = (int)lround(x * (d->width - 1)), k = (int)lround((1 - y) * (d->height - 1));
    if (i >= 0 && i < d->width && k >= 0 && k < d->height && !d->set[k * d->width + i])
        d->set[k * d->width + i] = d->line;
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

static const char marks[] = "*+xo#@%&";
enum { MARKS_N = sizeof marks - 1 };

/* Without a line, or where there is one only: as the terminal has it. */
static void add_colour(struct buf *out, unsigned line)
{
    static const uint8_t sgr[] = {36, 33, 35, 32, 31, 34, 96, 93};
    if (line)
        buf_addf(out, "\033[%dm", sgr[(line - 1) % DET_ARRAY_LEN(sgr)]);
    else
        buf_add_str(out, "\033[0m");
}

void plot_names(const struct plot_line *lines, size_t n, struct plot_size size, struct buf *out)
{
    bool coloured = size.coloured && n > 1;
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, i ? "; " : "");
        if (coloured)
            add_colour(out, (unsigned)(i % MARKS_N) + 1);
        else if (size.plain && n > 1)
            buf_addf(out, "%c ", marks[i % MARKS_N]);
        buf_add_str(out, lines[i].name);
        if (coloured)
            add_colour(out, 0);
    }
}

static void add_utf8(struct buf *out, unsigned code)
{
    buf_addf(out, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 0x3f)),
             (int)(0x80 | (code & 0x3f)));
}

/* The line of the first dot within a character. */
static unsigned line_at(const struct dots *d, int column, int row)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++)
            if (d->set[(row * 4 + k) * d->width + column * 2 + i])
                return d->set[(row * 4 + k) * d->width + column * 2 + i];
    return 0;
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

static void add_plain_row(struct buf *out, const struct dots *d, int row)
{
    for (int i = 0; i < d->width; i++) {
        unsigned line = d->set[row * d->width + i];
        buf_add_ch(out, line ? marks[line - 1] : ' ');
    }
    buf_add_ch(out, '\n');
}

static void add_row(struct buf *out, const struct dots *d, struct plot_size size, int row)
{
    unsigned colour = 0;
    for (int i = 0; i < size.columns; i++) {
        unsigned line = size.coloured ? line_at(d, i, row) : 0;
        if (line && line != colour)
            add_colour(out, line);
        colour = line ? line : colour;
        add_braille(out, d, i, row);
    }
    if (colour)
        add_colour(out, 0);
    buf_add_ch(out, '\n');
}

/* Where the first x and the last stand, and between them, where there is room, of what they are. */
static void add_foot(struct buf *out, const struct plot_range *r, const struct plot_size *size)
{
    char first[32], last[32];
    const char *name = size->axes.x ? size->axes.x : "";
    int used =
        snprintf(first, sizeof first, "%g", r->x0) + snprintf(last, sizeof last, "%g", r->x1);
    int room = size->columns - used, words = (int)strlen(name);
    if (words == 0 || words + 2 > room) {
        buf_addf(out, "%11s %s%*g\n", "", first, size->columns - (int)strlen(first), r->x1);
        return;
    }
    int before = (room - words) / 2;
    buf_addf(out, "%11s %s%*s%s%*s%s\n", "", first, before, "", name, room - words - before, "",
             last);
}

static double value_of(double y, const struct plot_axes *axes)
{
    return axes->log ? pow(10, y) : y;
}

void plot_text(const struct plot_line *lines, size_t n, struct plot_size size, struct buf *out)
{
    struct plot_range r = plot_range_of(lines, n);
    if (!r.any) {
        buf_add_str(out, "no points\n");
        return;
    }
    size.coloured = size.coloured && n > 1;
    struct dots d = {.width = size.columns * (size.plain ? 1 : 2),
                     .height = size.rows * (size.plain ? 1 : 4)};
    d.set = det_zalloc((size_t)d.width * (size_t)d.height);
    for (size_t i = 0; i < n; i++) {
        d.line = (uint8_t)(i % MARKS_N + 1);
        draw_line(&d, &lines[i], &r);
    }
    for (int row = 0; row < size.rows; row++) {
        if (row == 0)
            buf_addf(out, "%10.4g |", value_of(r.y1, &size.axes));
        else if (row == size.rows - 1)
            buf_addf(out, "%10.4g |", value_of(r.y0, &size.axes));
        else
            buf_addf(out, "%10s |", "");
        if (size.plain)
            add_plain_row(out, &d, row);
        else
            add_row(out, &d, size, row);
    }
    add_foot(out, &r, &size);
    free(d.set);
}
