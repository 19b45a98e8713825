#include "plot_canvas.h"

#include "mem.h"
#include "plot_range.h"
#include <math.h>
#include <stdio.h>

enum { LEFT = 70, RIGHT = 180, TOP = 40, BOTTOM = 40 };
enum { GREY = 0xdddddd, DARK = 0x888888, NAME_HEIGHT = 16 };
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

static void draw_axes(const struct canvas *c, const struct plot_range *r)
{
    struct plot_ticks x = plot_ticks_of(r->x0, r->x1), y = plot_ticks_of(r->y0, r->y1);
    char text[32];
    stroke_line(c, LEFT, CANVAS_W - RIGHT, CANVAS_H - BOTTOM, DARK, 1);
    for (int i = 0; i < y.n; i++) {
        double at = plot_tick(y, i);
        stroke_line(c, LEFT, CANVAS_W - RIGHT, place_y(r, at), GREY, 1);
        snprintf(text, sizeof text, "%.6g", at);
        c->text(c->self, LEFT - 6, place_y(r, at) + 4, ANCHOR_END, text);
    }
    for (int i = 0; i < x.n; i++) {
        snprintf(text, sizeof text, "%.7g", plot_tick(x, i));
        c->text(c->self, place_x(r, plot_tick(x, i)), CANVAS_H - BOTTOM + 18, ANCHOR_MIDDLE, text);
    }
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
}

void canvas_plot(const struct canvas *c, const struct plot_line *lines, size_t n, const char *title)
{
    struct plot_range r = plot_range_of(lines, n);
    c->text(c->self, CANVAS_W / 2.0, TOP / 2.0, ANCHOR_MIDDLE, title);
    if (!r.any)
        return;
    draw_axes(c, &r);
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
