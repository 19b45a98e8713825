/* The three kernels of attention in tiles, and their launches. */
#ifndef CUDA_FLASH_KERNELS_CUH
#define CUDA_FLASH_KERNELS_CUH

#include "cuda_flash.cuh"

/* The state of two rows on their way: their greatest score and the sum of their weights, of which
 * each thread of a quad has a part. */
struct flash_sums {
    float top[2], total[2];
};

/* Scores become weights; what was summed so far shrinks to the new maximum. */
template <int N, int D>
__device__ inline void flash_weigh(float (*s)[4], float (*o)[4], flash_sums &sums)
{
    CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        float top = sums.top[half];
        CUDA_UNROLL
        for (int n = 0; n < N; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = cuda_quad_max(top);
        float from = top == -INFINITY ? 0 : top, shrink = cuda_exp2(sums.top[half] - from);
        float total = sums.total[half] * shrink;
        sums.top[half] = top;
        CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            CUDA_UNROLL
            for (int e = 2 * half; e < 2 * half + 2; e++)
                total += s[n][e] = cuda_exp2(s[n][e] - from);
        }
        sums.total[half] = total;
        CUDA_UNROLL
        for (int n = 0; n < D / 8; n++) {
            o[n][2 * half] *= shrink;
            o[n][2 * half + 1] *= shrink;
        }
    }
}

/* The inner tiles that have a key for one of the queries from w.first on. */
__device__ inline int flash_key_tiles(const cuda_flash &f, const flash_spot &w, int own, int inner)
{
    int64_t end = (int64_t)w.first + own;
    int keys = f.causal && end < f.keys ? (int)end : f.keys;
    return (keys + inner - 1) / inner;
}

template <typename E, int D>
__device__ inline void flash_forward_tile(const cuda_flash &f, int64_t i, unsigned char *shared)
{
    typedef flash_shape<E, D> S;
    typedef typename E::element element;
    flash_spot w = flash_spot_of(f, i, f.time, S::own, true);
    flash_memory<E, D> m(shared, 1, w);
    flash_sums sums = {{-INFINITY, -INFINITY}, {0, 0}};
    float o[D / 8][4] = {};
    flash_load<E, D>(f, f.q, w, w.first, f.time, S::own, m.own);
    auto step = [&](int inner, const element *k, const element *v, int) {
        uint32_t kept = flash_kept<S::inner / 8, false>(f, w, inner);
        float s[S::inner / 8][4] = {};
        E::template rows<S::inner, S::pitch>(s, m.rows(0, w), k, flash_depth(f));
        flash_scores<E, D, false>(f, w, inner, s);
        flash_weigh<S::inner / 8, D>(s, o, sums);
        flash_drop<S::inner / 8>(f, kept, s);
        E::template weighted<S::inner, D, S::pitch>(o, s, v, f.width, m.scratch);
    };
    flash_walk<E, D>(f, f.k, f.v, w, 0, flash_key_tiles(f, w, S::own, S::inner), f.keys, m.inner,
                     step, [](int, int) {});
    float factor[2];
    CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        float total = cuda_quad_sum(sums.total[half]);
        int row = w.row(2 * half);
        factor[half] = 1 / total;
        if (w.t == 0 && row < f.time)
            f.lse[w.head * f.time + row] = (sums.top[half] + log2f(total)) * FLASH_LN2;
    }
    flash_write<E, D>(f, f.y, w, f.time, o, factor);
}

/* ---- backward ---- */

/* From scores and the products dy . v: the weights, as dropout leaves them, in s, and the gradients
 * of the scores in g. of(e, column) gives a query's lse, for powers of 2, and delta. */
template <int N, typename F>
__device__ inline void flash_slopes(const cuda_flash &f, const flash_spot &w, int inner,
                                    uint32_t kept, float (*s)[4], float (*g)[4], F of)
{
    flash_drop<N>(f, kept, g);
    CUDA_UNROLL
    for (int n = 0; n < N; n++) {
        CUDA_UNROLL
        for (int e = 0; e < 4; e++) {
            float2 r = of(e, inner + 8 * n + 2 * w.t + (e & 1));
            s[n][e] = cuda_exp2(s[n][e] - r.x);
            g[n][e] = s[n][e] * (g[n][e] - r.y);
        }
    }
    flash_drop<N>(f, kept, s);
}

/* dy . y of a quad's row: this thread's part, from shared memory and y. All loads are under way at
 * once where 16 bytes may be read. */
template <typename E, int D>
__device__ inline float flash_product(const cuda_flash &f, const flash_spot &w,
                                      const typename E::element *dy, const typename E::element *y)
{
    constexpr int piece = flash_shape<E, D>::piece;
    float sum = 0;
    for (int d = w.t; !f.aligned && d < f.width; d += 4)
        sum += E::number(dy[d]) * E::number(y[d]);
    CUDA_UNROLL
    for (int d = 0; d < D; d += 4 * piece) {
        int column = d + w.t * piece;
        if (!f.aligned || column >= f.width)
            continue;
        sum = E::add_products(sum, *(const float4 *)(const void *)(dy + column),
                              *(const float4 *)(const void *)(y + column));
    }
    return sum;
}

/* lse, for powers of 2, and dy . y of one of this thread's rows; the latter is kept for the other
 * kernel. */
template <typename E, int D>
__device__ inline float2 flash_delta(const cuda_flash &f, const flash_spot &w,
                                     const typename E::element *dy, int half)
{
    typedef flash_shape<E, D> S;
    typedef typename E::element element;
    int row = w.row(2 * half);
    float sum = 0;
    if (row < f.time)
        sum = flash_product<E, D>(f, w, dy + (w.g + 8 * half) * S::pitch,
                                  flash_row<const element>(f.y, w, row));
    sum = cuda_quad_sum(sum);
    if (row >= f.time)
        return {0, 0};
    if (w.t == 0)
        f.delta[w.head * f.time + row] = sum;
    return {f.lse[w.head * f.time + row] * FLASH_LOG2E, sum};
}

template <typename E, int D>
__device__ inline void flash_queries_tile(const cuda_flash &f, int64_t i, unsigned char *shared)
{
    typedef flash_shape<E, D> S;
    typedef typename E::element element;
    flash_spot w = flash_spot_of(f, i, f.time, S::own, true);
    flash_memory<E, D> m(shared, 2, w);
    float o[D / 8][4] = {}, factor[2] = {f.scale, f.scale};
    flash_load<E, D>(f, f.q, w, w.first, f.time, S::own, m.own);
    flash_load<E, D>(f, f.dy, w, w.first, f.time, S::own, m.own + S::own_size);
    cuda_copies_wait();
    __syncthreads();
    float2 rows[2];
    CUDA_UNROLL
    for (int half = 0; half < 2; half++)
        rows[half] = flash_delta<E, D>(f, w, m.rows(1, w), half);
    auto step = [&](int inner, const element *k, const element *v, int) {
        uint32_t kept = flash_kept<S::inner / 8, false>(f, w, inner);
        float s[S::inner / 8][4] = {}, g[S::inner / 8][4] = {};
        E::template rows<S::inner, S::pitch>(s, m.rows(0, w), k, flash_depth(f));
        E::template rows<S::inner, S::pitch>(g, m.rows(1, w), v, flash_depth(f));
        flash_scores<E, D, false>(f, w, inner, s);
        flash_slopes<S::inner / 8>(f, w, inner, kept, s, g,
                                   [&](int e, int) { return rows[e >> 1]; });
        E::template weighted<S::inner, D, S::pitch>(o, g, k, f.width, m.scratch);
    };
    flash_walk<E, D>(f, f.k, f.v, w, 0, flash_key_tiles(f, w, S::own, S::inner), f.keys, m.inner,
                     step, [](int, int) {});
    flash_write<E, D>(f, f.dq, w, f.time, o, factor);
}

template <typename E, int D>
__device__ inline void flash_keys_tile(const cuda_flash &f, int64_t i, unsigned char *shared)
{
    typedef flash_shape<E, D> S;
    typedef typename E::element element;
    flash_spot w = flash_spot_of(f, i, f.keys, S::own, false);
    flash_memory<E, D> m(shared, 2, w);
    float dk[D / 8][4] = {}, dv[D / 8][4] = {}, one[2] = {1, 1}, factor[2] = {f.scale, f.scale};
    flash_load<E, D>(f, f.k, w, w.first, f.keys, S::own, m.own);
    flash_load<E, D>(f, f.v, w, w.first, f.keys, S::own, m.own + S::own_size);
    auto sums_of = [&](int inner, int stage) {
        for (int i = (int)threadIdx.x; i < 2 * S::inner; i += FLASH_THREADS) {
            int query = inner + i % S::inner;
            const float *from = (i < S::inner ? f.lse : f.delta) + w.head * f.time + query;
            if (query < f.time)
                cuda_copy4(m.sums + 2 * stage * S::inner + i, from);
            else
                m.sums[2 * stage * S::inner + i] = 0;
        }
    };
    auto step = [&](int inner, const element *q, const element *dy, int stage) {
        uint32_t kept = flash_kept<S::inner / 8, true>(f, w, inner);
        float s[S::inner / 8][4] = {}, g[S::inner / 8][4] = {};
        E::template rows<S::inner, S::pitch>(s, m.rows(0, w), q, flash_depth(f));
        E::template rows<S::inner, S::pitch>(g, m.rows(1, w), dy, flash_depth(f));
        flash_scores<E, D, true>(f, w, inner, s);
        const float *sums = m.sums + 2 * stage * S::inner - inner;
        flash_slopes<S::inner / 8>(f, w, inner, kept, s, g, [&](int, int query) -> float2 {
            return {sums[query] * FLASH_LOG2E, sums[S::inner + query]};
        });
        E::template weighted<S::inner, D, S::pitch>(dv, s, dy, f.width, m.scratch);
        E::template weighted<S::inner, D, S::pitch>(dk, g, q, f.width, m.scratch);
    };
    int tiles = (f.time + S::inner - 1) / S::inner, from = f.causal ? w.first / S::inner : 0;
    flash_walk<E, D>(f, f.q, f.dy, w, from, tiles, f.time, m.inner, step, sums_of);
    flash_write<E, D>(f, f.dk, w, f.keys, dk, factor);
    flash_write<E, D>(f, f.dv, w, f.keys, dv, one);
}

/* ---- launches ---- */

#define FLASH_KERNEL(name)                                                                         \
    template <typename E, int D>                                                                   \
    __global__ void __launch_bounds__(FLASH_THREADS) flash_##name(cuda_flash f, int64_t n)         \
    {                                                                                              \
        CUDA_SHARED_BYTES(shared);                                                                 \
        for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {                                      \
            flash_##name##_tile<E, D>(f, i, shared);                                               \
            cuda_copies_wait();                                                                    \
            __syncthreads();                                                                       \
        }                                                                                          \
    }
FLASH_KERNEL(forward)
FLASH_KERNEL(queries)
FLASH_KERNEL(keys)

template <typename E, int D>
static int flash_run(struct det_stream *s, const struct det_call *c, const struct cuda_flash *f,
                     struct det_err *err)
{
    typedef flash_shape<E, D> S;
    int64_t heads = f->batch * f->heads, tiles = heads * ((f->time + S::own - 1) / S::own);
    auto kernel = flash_forward<E, D>;
    return cuda_tiles(s, c, kernel, tiles, FLASH_THREADS, S::bytes(1), err, *f, tiles);
}

template <typename E, int D>
static int flash_run_bwd(struct det_stream *s, const struct det_call *c, const struct cuda_flash *f,
                         struct det_err *err)
{
    typedef flash_shape<E, D> S;
    int64_t heads = f->batch * f->heads, tiles = heads * ((f->time + S::own - 1) / S::own);
    int64_t key_tiles = heads * ((f->keys + S::own - 1) / S::own);
    auto queries = flash_queries<E, D>, keys = flash_keys<E, D>;
    int rc = cuda_tiles(s, c, queries, tiles, FLASH_THREADS, S::bytes(2), err, *f, tiles);
    if (rc < 0)
        return rc;
    return cuda_tiles(s, c, keys, key_tiles, FLASH_THREADS, S::bytes(2), err, *f, key_tiles);
}

/* Defines cuda_flash_<name>() and cuda_flash_bwd_<name>() of elements E. */
#define CUDA_FLASH(name, E)                                                                        \
    int cuda_flash_##name(struct det_stream *s, const struct det_call *c,                          \
                          const struct cuda_flash *f, struct det_err *err)                         \
    {                                                                                              \
        return f->width <= 64 ? flash_run<E, 64>(s, c, f, err) : flash_run<E, 128>(s, c, f, err);  \
    }                                                                                              \
    int cuda_flash_bwd_##name(struct det_stream *s, const struct det_call *c,                      \
                              const struct cuda_flash *f, struct det_err *err)                     \
    {                                                                                              \
        return f->width <= 64 ? flash_run_bwd<E, 64>(s, c, f, err)                                 \
                              : flash_run_bwd<E, 128>(s, c, f, err);                               \
    }

#endif
