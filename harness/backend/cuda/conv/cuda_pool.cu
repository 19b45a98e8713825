/*
 * Pooling over NHWC images, a pack of neighbouring channels a thread. Gradients gather: each pixel
 * adds the windows that it lies in, in their order, so nothing adds atomically.
 */
#define WINDOW_FN __host__ __device__ static inline
#include <limits.h>

#include "cuda_pack.cuh"
#include "cuda_spot.cuh"
#include "window.h"

struct pool {
    struct window_line rows, columns;
    int64_t channels;
    int kernel_w;
};

/* Adaptive windows that all are of one size are windows as any. */
static struct window_line plain(struct window_line l)
{
    if (!l.adaptive || l.out <= 0 || l.in % l.out != 0)
        return l;
    return {l.in, l.out, (int)(l.in / l.out), (int)(l.in / l.out), 0, false, l.include_pad};
}

static struct pool pool_of(const struct det_call *c, const struct det_tensor *x,
                           const struct det_tensor *y)
{
    return {plain(window_rows(&c->a, x, y)), plain(window_columns(&c->a, x, y)), x->dims[1],
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

#define TAPS 4 /* of a row of a window, which are loaded before the first is used */

/* f(raw of the input, tap) for each pixel of output element i's window. */
template <typename X, typename F>
__device__ struct window over_window(const struct pool &p, const X &x, int64_t i, F f)
{
    struct cuda_spot at = cuda_spot_of(i, p.rows.out, p.columns.out, p.channels);
    struct window h = window_at(p.rows, at.h), w = window_at(p.columns, at.w);
    int down = (int)h.to, across = (int)w.to;
    for (int a = (int)h.from; a < down; a++)
        for (int b = (int)w.from; b < across; b += TAPS) {
            int64_t from = input_at(p, at.n, h.origin + a, w.origin + b, at.channel);
            typename X::raw r[TAPS];
            CUDA_UNROLL
            for (int k = 0; k < TAPS; k++)
                if (b + k < across)
                    r[k] = x.load(from + k * p.channels);
            CUDA_UNROLL
            for (int k = 0; k < TAPS; k++)
                if (b + k < across)
                    f(r[k], a * p.kernel_w + b + k);
        }
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
                over_window(p, x, i * X::width, [&](const typename X::raw &r, int tap) {
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
                auto add = [&](const typename X::raw &r, int) {
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

/*
 * Where no pixel lies in more than two windows of a line, the pixels from c * stride - pad on,
 * `stride` of them, are cell c, and they lie in windows c - 1 and c alone. A thread takes a cell of
 * both lines: it loads what its four windows have once, for all of its pixels.
 */
struct cells {
    int in, out, kernel, stride, pad, first, count;
};

#define CELL_PIXELS 64 /* more are too much for a thread */

/* False where the windows are not such. */
static bool has_cells(const struct window_line &l, struct cells *ret)
{
    if (l.adaptive || l.kernel > 2 * l.stride || l.in + l.pad > INT_MAX / 2 || l.in <= 0)
        return false;
    int first = l.pad / l.stride, last = (int)((l.in - 1 + l.pad) / l.stride);
    *ret = {(int)l.in, (int)l.out, l.kernel, l.stride, l.pad, first, last - first + 1};
    return true;
}

struct cell_pool {
    struct cells h, w;
    uint32_t packs; /* of a pixel */
    int64_t n;      /* threads; 0: not by cells */
};

static struct cell_pool cell_pool_of(const struct pool &p, int64_t elements, int width)
{
    struct cell_pool k = {};
    if (!has_cells(p.rows, &k.h) || !has_cells(p.columns, &k.w) || elements <= 0 ||
        (int64_t)k.h.stride * k.w.stride > CELL_PIXELS)
        return k;
    k.packs = (uint32_t)(p.channels / width);
    int64_t images = elements / (p.rows.in * p.columns.in * p.channels);
    int64_t n = images * k.h.count * k.w.count * (p.channels / width);
    k.n = n <= UINT32_MAX ? n : 0;
    return k;
}

/* The cell of a thread, and where in the tensors its image and its channels begin. */
struct cell {
    int h, w;
    int64_t in, out;
};

__device__ static struct cell cell_of(const struct cell_pool &k, uint32_t i, int width)
{
    uint32_t spot = i / k.packs, row = spot / (uint32_t)k.w.count, n = row / (uint32_t)k.h.count;
    int64_t wide = (int64_t)k.packs * width, channel = (int64_t)(i - spot * k.packs) * width;
    return {(int)(row - n * (uint32_t)k.h.count) + k.h.first,
            (int)(spot - row * (uint32_t)k.w.count) + k.w.first,
            n * ((int64_t)k.h.in * k.w.in) * wide + channel,
            n * ((int64_t)k.h.out * k.w.out) * wide + channel};
}

/* Whether window c - 1 + o of cell c is one that a pixel of it may lie in. */
__device__ static bool has_window(const struct cells &l, int c, int o)
{
    int at = c - 1 + o;
    return at >= 0 && at < l.out && (o == 1 || l.kernel > l.stride);
}

/* load(i, j, element, row, column) of the cell's windows; then for each pixel open(), add(i, j,
 * tap) of each window that it lies in, and close(element). */
template <typename LOAD, typename OPEN, typename ADD, typename CLOSE>
__device__ void over_cell(const struct cell_pool &k, const struct cell &at, int width, int kernel_w,
                          LOAD load, OPEN open, ADD add, CLOSE close)
{
    int64_t wide = (int64_t)k.packs * width;
    CUDA_UNROLL
    for (int i = 0; i < 2; i++)
        CUDA_UNROLL
    for (int j = 0; j < 2; j++)
        if (has_window(k.h, at.h, i) && has_window(k.w, at.w, j)) {
            int h = at.h - 1 + i, w = at.w - 1 + j;
            load(i, j, at.out + ((int64_t)h * k.w.out + w) * wide, h, w);
        }
    for (int a = 0; a < k.h.stride; a++)
        for (int b = 0; b < k.w.stride; b++) {
            int h = at.h * k.h.stride - k.h.pad + a, w = at.w * k.w.stride - k.w.pad + b;
            if (h < 0 || h >= k.h.in || w < 0 || w >= k.w.in)
                continue;
            open();
            CUDA_UNROLL
            for (int i = 0; i < 2; i++)
                CUDA_UNROLL
            for (int j = 0; j < 2; j++) {
                int y = a + (1 - i) * k.h.stride, x = b + (1 - j) * k.w.stride;
                if (y < k.h.kernel && x < k.w.kernel)
                    add(i, j, y * kernel_w + x);
            }
            close(at.in + ((int64_t)h * k.w.in + w) * wide);
        }
}

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

/* The gradients of the windows whose index is the pixel. */
template <typename X>
static int max_pool_cells(struct det_stream *s, const struct det_call *c, const struct cell_pool &k,
                          struct det_err *err)
{
    typedef typename X::real real;
    typedef taps<X::width> indices;
    X dy = X::of(c->in[0]), dx = X::of(c->out[0]);
    const indices *index = (const indices *)c->in[1]->data;
    int kernel_w = c->a.kernel_w;
    return cuda_each(
        s, c, k.n,
        DEVICE(int64_t thread) {
            typename X::raw slope[2][2];
            indices from[2][2];
            real total[X::width];
            bool there[2][2] = {};
            over_cell(
                k, cell_of(k, (uint32_t)thread, X::width), X::width, kernel_w,
                [&](int i, int j, int64_t o, int, int) {
                    there[i][j] = true;
                    slope[i][j] = dy.load(o);
                    from[i][j] = index[o / X::width];
                },
                [&] {
                    CUDA_UNROLL
                    for (int n = 0; n < X::width; n++)
                        total[n] = 0;
                },
                [&](int i, int j, int tap) {
                    real v[X::width];
                    if (!there[i][j])
                        return;
                    X::open(slope[i][j], v);
                    CUDA_UNROLL
                    for (int n = 0; n < X::width; n++)
                        total[n] += from[i][j].at[n] == tap ? v[n] : 0;
                },
                [&](int64_t o) { dx.store(o, total); });
        },
        err);
}

template <typename X>
static int max_pool_gather(struct det_stream *s, const struct det_call *c, const struct pool &p,
                           struct det_err *err)
{
    typedef typename X::real real;
    typedef taps<X::width> indices;
    X dy = X::of(c->in[0]), dx = X::of(c->out[0]);
    const indices *index = (const indices *)c->in[1]->data;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel / X::width,
        DEVICE(int64_t i) {
            real total[X::width] = {};
            gather(p, i * X::width, [&](int64_t o, int64_t, int64_t tap) {
                real v[X::width];
                indices from = index[o / X::width];
                X::open(dy.load(o), v);
                CUDA_UNROLL
                for (int k = 0; k < X::width; k++)
                    total[k] += from.at[k] == tap ? v[k] : 0;
            });
            dx.store(i * X::width, total);
        },
        err);
}

struct max_pool_bwd {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        struct pool p = pool_of(c, c->out[0], c->in[0]);
        struct cell_pool k = cell_pool_of(p, (int64_t)c->out[0]->numel, X::width);
        return k.n > 0 ? max_pool_cells<X>(s, c, k, err) : max_pool_gather<X>(s, c, p, err);
    }
};

/* The gradients of a pixel's windows, over their sizes. */
template <typename X>
static int avg_pool_cells(struct det_stream *s, const struct det_call *c, const struct pool &p,
                          const struct cell_pool &k, struct det_err *err)
{
    typedef typename X::real real;
    X dy = X::of(c->in[0]), dx = X::of(c->out[0]);
    return cuda_each(
        s, c, k.n,
        DEVICE(int64_t thread) {
            real slope[2][2][X::width], total[X::width];
            bool there[2][2] = {};
            over_cell(
                k, cell_of(k, (uint32_t)thread, X::width), X::width, 0,
                [&](int i, int j, int64_t o, int h, int w) {
                    real size = (real)(window_at(p.rows, h).size * window_at(p.columns, w).size);
                    there[i][j] = true;
                    X::open(dy.load(o), slope[i][j]);
                    CUDA_UNROLL
                    for (int n = 0; n < X::width; n++)
                        slope[i][j][n] /= size;
                },
                [&] {
                    CUDA_UNROLL
                    for (int n = 0; n < X::width; n++)
                        total[n] = 0;
                },
                [&](int i, int j, int) {
                    CUDA_UNROLL
                    for (int n = 0; n < X::width; n++)
                        total[n] += there[i][j] ? slope[i][j][n] : 0;
                },
                [&](int64_t o) { dx.store(o, total); });
        },
        err);
}

template <typename X>
static int avg_pool_gather(struct det_stream *s, const struct det_call *c, const struct pool &p,
                           struct det_err *err)
{
    typedef typename X::real real;
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

struct avg_pool_bwd {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        struct pool p = pool_of(c, c->out[0], c->in[0]);
        struct cell_pool k = cell_pool_of(p, (int64_t)c->out[0]->numel, X::width);
        return k.n > 0 ? avg_pool_cells<X>(s, c, p, k, err) : avg_pool_gather<X>(s, c, p, err);
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
