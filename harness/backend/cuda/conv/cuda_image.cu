/*
 * Padding (of any floating dtype) and resampling. Gradients gather: each element of x adds the
 * outputs that came from it, in their order, so nothing adds atomically.
 */
#include "cuda_dtype.cuh"
#include "cuda_spot.cuh"

/* The dimensions as they lie in memory, the densest last; x is the smaller tensor. */
struct padding {
    int ndim, mode;
    int64_t x[DET_DIMS_MAX], y[DET_DIMS_MAX], before[DET_DIMS_MAX];
};

static struct padding pad_of(const struct det_call *c, const struct det_tensor *x,
                             const struct det_tensor *y)
{
    static const int nhwc[] = {0, 2, 3, 1};
    struct padding p = {x->ndim, c->a.pad_mode, {}, {}, {}};
    for (int i = 0; i < x->ndim; i++) {
        int d = x->layout == DET_LAYOUT_NHWC ? nhwc[i] : i;
        p.x[i] = x->dims[d];
        p.y[i] = y->dims[d];
        p.before[i] = c->a.before[d];
    }
    return p;
}

/* Where place `at` of a line of n elements comes from, -1: from nowhere. */
__device__ static int64_t source(int64_t at, int64_t n, int mode)
{
    if (at >= 0 && at < n)
        return at;
    switch (mode) {
    case DET_PAD_REFLECT: return at < 0 ? -at : 2 * (n - 1) - at;
    case DET_PAD_REPLICATE: return at < 0 ? 0 : n - 1;
    case DET_PAD_CIRCULAR: return at < 0 ? at + n : at - n;
    default: return -1;
    }
}

template <typename T>
static int pad(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct padding p = pad_of(c, c->in[0], c->out[0]);
    const void *x = c->in[0]->data;
    void *y = c->out[0]->data;
    T fill = (T)c->a.scale;
    int dtype = c->in[0]->dtype;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            int64_t rest = i, from = 0, stride = 1;
            for (int d = p.ndim - 1; d >= 0 && from >= 0; d--) {
                int64_t outer = cuda_div(rest, p.y[d]);
                int64_t at = source(rest - outer * p.y[d] - p.before[d], p.x[d], p.mode);
                from = at < 0 ? -1 : from + at * stride;
                stride *= p.x[d];
                rest = outer;
            }
            cuda_store(dtype, y, i, from < 0 ? fill : cuda_load<T>(dtype, x, from));
        },
        err);
}
CUDA_REAL(pad)

/* The outputs of one line that came from place i: up to `n` tries, some of which miss (-1). */
struct targets {
    int64_t n, first, second, third;
    bool run; /* first, first + 1, ... */
    __device__ int64_t at(int64_t k) const
    {
        return run ? first + k : k == 0 ? first : k == 1 ? second : third;
    }
};

__device__ static struct targets targets_of(const struct padding &p, int d, int64_t i)
{
    int64_t n = p.x[d], b = p.before[d], last = p.y[d] - 1;
    struct targets t = {3, i + b, -1, -1, false};
    switch (p.mode) {
    case DET_PAD_REFLECT:
        t.second = i > 0 ? b - i : -1;
        t.third = i < n - 1 ? b + 2 * (n - 1) - i : -1;
        return t;
    case DET_PAD_CIRCULAR:
        t.second = i + b - n;
        t.third = i + b + n;
        return t;
    case DET_PAD_REPLICATE:
        t.first = i == 0 ? 0 : i + b;
        t.n = (i == n - 1 ? last : i + b) - t.first + 1;
        t.run = true;
        return t;
    default: t.n = 1; return t;
    }
}

/* Try number k of all dimensions' tries together: the output element, or -1. */
__device__ static int64_t target(const struct padding &p, const struct targets *t, int64_t k)
{
    int64_t to = 0, stride = 1;
    for (int d = p.ndim - 1; d >= 0; d--) {
        int64_t at = t[d].at(k % t[d].n);
        if (at < 0 || at >= p.y[d])
            return -1;
        k /= t[d].n;
        to += at * stride;
        stride *= p.y[d];
    }
    return to;
}

template <typename T>
static int pad_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct padding p = pad_of(c, c->out[0], c->in[0]);
    const void *dy = c->in[0]->data;
    void *dx = c->out[0]->data;
    int dtype = c->in[0]->dtype;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            struct targets t[DET_DIMS_MAX];
            int64_t rest = i, tries = 1;
            T total = 0;
            for (int d = p.ndim - 1; d >= 0; d--) {
                int64_t outer = cuda_div(rest, p.x[d]);
                t[d] = targets_of(p, d, rest - outer * p.x[d]);
                tries *= t[d].n > 0 ? t[d].n : 0;
                rest = outer;
            }
            for (int64_t k = 0; k < tries; k++) {
                int64_t from = target(p, t, k);
                total += from < 0 ? 0 : cuda_load<T>(dtype, dy, from);
            }
            cuda_store(dtype, dx, i, total);
        },
        err);
}
CUDA_REAL(pad_bwd)

/* One direction of a resampling: pixels of x and of y, pixels of x for one of y. */
template <typename T> struct line {
    int64_t in, out;
    T step;
    bool linear, corners;
};

template <typename T> struct resample {
    line<T> h, w;
    int64_t channels;
};

template <typename T>
static resample<T> resample_of(const struct det_call *c, const struct det_tensor *x,
                               const struct det_tensor *y)
{
    bool linear = c->a.linear, corners = c->a.align_corners;
    return {{x->dims[2], y->dims[2], (T)c->a.step_h, linear, corners},
            {x->dims[3], y->dims[3], (T)c->a.step_w, linear, corners},
            x->dims[1]};
}

/* The two pixels that an output place lies between, and how much the second one counts. */
template <typename T> struct between {
    int64_t first, second;
    T share;
};

template <typename T> __device__ static between<T> locate(const line<T> &l, int64_t out)
{
    T at = l.corners ? (T)out * l.step : ((T)out + (T)0.5) * l.step - (T)0.5;
    if (!l.linear)
        at = floor((T)out * l.step);
    at = at < 0 ? 0 : at;
    int64_t first = (int64_t)at < l.in - 1 ? (int64_t)at : l.in - 1;
    return {first, first < l.in - 1 ? first + 1 : first, l.linear ? at - (T)first : 0};
}

template <typename T>
static int upsample(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    resample<T> r = resample_of<T>(c, c->in[0], c->out[0]);
    const T *x = in_real<T>(c, 0);
    T *y = out_real<T>(c, 0);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, r.h.out, r.w.out, r.channels);
            between<T> h = locate(r.h, at.h), w = locate(r.w, at.w);
            const T *image = x + at.n * r.h.in * r.w.in * r.channels + at.channel;
            const T *top = image + h.first * r.w.in * r.channels;
            const T *low = image + h.second * r.w.in * r.channels;
            int64_t a = w.first * r.channels, b = w.second * r.channels;
            y[i] = (1 - h.share) * ((1 - w.share) * top[a] + w.share * top[b]) +
                   h.share * ((1 - w.share) * low[a] + w.share * low[b]);
        },
        err);
}
CUDA_REAL(upsample)

/* How much output place `out` takes of pixel i. */
template <typename T> __device__ static T taken(const line<T> &l, int64_t out, int64_t i)
{
    between<T> v = locate(l, out);
    return (v.first == i ? 1 - v.share : 0) + (v.second == i ? v.share : 0);
}

/* The outputs that may take of pixel i: those that lie within a pixel of it, and one more on each
 * side for the rounding of f32; the first and the last pixel serve what lies outside. */
struct range {
    int64_t from, to;
};

template <typename T> __device__ static struct range takers(const line<T> &l, int64_t i)
{
    double shift = l.corners || !l.linear ? 0 : 0.5, step = l.step > 0 ? l.step : 1e-9;
    double from = ((double)i - 1 + shift) / step - shift - 1;
    double to = ((double)i + 1 + shift) / step - shift + 2;
    struct range r = {from < 0 || i == 0 ? 0 : (int64_t)from, l.out};
    if (i < l.in - 1 && to < (double)l.out)
        r.to = (int64_t)to + 1 < l.out ? (int64_t)to + 1 : l.out;
    return r;
}

template <typename T>
static int upsample_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    resample<T> r = resample_of<T>(c, c->out[0], c->in[0]);
    const T *dy = in_real<T>(c, 0);
    T *dx = out_real<T>(c, 0);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, r.h.in, r.w.in, r.channels);
            const T *image = dy + at.n * r.h.out * r.w.out * r.channels + at.channel;
            struct range hs = takers(r.h, at.h), ws = takers(r.w, at.w);
            T total = 0;
            for (int64_t oh = hs.from; oh < hs.to; oh++) {
                T part = 0, share = taken(r.h, oh, at.h);
                for (int64_t ow = ws.from; share != 0 && ow < ws.to; ow++)
                    part += taken(r.w, ow, at.w) * image[(oh * r.w.out + ow) * r.channels];
                total += share * part;
            }
            dx[i] = total;
        },
        err);
}
CUDA_REAL(upsample_bwd)
