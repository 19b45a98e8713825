/*
 * Pooling over NHWC images, a pack of neighbouring channels a thread. Gradients gather: each pixel
 * adds the windows that it lies in, in their order, so nothing adds atomically.
 */
#define WINDOW_FN __host__ __device__ static inline
#include "cuda_pack.cuh"
#include "cuda_spot.cuh"
#include "window.h"

struct pool {
    struct window_line rows, columns;
    int64_t channels;
    int kernel_w;
};

static struct pool pool_of(const struct det_call *c, const struct det_tensor *x,
                           const struct det_tensor *y)
{
    return {window_rows(&c->a, x, y), window_columns(&c->a, x, y), x->dims[1],
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

/* ---- forward ---- */

/* f(raw of the input, tap) for each pixel of output element i's window. */
template <typename X, typename F>
__device__ struct window over_window(const struct pool &p, const X &x, int64_t i, F f)
{
    struct cuda_spot at = cuda_spot_of(i, p.rows.out, p.columns.out, p.channels);
    struct window h = window_at(p.rows, at.h), w = window_at(p.columns, at.w);
    for (int64_t a = h.from; a < h.to; a++)
        for (int64_t b = w.from; b < w.to; b++)
            f(x.load(input_at(p, at.n, h.origin + a, w.origin + b, at.channel)),
              a * p.kernel_w + b);
    h.size *= w.size;
    return h;
}

/* The taps of a pack, a byte each. */
template <int N> struct alignas(N) taps {
    uint8_t at[N];
};

struct max_pool {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        typedef taps<X::width> indices;
        struct pool p = pool_of(c, c->in[0], c->out[0]);
        X x = X::of(c->in[0]), y = X::of(c->out[0]);
        indices *index = (indices *)c->out[1]->data;
        return cuda_each(
            s, c, (int64_t)c->out[0]->numel / X::width,
            DEVICE(int64_t i) {
                real best[X::width];
                indices from;
                CUDA_UNROLL
                for (int k = 0; k < X::width; k++)
                    best[k] = -INFINITY, from.at[k] = 255;
                bool first = true;
                over_window(p, x, i * X::width, [&](const typename X::raw &r, int64_t tap) {
                    real v[X::width];
                    X::open(r, v);
                    CUDA_UNROLL
                    for (int k = 0; k < X::width; k++) {
                        if (!first && !(v[k] > best[k]) && v[k] == v[k])
                            continue;
                        best[k] = v[k];
                        from.at[k] = (uint8_t)tap;
                    }
                    first = false;
                });
                y.store(i * X::width, best);
                index[i] = from;
            },
            err);
    }
};

struct avg_pool {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        struct pool p = pool_of(c, c->in[0], c->out[0]);
        X x = X::of(c->in[0]), y = X::of(c->out[0]);
        return cuda_each(
            s, c, (int64_t)c->out[0]->numel / X::width,
            DEVICE(int64_t i) {
                double sum[X::width] = {};
                auto add = [&](const typename X::raw &r, int64_t) {
                    real v[X::width];
                    X::open(r, v);
                    CUDA_UNROLL
                    for (int k = 0; k < X::width; k++)
                        sum[k] += v[k];
                };
                double size = (double)over_window(p, x, i * X::width, add).size;
                real v[X::width];
                CUDA_UNROLL
                for (int k = 0; k < X::width; k++)
                    v[k] = (real)(sum[k] / size);
                y.store(i * X::width, v);
            },
            err);
    }
};

/* ---- backward ---- */

/* The windows [from, to) that pixel i of a line may lie in. */
struct range {
    int64_t from, to;
};

__device__ static struct range windows_over(struct window_line l, int64_t i)
{
    struct range r = {0, l.out};
    if (l.adaptive) {
        r.from = cuda_div(i * l.out, l.in);
        r.to = cuda_div((i + 1) * l.out + l.in - 1, l.in);
    } else {
        int64_t first = i + l.pad - l.kernel + 1; /* where the earliest may begin */
        r.from = first <= 0 ? 0 : cuda_div(first + l.stride - 1, l.stride);
        r.to = cuda_div(i + l.pad, l.stride) + 1;
    }
    r.to = r.to < l.out ? r.to : l.out;
    return r;
}

/* add(output element, pixels of its window, tap) for each window that input element i lies in. */
template <typename F> __device__ void gather(const struct pool &p, int64_t i, F add)
{
    struct cuda_spot at = cuda_spot_of(i, p.rows.in, p.columns.in, p.channels);
    struct range hs = windows_over(p.rows, at.h), ws = windows_over(p.columns, at.w);
    for (int64_t oh = hs.from; oh < hs.to; oh++)
        for (int64_t ow = ws.from; ow < ws.to; ow++) {
            struct window h = window_at(p.rows, oh), w = window_at(p.columns, ow);
            int64_t a = at.h - h.origin, b = at.w - w.origin;
            if (a >= h.from && a < h.to && b >= w.from && b < w.to)
                add(output_at(p, at.n, oh, ow, at.channel), h.size * w.size, a * p.kernel_w + b);
        }
}

struct max_pool_bwd {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        typedef taps<X::width> indices;
        struct pool p = pool_of(c, c->out[0], c->in[0]);
        X dy = X::of(c->in[0]), dx = X::of(c->out[0]);
        const indices *index = (const indices *)c->in[1]->data;
        return cuda_each(
            s, c, (int64_t)c->out[0]->numel / X::width,
            DEVICE(int64_t i) {
                real total[X::width] = {};
                gather(p, i * X::width, [&](int64_t o, int64_t, int64_t tap) {
                    real v[X::width];
                    indices from = index[cuda_div(o, X::width)];
                    X::open(dy.load(o), v);
                    CUDA_UNROLL
                    for (int k = 0; k < X::width; k++)
                        total[k] += from.at[k] == tap ? v[k] : 0;
                });
                dx.store(i * X::width, total);
            },
            err);
    }
};

struct avg_pool_bwd {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        struct pool p = pool_of(c, c->out[0], c->in[0]);
        X dy = X::of(c->in[0]), dx = X::of(c->out[0]);
        return cuda_each(
            s, c, (int64_t)c->out[0]->numel / X::width,
            DEVICE(int64_t i) {
                real total[X::width] = {};
                gather(p, i * X::width, [&](int64_t o, int64_t size, int64_t) {
                    real v[X::width];
                    X::open(dy.load(o), v);
                    CUDA_UNROLL
                    for (int k = 0; k < X::width; k++)
                        total[k] += v[k] / (real)size;
                });
                dx.store(i * X::width, total);
            },
            err);
    }
};

/* The indices of a pack are loaded together: they lie as the elements do. */
static int packed(const struct det_call *c)
{
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    const struct det_tensor *index = c->in[1] ? c->in[1] : c->out[1];
    bool even = !index || (uintptr_t)index->data % 16 == 0;
    return even ? cuda_packed({x, y}, x->dims[1]) : -1;
}

#define POOL(name, kernel)                                                                         \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        return cuda_run_packed<struct kernel>(packed(c), s, c, err);                               \
    }                                                                                              \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return kernel::run<cuda_any<double>>(s, c, err);                                           \
    }
POOL(max_pool2d, max_pool)
POOL(max_pool2d_bwd, max_pool_bwd)
POOL(avg_pool2d, avg_pool)
POOL(avg_pool2d_bwd, avg_pool_bwd)
