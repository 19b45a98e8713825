/* What curves are drawn on, as a file. Private to the pictures. */
#ifndef CLI_PLOT_CANVAS_H
#define CLI_PLOT_CANVAS_H

#include "plot.h"

enum { CANVAS_W = 720, CANVAS_H = 420 }; /* a picture, in its units; y grows downwards */

enum canvas_anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };

struct canvas {
    /* A line through points, with gaps where one is not finite; colour: 0xrrggbb. */
    void (*path)(void *self, const struct plot_point *v, size_t n, unsigned colour, double width);
    /* In black, 12 units high or less; (x, y) is of this end of its base line. */
    void (*text)(void *self, double x, double y, enum canvas_anchor anchor, const char *text);
    void *self;
};
/* Axes, curves and their names. */
void canvas_plot(const struct canvas *c, const struct plot_line *lines, size_t n,
                 const struct plot_axes *axes);

#endif
