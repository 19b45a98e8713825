#include "plot.h"

#include "mem.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
    double x0, x1, y0, y1;
    bool any;
};

static struct range range_of(const struct plot_line *lines, size_t n)
{
    struct range r = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < lines[i].n; k++) {
            struct plot_point p = lines[i].v[k];
            if (!isfinite(p.x) || !isfinite(p.y))
                continue;
            if (!r.any)
                r = (struct range){p.x, p.x, p.y, p.y, true};
            r.x0 = fmin(r.x0, p.x);
            r.x1 = fmax(r.x1, p.x);
            r.y0 = fmin(r.y0, p.y);
            r.y1 = fmax(r.y1, p.y);
        }
    return r;
}

/* 0 to 1; a range without width is in the middle. */
static double part(double v, double lo, double hi)
{
    return hi > lo ? (v / 2 - lo / 2) / (hi / 2 - lo / 2) : 0.5; /* halves: no overflow */
}

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

static void draw_line(struct dots *d, const struct plot_line *line, const struct range *r)
{
    bool joined = false;
    double x0 = 0, y0 = 0;
    for (size_t i = 0; i < line->n; i++) {
        struct plot_point p = line->v[i];
        bool good = isfinite(p.x) && isfinite(p.y);
        double x = good ? part(p.x, r->x0, r->x1) : 0, y = good ? part(p.y, r->y0, r->y1) : 0;
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
    struct range r = range_of(lines, n);
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

/* ---- SVG ---- */

enum { SVG_W = 720, SVG_H = 420, LEFT = 70, RIGHT = 150, TOP = 40, BOTTOM = 40 };
static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                      "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};

static void add_xml(struct buf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&' || *text == '>' || *text == '"')
            buf_addf(out, "&#%d;", *text);
        else if ((unsigned char)*text >= 0x20)
            buf_add_ch(out, *text);
}

static double svg_x(const struct range *r, double x)
{
    return LEFT + part(x, r->x0, r->x1) * (SVG_W - LEFT - RIGHT);
}

static double svg_y(const struct range *r, double y)
{
    return SVG_H - BOTTOM - part(y, r->y0, r->y1) * (SVG_H - TOP - BOTTOM);
}

static void svg_text(struct buf *out, double x, double y, const char *anchor, const char *text)
{
    buf_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    add_xml(out, text);
    buf_add_str(out, "</text>\n");
}

static void svg_axes(struct buf *out, const struct range *r)
{
    char text[32];
    for (int i = 0; i <= 4; i++) {
        double x = r->x0 * (1 - i / 4.0) + r->x1 * (i / 4.0);
        double y = r->y0 * (1 - i / 4.0) + r->y1 * (i / 4.0);
        buf_addf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, svg_y(r, y),
                 SVG_W - RIGHT);
        snprintf(text, sizeof text, "%.4g", y);
        svg_text(out, LEFT - 6, svg_y(r, y) + 4, "end", text);
        snprintf(text, sizeof text, "%.6g", x);
        svg_text(out, svg_x(r, x), SVG_H - BOTTOM + 18, "middle", text);
    }
}

static void svg_line(struct buf *out, const struct plot_line *line, size_t i, const struct range *r)
{
    const char *colour = colours[i % DET_ARRAY_LEN(colours)];
    bool joined = false;
    buf_add_str(out, "<path fill=\"none\" d=\"");
    for (size_t k = 0; k < line->n; k++) {
        struct plot_point p = line->v[k];
        bool good = isfinite(p.x) && isfinite(p.y);
        if (good)
            buf_addf(out, "%c%.1f %.1f", joined ? 'L' : 'M', svg_x(r, p.x), svg_y(r, p.y));
        joined = good;
    }
    buf_addf(out, "\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", colour);
    if (TOP + 16 * (int)i > SVG_H - BOTTOM)
        return;
    buf_addf(out, "<path d=\"M%d %dh14\" stroke=\"%s\" stroke-width=\"3\"/>\n", SVG_W - RIGHT + 12,
             TOP + 16 * (int)i, colour);
    svg_text(out, SVG_W - RIGHT + 32, TOP + 16 * (int)i + 4, "start", line->name);
}

void plot_svg(const struct plot_line *lines, size_t n, const char *title, struct buf *out)
{
    struct range r = range_of(lines, n);
    buf_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
             SVG_W, SVG_H);
    svg_text(out, SVG_W / 2.0, TOP / 2.0, "middle", title);
    if (r.any) {
        svg_axes(out, &r);
        for (size_t i = 0; i < n; i++)
            svg_line(out, &lines[i], i, &r);
    }
    buf_add_str(out, "</svg>\n");
}
