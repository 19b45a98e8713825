/* Rotary position embedding (Su et al. 2021). Angles are computed in double: positions are large.
 */
#include "ref_real.h"

#include <math.h>

static void turn_row(const struct det_call *c, const real *x, real *y, int64_t t, int64_t width)
{
    for (int64_t i = 0; i < width / 2; i++) {
        int64_t first = c->a.halves ? i : 2 * i, second = c->a.halves ? i + width / 2 : 2 * i + 1;
        double angle =
            (c->a.offset + (double)t) * pow(c->a.scale, -2.0 * (double)i / (double)width);
        double cosine = cos(angle), sine = c->a.reverse ? -sin(angle) : sin(angle);
        double a = x[first], b = x[second];
        y[first] = (real)(a * cosine - b * sine);
        y[second] = (real)(a * sine + b * cosine);
    }
}

REF_KERNEL(rotary)
{
    (void)s, (void)err;
    const int64_t *d = c->in[0]->dims;
    for (int64_t i = 0; i < d[0] * d[1]; i++)
        turn_row(c, in_real(c, 0) + i * d[2], out_real(c, 0) + i * d[2], i % d[1], d[2]);
    return 0;
}
