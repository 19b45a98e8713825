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

/* Round numbers within [lo, hi]: eight at most, two at least; lo alone where the range has no width
 * that numbers could divide. */
struct plot_ticks {
    double first, step;
    int n;
};
struct plot_ticks plot_ticks_of(double lo, double hi);
double plot_tick(struct plot_ticks t, int i);

/* The same of decimal logarithms, as which v has them: of round numbers between 10^lo and 10^hi,
 * powers of ten where these are many. How many there are. */
enum { LOG_TICKS_MAX = 16 };
int plot_log_ticks(double lo, double hi, double v[LOG_TICKS_MAX]);

#endif
