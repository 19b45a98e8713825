/*
 * Scaled dot-product attention (Vaswani et al. 2017) of any width, in f32 and f64; cuda_flash.h has
 * what is faster. One block for a query: scores of a tile of keys at a time, with the running
 * maximum and sum of Milakov & Gimelshein 2018, so that no matrix of times x times exists.
 * Scores are in powers of 2, as those of the tiles, which may have made the one direction.
 * Gradients: a block for a query gives dq, a block for a key dk and dv, each from scores computed
 * again (Dao et al. 2022), each sum in the order of its tiles.
 */
#include <float.h>

#include "cuda_flash.h"
#include "cuda_flash_call.h"
#include "cuda_random.cuh"
#include "cuda_row.cuh"

#define LOG2E 1.4426950408889634

/* Halves are given to us for the tiles only: computes() of cuda_device.c. */
static inline bool is_f32(const struct det_call *c)
{
    return c->in[c->kernel == DET_KERNEL_ATTENTION ? 0 : 1]->dtype == DET_F32;
}

/* In tiles where that is possible: flash() in f32, bf16 or f16. */
#define IN_TILES(name, flash)                                                                      \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        int rc = cuda_flash_takes(c) ? flash(s, c, err) : DET_EUNIMPL;                             \
        return rc == DET_EUNIMPL && is_f32(c) ? name<float>(s, c, err) : rc;                       \
    }                                                                                              \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return name<double>(s, c, err);                                                            \
    }

/* Rows of `width` elements, `step` apart, of one head. */
template <typename T> struct head {
    T *p;
    int64_t step;
};

/* q, k and v apart, [B, H, T, D], or one tensor [B, T, 3, H, D]; the output lies as q, or
 * [B, T, H, D]. */
template <typename T> struct attended {
    int64_t batch, heads, time, keys, width;
    bool packed, causal;
    T scale, scale2, kept; /* scale2: for powers of 2; kept: the factor of what dropout leaves */
    float p;
    struct cuda_stream_of_draws draws;
    T *q, *k, *v, *y; /* packed: k and v are NULL */
    const T *mask;    /* [B or 1, H or 1, T, S], or NULL */
    int64_t mask_b, mask_h;

    __device__ head<T> input(T *t, int which, int64_t b, int64_t h) const
    {
        int64_t rows = which == 0 ? time : keys, line = heads * width;
        if (!packed)
            return {t + (b * heads + h) * rows * width, width};
        return {t + b * rows * 3 * line + which * line + h * width, 3 * line};
    }
    __device__ head<T> output(T *t, int64_t b, int64_t h) const
    {
        int64_t line = heads * width;
        if (!packed)
            return input(t, 0, b, h);
        return {t + b * time * line + h * width, line};
    }
    /* Row (b H + h) T + t, key j. */
    __device__ T keep(int64_t row, int64_t j) const
    {
        if (p <= 0)
            return 1;
        return cuda_draw(draws, (uint64_t)(row * keys + j)) >= p ? kept : 0;
    }
    /* The score x with its part of the mask. A finite one stays finite. */
    __device__ T masked(int64_t b, int64_t h, int64_t t, int64_t j, T x) const
    {
        if (!mask)
            return x;
        const T greatest = (T)(sizeof(T) == sizeof(float) ? FLT_MAX : DBL_MAX);
        T m = mask[((b * mask_b + h * mask_h) * time + t) * keys + j], y = x + (T)LOG2E * m;
        return y == -INFINITY && m != -INFINITY && x != -INFINITY ? -greatest : y;
    }
};

/* first: the index of q in c->in (1 in the backward kernel). */
template <typename T> static attended<T> attention_of(const struct det_call *c, int first)
{
    const struct det_tensor *q = c->in[first], *k = c->in[first + 1], *m = c->in[first + 3];
    attended<T> a = {};
    a.packed = !k;
    a.batch = q->dims[0];
    a.heads = q->dims[k ? 1 : 3];
    a.time = q->dims[k ? 2 : 1];
    a.keys = k ? k->dims[2] : a.time;
    a.width = q->dims[k ? 3 : 4];
    a.causal = c->a.causal;
    a.scale = (T)c->a.scale;
    a.scale2 = (T)(c->a.scale * LOG2E);
    a.p = (float)c->a.p; /* so that every dtype drops the same */
    a.kept = (T)(1 / (1 - c->a.p));
    a.draws = {c->a.seed, c->a.call};
    a.q = (T *)q->data;
    a.k = k ? (T *)k->data : a.q;
    a.v = k ? (T *)c->in[first + 2]->data : a.q;
    if (m) {
        a.mask = (const T *)m->data;
        a.mask_h = m->dims[1] > 1 ? 1 : 0;
        a.mask_b = m->dims[0] > 1 ? m->dims[1] : 0;
    }
    return a;
}

template <typename T> __device__ static T dot(head<T> a, int64_t i, head<T> b, int64_t j, int64_t n)
{
    T sum = 0;
    for (int64_t d = 0; d < n; d++)
        sum += a.p[i * a.step + d] * b.p[j * b.step + d];
    return sum;
}

/* One query or key of one head: where it is, and the head's matrices. */
template <typename T> struct place {
    int64_t b, h, i;
    head<T> q, k, v, dy;
};

template <typename T>
__device__ static place<T> place_of(const attended<T> &a, int64_t row, int64_t n)
{
    int64_t head = cuda_div(row, n), b = cuda_div(head, a.heads), h = head - b * a.heads;
    return {b,
            h,
            row - head * n,
            a.input(a.q, 0, b, h),
            a.input(a.k, 1, b, h),
            a.input(a.v, 2, b, h),
            a.output(a.y, b, h)};
}

template <typename T>
__device__ static T score(const attended<T> &a, const place<T> &p, int64_t t, int64_t j)
{
    if (a.causal && j > t)
        return -INFINITY;
    return a.masked(p.b, p.h, t, j, a.scale2 * dot(p.q, t, p.k, j, a.width));
}

/* No key after this one counts for query t. */
template <typename T> __device__ static int64_t keys_of(const attended<T> &a, int64_t t)
{
    return a.causal && t + 1 < a.keys ? t + 1 : a.keys;
}

template <typename T> __device__ static void forward_row(const attended<T> &a, int64_t row, T *lse)
{
    CUDA_SHARED(T, weight, CUDA_BLOCK_MAX);
    place<T> p = place_of(a, row, a.time);
    T *y = p.dy.p + p.i * p.dy.step, top = -INFINITY;
    int64_t keys = keys_of(a, p.i);
    double total = 0;
    for (int64_t d = threadIdx.x; d < a.width; d += blockDim.x)
        y[d] = 0;
    for (int64_t from = 0; from < keys; from += blockDim.x) {
        int64_t j = from + threadIdx.x, n = keys - from < blockDim.x ? keys - from : blockDim.x;
        T x = j < keys ? score(a, p, p.i, j) : -INFINITY;
        T higher = cuda_greater()(top, cuda_combine(x, cuda_greater()));
        if (higher == -INFINITY)
            continue;
        T e = exp2(x - higher), shrink = exp2(top - higher);
        total = total * shrink + cuda_combine((double)e, cuda_plus());
        top = higher;
        weight[threadIdx.x] = j < keys ? e * a.keep(row, j) : 0;
        __syncthreads();
        for (int64_t d = threadIdx.x; d < a.width; d += blockDim.x) {
            T sum = y[d] * shrink;
            for (int64_t l = 0; l < n; l++)
                sum += weight[l] * p.v.p[(from + l) * p.v.step + d];
            y[d] = sum;
        }
        __syncthreads();
    }
    for (int64_t d = threadIdx.x; d < a.width; d += blockDim.x)
        y[d] = (T)(y[d] / total);
    if (threadIdx.x == 0) {
        lse[row] = top;
        lse[a.batch * a.heads * a.time + row] = (T)log2(total);
    }
}

template <typename T>
static int attention(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    attended<T> a = attention_of<T>(c, 0);
    T *lse = out_real<T>(c, 1);
    a.y = out_real<T>(c, 0);
    return cuda_blocks(
        s, c, a.batch * a.heads * a.time, DEVICE(int64_t row) { forward_row(a, row, lse); }, err);
}
IN_TILES(attention, cuda_flash_forward)

/* What the backward kernels share: gradients lie as their tensors; delta[row] = dy . y. */
template <typename T> struct back {
    attended<T> a;
    const T *lse;
    T *dq, *dk, *dv;
    double *delta;
};

/* The gradient of the score of query t and key j, and the weight that v_j has in y_t. */
template <typename T> struct slope {
    T ds, weight;
};

template <typename T>
__device__ static slope<T> slope_of(const back<T> &k, const place<T> &p, int64_t t, int64_t j,
                                    double delta)
{
    int64_t row = (p.b * k.a.heads + p.h) * k.a.time + t;
    T x = score(k.a, p, t, j), top = k.lse[row];
    T log_sum = k.lse[k.a.batch * k.a.heads * k.a.time + row];
    T weight = x == -INFINITY && top != -INFINITY ? 0 : exp2((x - top) - log_sum);
    T keep = k.a.keep(row, j), g = keep * dot(p.dy, t, p.v, j, k.a.width);
    return {(T)(weight * (g - delta) * k.a.scale), weight * keep};
}

template <typename T> __device__ static void query_back(const back<T> &k, int64_t row)
{
    CUDA_SHARED(T, ds, CUDA_BLOCK_MAX);
    place<T> p = place_of(k.a, row, k.a.time);
    int64_t keys = keys_of(k.a, p.i);
    head<T> out = k.a.input(k.dq, 0, p.b, p.h);
    T *dq = out.p + p.i * out.step;
    double delta = 0;
    for (int64_t j = threadIdx.x; j < keys; j += blockDim.x)
        delta += (double)slope_of(k, p, p.i, j, 0).ds / k.a.scale;
    delta = cuda_combine(delta, cuda_plus());
    if (threadIdx.x == 0)
        k.delta[row] = delta;
    for (int64_t d = threadIdx.x; d < k.a.width; d += blockDim.x)
        dq[d] = 0;
    for (int64_t from = 0; from < keys; from += blockDim.x) {
        int64_t j = from + threadIdx.x, n = keys - from < blockDim.x ? keys - from : blockDim.x;
        ds[threadIdx.x] = j < keys ? slope_of(k, p, p.i, j, delta).ds : 0;
        __syncthreads();
        for (int64_t d = threadIdx.x; d < k.a.width; d += blockDim.x)
            for (int64_t l = 0; l < n; l++)
                dq[d] += ds[l] * p.k.p[(from + l) * p.k.step + d];
        __syncthreads();
    }
}

template <typename T> __device__ static void key_back(const back<T> &k, int64_t row)
{
    CUDA_SHARED(slope<T>, tile, CUDA_BLOCK_MAX);
    place<T> p = place_of(k.a, row, k.a.keys);
    head<T> hk = k.a.input(k.dk, 1, p.b, p.h), hv = k.a.input(k.dv, 2, p.b, p.h);
    T *dk = hk.p + p.i * hk.step, *dv = hv.p + p.i * hv.step;
    const double *delta = k.delta + (p.b * k.a.heads + p.h) * k.a.time;
    for (int64_t d = threadIdx.x; d < k.a.width; d += blockDim.x)
        dk[d] = dv[d] = 0;
    for (int64_t from = k.a.causal ? p.i : 0; from < k.a.time; from += blockDim.x) {
        int64_t t = from + threadIdx.x, left = k.a.time - from;
        int64_t n = left < blockDim.x ? left : blockDim.x;
        if (t < k.a.time)
            tile[threadIdx.x] = slope_of(k, p, t, p.i, delta[t]);
        __syncthreads();
        for (int64_t d = threadIdx.x; d < k.a.width; d += blockDim.x)
            for (int64_t l = 0; l < n; l++) {
                dk[d] += tile[l].ds * p.q.p[(from + l) * p.q.step + d];
                dv[d] += tile[l].weight * p.dy.p[(from + l) * p.dy.step + d];
            }
        __syncthreads();
    }
}

template <typename T>
static int attention_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    back<T> k = {attention_of<T>(c, 1), in_real<T>(c, 5),  out_real<T>(c, 0),
                 out_real<T>(c, 1),     out_real<T>(c, 2), NULL};
    int64_t queries = k.a.batch * k.a.heads * k.a.time, keys = k.a.batch * k.a.heads * k.a.keys;
    void *work = NULL;
    int rc = cuda_workspace(s->device, (size_t)queries * sizeof(double) + 8, &work, err);
    if (rc < 0)
        return rc;
    k.delta = (double *)work;
    k.a.y = (T *)c->in[0]->data;
    if (k.a.packed)
        k.dk = k.dv = k.dq;
    rc = cuda_blocks(
        s, c, queries, DEVICE(int64_t row) { query_back(k, row); }, err);
    if (rc < 0)
        return rc;
    return cuda_blocks(
        s, c, keys, DEVICE(int64_t row) { key_back(k, row); }, err);
}
IN_TILES(attention_bwd, cuda_flash_backward)

/* Rotary position embedding (Su et al. 2021). Angles in double: positions are large. */
template <typename T>
static int rotary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t times = c->in[0]->dims[1], width = c->in[0]->dims[2], half = width / 2;
    const T *x = in_real<T>(c, 0);
    T *y = out_real<T>(c, 0);
    double offset = c->a.offset, base = c->a.scale;
    bool halves = c->a.halves, reverse = c->a.reverse;
    return cuda_each(
        s, c, c->in[0]->dims[0] * times * half,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, half), pair = i - row * half, at = row * width;
            int64_t first = at + (halves ? pair : 2 * pair);
            int64_t second = at + (halves ? pair + half : 2 * pair + 1);
            double t = offset + (double)(row % times);
            double angle = t * pow(base, -2.0 * (double)pair / (double)width);
            double cosine = cos(angle), sine = reverse ? -sin(angle) : sin(angle);
            double a = x[first], b = x[second];
            y[first] = (T)(a * cosine - b * sine);
            y[second] = (T)(a * sine + b * cosine);
        },
        err);
}
CUDA_REAL(rotary)
