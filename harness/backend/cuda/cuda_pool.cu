/* Pooling over NHWC images. Gradients gather: each pixel adds the windows that it lies in, in their
 * order, so nothing adds atomically. */
#define WINDOW_FN __host__ __device__ static inline
#include "cuda_spot.cuh"
#include "window.h"

struct pool {
    struct window_line rows, columns;
    int64_t n, channels;
    int kernel_w;
};

static struct pool pool_of(const struct det_call *c, const struct det_tensor *x,
                           const struct det_tensor *y)
{
    return {window_rows(&c->a, x, y), window_columns(&c->a, x, y), x->dims[0], x->dims[1],
            c->a.kernel_w};
}

__device__ static int64_t input_at(const struct pool &p, int64_t n, int64_t h, int64_t w,
                                   int64_t channel)
{
    return ((n * p.rows.in + h) * p.columns.in + w) * p.channels + channel;
}

__device__ static int64_t output_at(const struct pool &p, int64_t n, int64_t h, int64_t w,
                                    int64_t channel)
{
    return ((n * p.rows.out + h) * p.columns.out + w) * p.channels + channel;
}

template <typename T>
static int max_pool2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct pool p = pool_of(c, c->in[0], c->out[0]);
    const T *x = in_real<T>(c, 0);
    T *y = out_real<T>(c, 0);
    uint8_t *index = (uint8_t *)c->out[1]->data;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, p.rows.out, p.columns.out, p.channels);
            struct window h = window_at(p.rows, at.h), w = window_at(p.columns, at.w);
            T best = -INFINITY;
            int64_t tap = -1;
            for (int64_t a = h.from; a < h.to; a++)
                for (int64_t b = w.from; b < w.to; b++) {
                    T v = x[input_at(p, at.n, h.origin + a, w.origin + b, at.channel)];
                    if (tap >= 0 && !(v > best) && v == v)
                        continue;
                    best = v;
                    tap = a * p.kernel_w + b;
                }
            y[i] = best;
            index[i] = (uint8_t)tap;
        },
        err);
}
CUDA_REAL(max_pool2d)

template <typename T>
static int avg_pool2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct pool p = pool_of(c, c->in[0], c->out[0]);
    const T *x = in_real<T>(c, 0);
    T *y = out_real<T>(c, 0);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, p.rows.out, p.columns.out, p.channels);
            struct window h = window_at(p.rows, at.h), w = window_at(p.columns, at.w);
            double sum = 0;
            for (int64_t a = h.from; a < h.to; a++)
                for (int64_t b = w.from; b < w.to; b++)
                    sum += x[input_at(p, at.n, h.origin + a, w.origin + b, at.channel)];
            y[i] = (T)(sum / (double)(h.size * w.size));
        },
        err);
}
CUDA_REAL(avg_pool2d)

/* The windows [from, to) that pixel i of a line may lie in. */
struct range {
    int64_t from, to;
};

__device__ static struct range windows_over(struct window_line l, int64_t i)
{
    struct range r = {0, l.out};
    if (l.adaptive) {
        r.from = i * l.out / l.in;
        r.to = ((i + 1) * l.out + l.in - 1) / l.in;
    } else {
        int64_t first = i + l.pad - l.kernel + 1; /* where the earliest may begin */
        r.from = first <= 0 ? 0 : (first + l.stride - 1) / l.stride;
        r.to = (i + l.pad) / l.stride + 1;
    }
    r.to = r.to < l.out ? r.to : l.out;
    return r;
}

/* The sum over the windows of input element i of share(output element, window, tap). */
template <typename T, typename F>
__device__ T gather(const struct pool &p, int64_t i, F share)
{
    struct cuda_spot at = cuda_spot_of(i, p.rows.in, p.columns.in, p.channels);
    struct range hs = windows_over(p.rows, at.h), ws = windows_over(p.columns, at.w);
    T total = 0;
    for (int64_t oh = hs.from; oh < hs.to; oh++)
        for (int64_t ow = ws.from; ow < ws.to; ow++) {
            struct window h = window_at(p.rows, oh), w = window_at(p.columns, ow);
            int64_t a = at.h - h.origin, b = at.w - w.origin;
            if (a >= h.from && a < h.to && b >= w.from && b < w.to)
                total += share(output_at(p, at.n, oh, ow, at.channel), h.size * w.size,
                               a * p.kernel_w + b);
        }
    return total;
}

template <typename T>
static int max_pool2d_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct pool p = pool_of(c, c->out[0], c->in[0]);
    const T *dy = in_real<T>(c, 0);
    const uint8_t *index = (const uint8_t *)c->in[1]->data;
    T *dx = out_real<T>(c, 0);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            dx[i] = gather<T>(p, i, [=](int64_t o, int64_t, int64_t tap) {
                return index[o] == tap ? dy[o] : 0;
            });
        },
        err);
}
CUDA_REAL(max_pool2d_bwd)

template <typename T>
static int avg_pool2d_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct pool p = pool_of(c, c->out[0], c->in[0]);
    const T *dy = in_real<T>(c, 0);
    T *dx = out_real<T>(c, 0);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            dx[i] = gather<T>(
                p, i, [=](int64_t o, int64_t size, int64_t) { return dy[o] / (T)size; });
        },
        err);
}
CUDA_REAL(avg_pool2d_bwd)
