/* The losses of elem.h and their derivatives by the input; in double. */
#include <math.h>

#include "ref_real.h"
#include "ref_reduce.h"

#define ELEM_T double

static double loss(const struct det_attrs *a, double x, double t, double w)
{
    double d = x - t, far = fabs(d), p = a->scale;
    switch ((enum det_point_loss)a->mode) {
#define X(NAME, value, slope)                                                                      \
    case DET_POINT_##NAME: return value;
        DET_POINT_LOSS(X)
#undef X
    case DET_POINT_COUNT: break;
    }
    return NAN;
}

static double slope(const struct det_attrs *a, double x, double t, double w)
{
    double d = x - t, far = fabs(d), p = a->scale;
    switch ((enum det_point_loss)a->mode) {
#define X(NAME, value, slope)                                                                      \
    case DET_POINT_##NAME: return slope;
        DET_POINT_LOSS(X)
#undef X
    case DET_POINT_COUNT: break;
    }
    return NAN;
}

void REF(point_loss_range)(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    const real *x = in_real(c, 0), *t = in_real(c, 1), *w = in_real(c, 2);
    for (int64_t i = from; i < to; i++)
        out_real(c, 0)[i] = (real)loss(&c->a, x[i], t[i], w ? w[i] : 1);
}

REF_KERNEL(point_loss)
{
    (void)s, (void)err;
    REF(point_loss_range)(c, 0, (int64_t)c->out[0]->numel);
    return 0;
}

void REF(point_loss_bwd_range)(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    const real *dy = in_real(c, 0), *x = in_real(c, 1), *t = in_real(c, 2), *w = in_real(c, 3);
    for (int64_t i = from; i < to; i++)
        out_real(c, 0)[i] = (real)(dy[i] * slope(&c->a, x[i], t[i], w ? w[i] : 1));
}

REF_KERNEL(point_loss_bwd)
{
    (void)s, (void)err;
    REF(point_loss_bwd_range)(c, 0, (int64_t)c->out[0]->numel);
    return 0;
}
