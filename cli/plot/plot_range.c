#include "plot_range.h"

#include <math.h>

struct plot_range plot_range_of(const struct plot_line *lines, size_t n)
{
    struct plot_range r = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < lines[i].n; k++) {
            struct plot_point p = lines[i].v[k];
            if (!isfinite(p.x) || !isfinite(p.y))
                continue;
            if (!r.any)
                r = (struct plot_range){p.x, p.x, p.y, p.y, true};
            r.x0 = fmin(r.x0, p.x);
            r.x1 = fmax(r.x1, p.x);
            r.y0 = fmin(r.y0, p.y);
            r.y1 = fmax(r.y1, p.y);
        }
    return r;
}

double plot_part(double v, double lo, double hi)
{
    return hi > lo ? (v / 2 - lo / 2) / (hi / 2 - lo / 2) : 0.5; /* halves: no overflow */
}
