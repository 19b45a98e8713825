#include "plot_range.h"

#include "mem.h"
#include <float.h>
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

enum { TICKS_MAX = 8 };
#define NEAR 1e-9 /* of a step: an end that is a tick but for its last digits is one */

static int count_ticks(double lo, double hi, double step)
{
    return (int)(floor(hi / step + NEAR) - ceil(lo / step - NEAR)) + 1;
}

struct plot_ticks plot_ticks_of(double lo, double hi)
{
    static const double rounds[] = {1, 2, 5, 10};
    double width = hi / TICKS_MAX - lo / TICKS_MAX; /* parts: no overflow */
    if (!(width > 0) || !isfinite(width) || width < DBL_MIN)
        return (struct plot_ticks){lo, 0, 1};
    double power = pow(10, floor(log10(width))), step = power;
    for (size_t i = 0; i < DET_ARRAY_LEN(rounds); i++) {
        step = power * rounds[i];
        if (count_ticks(lo, hi, step) <= TICKS_MAX)
            break;
    }
    return (struct plot_ticks){ceil(lo / step - NEAR) * step, step, count_ticks(lo, hi, step)};
}

/* From the whole number of steps: zero is zero, and nothing overflows on the way. */
double plot_tick(struct plot_ticks t, int i)
{
    return t.step > 0 ? (round(t.first / t.step) + i) * t.step : t.first;
}

/* Less than half a power of ten: as on a plain axis, but at their logarithms. */
static int near_log_ticks(double lo, double hi, double v[LOG_TICKS_MAX])
{
    struct plot_ticks t = plot_ticks_of(pow(10, lo), pow(10, hi));
    for (int i = 0; i < t.n; i++)
        v[i] = log10(plot_tick(t, i));
    return t.n;
}

int plot_log_ticks(double lo, double hi, double v[LOG_TICKS_MAX])
{
    static const double within[] = {1, 2, 5}; /* a power of ten */
    int n = 0, parts = hi - lo < 3 ? 3 : 1;
    double step = fmax(1, ceil((hi - lo) / TICKS_MAX));
    if (hi - lo < 0.5)
        return near_log_ticks(lo, hi, v);
    for (double e = floor(lo / step) * step; e <= hi; e += step)
        for (int k = 0; k < parts; k++) {
            double at = e + log10(within[k]);
            if (at >= lo - NEAR && at <= hi + NEAR && n < LOG_TICKS_MAX)
                v[n++] = at;
        }
    return n;
}
