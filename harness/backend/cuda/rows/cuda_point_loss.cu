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

template <typename T>
static int point_loss(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *x = in_real<T>(c, 0), *t = in_real<T>(c, 1), *w = in_real<T>(c, 2);
    T *y = out_real<T>(c, 0);
    int mode = c->a.mode;
    double p = c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { y[i] = (T)loss(mode, p, x[i], t[i], w ? w[i] : 1); }, err);
}
CUDA_REAL(point_loss)

template <typename T>
static int point_loss_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *dy = in_real<T>(c, 0), *x = in_real<T>(c, 1);
    const T *t = in_real<T>(c, 2), *w = in_real<T>(c, 3);
    T *dx = out_real<T>(c, 0);
    int mode = c->a.mode;
    double p = c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { dx[i] = (T)(dy[i] * slope(mode, p, x[i], t[i], w ? w[i] : 1)); }, err);
}
CUDA_REAL(point_loss_bwd)
