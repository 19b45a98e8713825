/* The losses of elem.h and their derivatives by the input; in double. */
#include "cuda_kernel.cuh"

#define ELEM_T double

__device__ static double loss(int mode, double p, double x, double t, double w)
{
    double d = x - t, far = fabs(d);
    (void)w;
    switch (mode) {
#define X(NAME, value, slope)                                                                      \
    case DET_POINT_##NAME: return value;
        DET_POINT_LOSS(X)
#undef X
    }
    return NAN;
}

__device__ static double slope(int mode, double p, double x, double t, double w)
{
    double d = x - t, far = fabs(d);
    switch (mode) {
#define X(NAME, value, slope)                                                                      \
    case DET_POINT_##NAME: return slope;
        DET_POINT_LOSS(X)
#undef X
    }
    return NAN;
}

int cuda_point_loss(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const float *x = in_f32(c, 0), *t = in_f32(c, 1), *w = in_f32(c, 2);
    float *y = out_f32(c, 0);
    int mode = c->a.mode;
    double p = c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { y[i] = (float)loss(mode, p, x[i], t[i], w ? w[i] : 1); }, err);
}

int cuda_point_loss_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const float *dy = in_f32(c, 0), *x = in_f32(c, 1), *t = in_f32(c, 2), *w = in_f32(c, 3);
    float *dx = out_f32(c, 0);
    int mode = c->a.mode;
    double p = c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { dx[i] = (float)(dy[i] * slope(mode, p, x[i], t[i], w ? w[i] : 1)); },
        err);
}
