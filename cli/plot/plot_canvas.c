#include "plot_canvas.h"

#include "mem.h"
#include "plot_range.h"
#include <math.h>
#include <stdio.h>

enum { LEFT = 70, RIGHT = 180, TOP = 40, BOTTOM = 48 };
enum { GREY = 0xdddddd, DARK = 0x888888, NAME_HEIGHT = 16, ALONE = 5 };
static const unsigned colours[] = {0x1f77b4, 0xd62728, 0x2ca02c, 0x9467bd,
                                   0xff7f0e, 0x17becf, 0x8c564b, 0x7f7f7f};

static double place_x(const struct plot_range *r, double x)
{
    return LEFT + plot_part(x, r->x0, r->x1) * (CANVAS_W - LEFT - RIGHT);
}

static double place_y(const struct plot_range *r, double y)
{
    return CANVAS_H - BOTTOM - plot_part(y, r->y0, r->y1) * (CANVAS_H - TOP - BOTTOM);
}

static void stroke_line(const struct canvas *c, double x0, double x1, double y, unsigned colour,
                        double width)
{
    const struct plot_point v[] = {{x0, y}, {x1, y}};
    c->path(c->self, v, 2, colour, width);
}

static void draw_tick(const struct canvas *c, const struct plot_range *r, double at, double value)
{
    char text[32];
    stroke_line(c, LEFT, CANVAS_W - RIGHT, place_y(r, at), GREY, 1);
    snprintf(text, sizeof text, "%.6g", value);
    c->text(c->self, LEFT - 6, place_y(r, at) + 4, ANCHOR_END, text);
}

static void draw_y_axis(const struct canvas *c, const struct plot_range *r, bool log)
{
    struct plot_ticks y = plot_ticks_of(r->y0, r->y1);
    double v[LOG_TICKS_MAX];
    int n = log ? plot_log_ticks(r->y0, r->y1, v) : 0;
    for (int i = 0; i < n; i++)
        draw_tick(c, r, v[i], pow(10, v[i]));
    for (int i = 0; !log && i < y.n; i++)
        draw_tick(c, r, plot_tick(y, i), plot_tick(y, i));
}

static void draw_axes(const struct canvas *c, const struct plot_range *r,
                      const struct plot_axes *axes)
{
    struct plot_ticks x = plot_ticks_of(r->x0, r->x1);
    char text[32];
    stroke_line(c, LEFT, CANVAS_W - RIGHT, CANVAS_H - BOTTOM, DARK, 1);
    draw_y_axis(c, r, axes->log);
    for (int i = 0; i < x.n; i++) {
        snprintf(text, sizeof text, "%.7g", plot_tick(x, i));
        c->text(c->self, place_x(r, plot_tick(x, i)), CANVAS_H - BOTTOM + 18, ANCHOR_MIDDLE, text);
    }
    if (axes->x)
        c->text(c->self, (LEFT + CANVAS_W - RIGHT) / 2.0, CANVAS_H - 10, ANCHOR_MIDDLE, axes->x);
}

static void draw_line(const struct canvas *c, const struct plot_line *line,
                      const struct plot_range *r, unsigned colour)
{
    struct plot_point *v det_cleanup(freep) = det_reallocarray(NULL, line->n + 1, sizeof *v);
    for (size_t i = 0; i < line->n; i++) {
        struct plot_point p = line->v[i];
        bool good = isfinite(p.x) && isfinite(p.y);
        v[i] = good ? (struct plot_point){place_x(r, p.x), place_y(r, p.y)}
                    : (struct plot_point){NAN, NAN};
    }
    c->path(c->self, v, line->n, colour, 1.5);
    for (size_t i = 0; i < line->n; i++) { /* no line goes to it: a dot */
        bool before = i > 0 && isfinite(v[i - 1].y),
             after = i + 1 < line->n && isfinite(v[i + 1].y);
        if (isfinite(v[i].y) && !before && !after)
            stroke_line(c, v[i].x - ALONE / 2.0, v[i].x + ALONE / 2.0, v[i].y, colour, ALONE);
    }
}

void canvas_plot(const struct canvas *c, const struct plot_line *lines, size_t n,
                 const struct plot_axes *axes)
{
    struct plot_range r = plot_range_of(lines, n);
    if (axes->y) /* above its axis */
        c->text(c->self, LEFT / 4.0, TOP / 2.0, ANCHOR_START, axes->y);
    if (!r.any)
        return;
    draw_axes(c, &r, axes);
    for (size_t i = 0; i < n; i++) {
        unsigned colour = colours[i % DET_ARRAY_LEN(colours)];
        double y = TOP + NAME_HEIGHT * (double)i;
        draw_line(c, &lines[i], &r, colour);
        if (y > CANVAS_H - BOTTOM)
            continue; /* there is room for the first names only */
        stroke_line(c, CANVAS_W - RIGHT + 12, CANVAS_W - RIGHT + 26, y, colour, 3);
        c->text(c->self, CANVAS_W - RIGHT + 32, y + 4, ANCHOR_START, lines[i].name);
    }
}
