/* What a picture of lines spans. Private to the pictures. */
#ifndef CLI_PLOT_RANGE_H
#define CLI_PLOT_RANGE_H

#include "plot.h"

struct plot_range {
    double x0, x1, y0, y1;
    bool any; /* point that is finite */
};
struct plot_range plot_range_of(const struct plot_line *lines, size_t n);
/* Where v is, 0 at lo and 1 at hi; a range without width is in the middle. */
double plot_part(double v, double lo, double hi);

#endif
