/* The three kernels of attention in tiles, and their launches. */
#ifndef CUDA_FLASH_KERNELS_CUH
#define CUDA_FLASH_KERNELS_CUH

#include "cuda_flash.cuh"

/* The state of two rows on their way: about their greatest score, from which their weights are
 * reckoned, and the sum of these, of which each thread of a quad has a part. */
struct flash_sums {
    float top[2], total[2];
};

/* So many times, as a power of 2, may a weight be above 1 before what was summed shrinks. */
#define FLASH_ABOVE 8

template <int D>
__device__ inline void flash_shrink(float factor, int half, float (*o)[4], flash_sums &sums)
{
    sums.total[half] *= factor;
    CUDA_UNROLL
    for (int n = 0; n < D / 8; n++) {
        o[n][2 * half] *= factor;
        o[n][2 * half + 1] *= factor;
    }
}

/* Scores become weights; what was summed so far shrinks to the new maximum, if that is much more
 * than the one before: sums and weights are floating-point numbers, which do not mind a factor. */
template <int N, int D>
__device__ inline void flash_weigh(const cuda_flash &f, float (*s)[4], float (*o)[4],
                                   flash_sums &sums)
{
    CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        float top = sums.top[half], was = top;
        CUDA_UNROLL
        for (int n = 0; n < N; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = cuda_quad_max(top);
        bool above = !((top - was) * f.after <= FLASH_ABOVE);
        sums.top[half] = top = above ? top : was;
        float from = top == -INFINITY ? 0 : top * f.after;
        if (above)
            flash_shrink<D>(cuda_exp2(was * f.after - from), half, o, sums);
        float total = sums.total[half];
        CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            CUDA_UNROLL
            for (int e = 2 * half; e < 2 * half + 2; e++)
                total += s[n][e] = cuda_exp2(s[n][e] * f.after - from);
        }
        sums.total[half] = total;
    }
}

/* The inner tiles that have a key for one of the queries from w.first on. */
__device__ inline int flash_key_tiles(const cuda_flash &f, const flash_spot &w, int own, int inner)
{
    int64_t end = (int64_t)w.first + own;
    int keys = f.causal && end < f.keys ? (int)end : f.keys;
    return (keys + inner - 1) / inner;
}

/* Writes 16 rows of y and their lse. */
template <typename E, int D>
__device__ inline void flash_finish(const cuda_flash &f, const flash_spot &w,
                                    const flash_sums &sums, const float (*o)[4])
{
    float factor[2];
    CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        float total = cuda_quad_sum(sums.total[half]);
        int row = w.row(2 * half);
        factor[half] = f.kept / total;
        if (w.t == 0 && row < f.time) {
            float *lse = f.lse + w.head * f.time + row;
            lse[0] = sums.top[half] * f.after;
            lse[flash_rows(f)] = log2f(total);
        }
    }
    flash_write<E, D>(f, f.y, w, f.time, o, factor);
}

template <typename E, int D>
__device__ inline void flash_forward_tile(const cuda_flash &f, int64_t i, unsigned char *shared)
{
    constexpr int M = E::template rows_of<D>;
    typedef flash_shape<E, D, M> S;
    typedef typename E::element element;
    constexpr int N = S::inner / 8;
    flash_spot w = flash_spot_of(f, i, f.time, S::own, true);
    flash_memory<S> m(shared, 1, w);
    flash_sums sums[M];
    float o[M][D / 8][4] = {};
    CUDA_UNROLL
    for (int k = 0; k < M; k++)
        sums[k] = {{-INFINITY, -INFINITY}, {0, 0}};
    flash_load<S, S::own>(f, f.q, w, w.first, f.time, m.own);
    auto step = [&](int inner, const element *k, const element *v, int) {
        if (flash_skips<false>(f, w, S::warp_rows, inner, S::inner))
            return;
        uint32_t kept[M];
        flash_kept<M, N, false>(f, w, inner, kept);
        float s[M][N][4] = {};
        E::template rows<M, N, D, S::pitch>(s, m.rows(0, w), k, f.width);
        CUDA_UNROLL
        for (int k = 0; k < M; k++) {
            flash_scores<E, N, false>(f, w.at(k), inner, s[k]);
            flash_weigh<N, D>(f, s[k], o[k], sums[k]);
            flash_drop<N>(f, kept[k], s[k]);
        }
        E::template weighted<M, N, D, S::pitch>(o, s, v, f.width, m.scratch);
    };
    flash_walk<S>(
        f, f.k, f.v, w, 0, flash_key_tiles(f, w, S::own, S::inner), f.keys, m.inner, [] {}, step,
        [](int, int) {});
    CUDA_UNROLL
    for (int k = 0; k < M; k++)
        flash_finish<E, D>(f, w.at(k), sums[k], o[k]);
}

/* ---- backward ---- */

/* The weight of score x, in powers of 2, of a query. None is above 1, whatever digits x has lost
 * beside large numbers. Where there is a mask, of very large ones maybe, the sum's logarithm is
 * apart; and a query from which -inf hides all keys has no weights. */
__device__ inline float flash_weight(const cuda_flash &f, float x, float lse, float log_sum)
{
    if (!f.mask)
        return cuda_exp2(fminf(x - lse, 0));
    x = (x - lse) - log_sum;
    return cuda_exp2(x > 0 ? 0 : x);
}

/* The logarithm that flash_weight() wants apart. */
__device__ inline float flash_log_sum(const cuda_flash &f, const flash_spot &w, int query)
{
    return f.mask && query < f.time ? flash_lse(f, w, query)[flash_rows(f)] : 0;
}

/* From scores and the products dy . v: the weights, as dropout leaves them, in s, and the gradients
 * of the scores in g, both without the factor of dropout. of(n, r, l) gives what flash_deltas()
 * made of the queries of tile n's elements, and their flash_log_sum(). */
template <int N, typename F>
__device__ inline void flash_slopes(const cuda_flash &f, uint32_t kept, float (*s)[4],
                                    float (*g)[4], F of)
{
    flash_drop<N>(f, kept, g);
    CUDA_UNROLL
    for (int n = 0; n < N; n++) {
        float2 r[4];
        float l[4];
        of(n, r, l);
        CUDA_UNROLL
        for (int e = 0; e < 4; e++) {
            s[n][e] = flash_weight(f, s[n][e] * f.after, r[e].x, l[e]);
            g[n][e] = s[n][e] * (g[n][e] - r[e].y);
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
    constexpr int piece = 16 / (int)sizeof(typename E::element);
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

/* Of this thread's rows, whose dy is in shared memory: the logarithm of the sum of all (where there
 * is a mask the top alone), and dy . y without dropout's factor; to `to` and to where the other
 * kernel finds them. Nothing is written before all is read. */
template <typename E, int D, int M, int PITCH>
__device__ inline void flash_deltas(const cuda_flash &f, const flash_spot &w,
                                    const typename E::element *dy, float *to)
{
    float2 r[2 * M];
    CUDA_UNROLL
    for (int k = 0; k < 2 * M; k++) {
        int row = w.row(0) + 8 * k;
        r[k] = {0, 0};
        if (row >= f.time)
            continue;
        const float *lse = flash_lse(f, w, row);
        r[k] = {f.mask ? lse[0] : lse[0] + lse[flash_rows(f)],
                f.left * flash_product<E, D>(f, w, dy + (w.g + 8 * k) * PITCH,
                                             flash_row<const typename E::element>(f.y, w, row))};
    }
    CUDA_UNROLL
    for (int k = 0; k < 2 * M; k++) {
        int row = w.row(0) + 8 * k;
        r[k].y = cuda_quad_sum(r[k].y);
        if (w.t == 0)
            *(float2 *)(void *)(to + 2 * (w.g + 8 * k)) = r[k];
        if (w.t == 0 && row < f.time)
            *(float2 *)(void *)(f.sums + 2 * (w.head * f.time + row)) = r[k];
    }
}

template <typename E, int D>
__device__ inline void flash_queries_tile(const cuda_flash &f, int64_t i, unsigned char *shared)
{
    constexpr int M = E::template rows_of<D>;
    typedef flash_shape<E, D, M> S;
    typedef typename E::element element;
    constexpr int N = S::part / 8;
    flash_spot w = flash_spot_of(f, i, f.time, S::own, true);
    flash_memory<S> m(shared, 2, w);
    float o[M][D / 8][4] = {}, factor[2] = {f.scale * f.kept, f.scale * f.kept};
    flash_load<S, S::own>(f, f.q, w, w.first, f.time, m.own);
    flash_load<S, S::own>(f, f.dy, w, w.first, f.time, m.own + S::own_size);
    float *own_sums = m.sums + 2 * (w.mine - w.first), *sums = own_sums + 2 * w.g;
    auto deltas = [&] {
        cuda_copies_wait();
        __syncthreads();
        flash_deltas<E, D, M, S::pitch>(f, w, m.rows(1, w), own_sums);
    };
    auto step = [&](int inner, const element *k, const element *v) {
        if (flash_skips<false>(f, w, S::warp_rows, inner, S::part))
            return;
        uint32_t kept[M];
        flash_kept<M, N, false>(f, w, inner, kept);
        float s[M][N][4] = {}, g[M][N][4] = {};
        E::template rows<M, N, D, S::pitch>(s, m.rows(0, w), k, f.width);
        E::template rows<M, N, D, S::pitch>(g, m.rows(1, w), v, f.width);
        CUDA_UNROLL
        for (int j = 0; j < M; j++) {
            flash_scores<E, N, false>(f, w.at(j), inner, s[j]);
            flash_slopes<N>(f, kept[j], s[j], g[j], [&](int, float2 *r, float *l) {
                r[0] = r[1] = *(const float2 *)(const void *)(sums + 32 * j);
                r[2] = r[3] = *(const float2 *)(const void *)(sums + 32 * j + 16);
                l[0] = l[1] = flash_log_sum(f, w, w.at(j).row(0));
                l[2] = l[3] = flash_log_sum(f, w, w.at(j).row(2));
            });
        }
        E::template weighted<M, N, D, S::pitch>(o, g, k, f.width, m.scratch);
    };
    auto parts = [&](int inner, const element *k, const element *v, int) {
        CUDA_ROLLED
        for (int j = 0; j < S::inner; j += S::part)
            step(inner + j, k + j * S::pitch, v + j * S::pitch);
    };
    flash_walk<S>(f, f.k, f.v, w, 0, flash_key_tiles(f, w, S::own, S::inner), f.keys, m.inner,
                  deltas, parts, [](int, int) {});
    CUDA_UNROLL
    for (int k = 0; k < M; k++)
        flash_write<E, D>(f, f.dq, w.at(k), f.time, o[k], factor);
}

/* The sums of the queries from `first` on, into shared memory. */
template <int COUNT>
__device__ inline void flash_load_sums(const cuda_flash &f, const flash_spot &w, int first,
                                       float *to)
{
    for (int i = (int)threadIdx.x; i < COUNT; i += FLASH_THREADS) {
        bool inside = first + i < f.time;
        cuda_copy8(to + 2 * i, f.sums + 2 * (w.head * f.time + (inside ? first + i : 0)), inside);
    }
}

template <typename E, int D>
__device__ inline void flash_keys_tile(const cuda_flash &f, int64_t i, unsigned char *shared)
{
    constexpr int M = E::template key_rows_of<D>;
    typedef flash_shape<E, D, M> S;
    typedef typename E::element element;
    constexpr int N = S::part / 8;
    flash_spot w = flash_spot_of(f, i, f.keys, S::own, false);
    flash_memory<S> m(shared, 2, w);
    float dk[M][D / 8][4] = {}, dv[M][D / 8][4] = {};
    flash_load<S, S::own>(f, f.k, w, w.first, f.keys, m.own);
    flash_load<S, S::own>(f, f.v, w, w.first, f.keys, m.own + S::own_size);
    auto step = [&](int inner, const element *q, const element *dy, const float *sums) {
        if (flash_skips<true>(f, w, S::warp_rows, inner, S::part))
            return;
        uint32_t kept[M];
        flash_kept<M, N, true>(f, w, inner, kept);
        float s[M][N][4] = {}, g[M][N][4] = {};
        E::template rows<M, N, D, S::pitch>(s, m.rows(0, w), q, f.width);
        E::template rows<M, N, D, S::pitch>(g, m.rows(1, w), dy, f.width);
        CUDA_UNROLL
        for (int j = 0; j < M; j++) {
            flash_scores<E, N, true>(f, w.at(j), inner, s[j]);
            flash_slopes<N>(f, kept[j], s[j], g[j], [&](int n, float2 *r, float *l) {
                int at = 8 * n + 2 * w.t;
                float4 two = *(const float4 *)(const void *)(sums + 2 * at);
                r[0] = r[2] = {two.x, two.y}, r[1] = r[3] = {two.z, two.w};
                l[0] = l[2] = flash_log_sum(f, w, inner + at);
                l[1] = l[3] = flash_log_sum(f, w, inner + at + 1);
            });
        }
        E::template weighted<M, N, D, S::pitch>(dv, s, dy, f.width, m.scratch);
        E::template weighted<M, N, D, S::pitch>(dk, g, q, f.width, m.scratch);
    };
    auto parts = [&](int inner, const element *q, const element *dy, int stage) {
        CUDA_ROLLED
        for (int j = 0; j < S::inner; j += S::part)
            step(inner + j, q + j * S::pitch, dy + j * S::pitch,
                 m.sums + 2 * (stage * S::inner + j));
    };
    int tiles = (f.time + S::inner - 1) / S::inner, from = f.causal ? w.first / S::inner : 0;
    flash_walk<S>(
        f, f.q, f.dy, w, from, tiles, f.time, m.inner, [] {}, parts,
        [&](int inner, int stage) {
            flash_load_sums<S::inner>(f, w, inner, m.sums + 2 * stage * S::inner);
        });
    float kept = f.kept, once[2] = {kept, kept}, factor[2] = {f.scale * kept, f.scale * kept};
    CUDA_UNROLL
    for (int k = 0; k < M; k++) {
        flash_write<E, D>(f, f.dk, w.at(k), f.keys, dk[k], factor);
        flash_write<E, D>(f, f.dv, w.at(k), f.keys, dv[k], once);
    }
}

/* ---- launches ---- */

/* As many blocks on a multiprocessor as the registers of E's kernels are meant for. */
#define FLASH_KERNEL(name)                                                                         \
    template <typename E, int D, enum flash_kind KIND>                                             \
    __global__ void __launch_bounds__(FLASH_THREADS, E::template blocks<D, KIND>::name)            \
        flash_##name(cuda_flash given, int64_t n)                                                  \
    {                                                                                              \
        CUDA_SHARED_BYTES(shared);                                                                 \
        cuda_flash f = flash_known<D, KIND>(given);                                                \
        for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {                                      \
            flash_##name##_tile<E, D>(f, i, shared);                                               \
            cuda_copies_wait();                                                                    \
            __syncthreads();                                                                       \
        }                                                                                          \
    }
FLASH_KERNEL(forward)
FLASH_KERNEL(queries)
FLASH_KERNEL(keys)

template <typename E, int D, enum flash_kind KIND>
static int flash_run(struct det_stream *s, const struct det_call *c, const struct cuda_flash *f,
                     struct det_err *err)
{
    typedef flash_shape<E, D, E::template rows_of<D>> S;
    int64_t heads = f->batch * f->heads, tiles = heads * ((f->time + S::own - 1) / S::own);
    auto kernel = flash_forward<E, D, KIND>;
    return cuda_tiles(s, c, kernel, tiles, FLASH_THREADS, S::bytes(1), err, *f, tiles);
}

template <typename E, int D, enum flash_kind KIND>
static int flash_run_bwd(struct det_stream *s, const struct det_call *c, const struct cuda_flash *f,
                         struct det_err *err)
{
    typedef flash_shape<E, D, E::template rows_of<D>> Q;
    typedef flash_shape<E, D, E::template key_rows_of<D>> K;
    int64_t heads = f->batch * f->heads, tiles = heads * ((f->time + Q::own - 1) / Q::own);
    int64_t key_tiles = heads * ((f->keys + K::own - 1) / K::own);
    auto queries = flash_queries<E, D, KIND>;
    auto keys = flash_keys<E, D, KIND>;
    int rc = cuda_tiles(s, c, queries, tiles, FLASH_THREADS, Q::bytes(2), err, *f, tiles);
    if (rc < 0)
        return rc;
    return cuda_tiles(s, c, keys, key_tiles, FLASH_THREADS, K::bytes(2), err, *f, key_tiles);
}

static inline enum flash_kind flash_kind_of(const struct cuda_flash *f, bool has_kinds)
{
    if (!has_kinds || (f->width != 64 && f->width != 128) || !f->aligned || f->mask ||
        !(f->scale2 > 0))
        return FLASH_ANY;
    return f->p > 0 ? FLASH_DROPPING : FLASH_PLAIN;
}

/* run<E, D, KIND>(s, c, f, err) for a call of elements E, which may have no kinds of kernels. */
#define FLASH_CHOOSE(run, E, D)                                                                    \
    do {                                                                                           \
        enum flash_kind kind = flash_kind_of(f, E::has_kinds);                                     \
        if (kind == FLASH_PLAIN)                                                                   \
            return run < E, D, E::has_kinds ? FLASH_PLAIN : FLASH_ANY > (s, c, f, err);            \
        if (kind == FLASH_DROPPING)                                                                \
            return run < E, D, E::has_kinds ? FLASH_DROPPING : FLASH_ANY > (s, c, f, err);         \
        return run<E, D, FLASH_ANY>(s, c, f, err);                                                 \
    } while (0)

/* Defines cuda_flash_<name>() and cuda_flash_bwd_<name>() of elements E. */
#define CUDA_FLASH(name, E)                                                                        \
    int cuda_flash_##name(struct det_stream *s, const struct det_call *c,                          \
                          const struct cuda_flash *f, struct det_err *err)                         \
    {                                                                                              \
        if (f->width <= 64)                                                                        \
            FLASH_CHOOSE(flash_run, E, 64);                                                        \
        FLASH_CHOOSE(flash_run, E, 128);                                                           \
    }                                                                                              \
    int cuda_flash_bwd_##name(struct det_stream *s, const struct det_call *c,                      \
                              const struct cuda_flash *f, struct det_err *err)                     \
    {                                                                                              \
        if (f->width <= 64)                                                                        \
            FLASH_CHOOSE(flash_run_bwd, E, 64);                                                    \
        FLASH_CHOOSE(flash_run_bwd, E, 128);                                                       \
    }

#endif
