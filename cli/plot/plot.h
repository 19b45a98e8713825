/*
 * Curves in characters, as SVG and as PNG. Pure.
 *
 * Each character of the picture is a Braille pattern of 2 by 4 dots (Unicode 28xx: the bit of a dot
 * is its number), so that 60 columns show 120 points; where a terminal has no such characters it is
 * one dot a character, and each line has a character of its own.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "buf.h"
#include "det/err.h"
#include <stdbool.h>

struct plot_point {
    double x, y;
};
struct plot_line {
    const char *name;           /* borrowed */
    const struct plot_point *v; /* by x; a y that is not finite is a gap */
    size_t n;
};
/* What the axes are of. */
struct plot_axes {
    const char *x, *y; /* their names, borrowed; NULL: none */
    bool log;          /* every y is the decimal logarithm of what it stands for */
};
struct plot_size {
    int columns, rows; /* of the picture without its margins; 4 and 2 at least */
    bool plain;        /* no characters beyond ASCII */
    bool coloured;     /* each line of several in a colour of its own, by SGR sequences */
    struct plot_axes axes;
};
/* The names of the lines, "; " between them, each as its line is drawn: behind its character or in
 * its colour. */
void plot_names(const struct plot_line *lines, size_t n, struct plot_size size, struct buf *out);
/* All lines into one picture: what is highest and lowest stands at its left, the first and the last
 * x beneath. Nothing to show: "no points". */
void plot_text(const struct plot_line *lines, size_t n, struct plot_size size, struct buf *out);
/* A whole SVG file with axes, their names and the lines'. */
void plot_svg(const struct plot_line *lines, size_t n, const struct plot_axes *axes,
              struct buf *out);
/* The same as a PNG file, twice as large; letters beyond ASCII are question marks. */
DET_MUST int plot_png(const struct plot_line *lines, size_t n, const struct plot_axes *axes,
                      struct buf *out, struct det_err *err);

#endif
