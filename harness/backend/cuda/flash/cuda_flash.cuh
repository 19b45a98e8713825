/*
 * Attention in tiles, forward and backward, without a matrix of times x times (Dao 2023,
 * "FlashAttention-2"; the running maximum is of Milakov & Gimelshein 2018). A block owns some rows,
 * 16 M to a warp, and walks over the rows of the other side, a tile at a time: queries over keys in
 * the forward pass and for dq, keys over queries for dk and dv. So each sum has one owner and one
 * order: equal bits, no atomics. Scores are in powers of 2.
 *
 * A warp's product of 16 rows lies in registers as the tensor cores have it: element e of tile n is
 * row g + 8 (e / 2), column 8 n + 2 t + e % 2. What an element is, E, has the products:
 * cuda_flash_half.cuh, cuda_flash_f32.cu; and how many times 16 rows a warp has: what it reads of
 * the other side then serves all of them.
 */
#ifndef CUDA_FLASH_CUH
#define CUDA_FLASH_CUH

#include "cuda_flash.h"
#include "cuda_random.cuh"
#include "cuda_warp.cuh"

#define FLASH_WARPS   4
#define FLASH_THREADS (FLASH_WARPS * CUDA_WARP)
#define FLASH_LOG2E   1.4426950408889634f

/* What a kernel was compiled for: all calls, or those whose width is D, whose rows are aligned,
 * whose scale is positive and that have no mask, with dropout or without. */
enum flash_kind { FLASH_ANY, FLASH_PLAIN, FLASH_DROPPING };

/* The call, with what the compiler may know of it. */
template <int D, enum flash_kind KIND> __device__ inline cuda_flash flash_known(cuda_flash f)
{
    f.before = KIND == FLASH_ANY ? f.scale2 : 1;
    f.after = KIND == FLASH_ANY ? 1 : f.scale2;
    if (KIND == FLASH_ANY)
        return f;
    f.width = D;
    f.aligned = true;
    f.mask = NULL;
    if (KIND == FLASH_PLAIN)
        f.p = 0;
    return f;
}

/* D: the width that there are registers for. M: how many times 16 rows a warp has. */
template <typename E, int D, int M> struct flash_shape {
    typedef typename E::element element;
    static constexpr int warp_rows = 16 * M, own = warp_rows * FLASH_WARPS;
    static constexpr int inner = D > 64 ? 32 : 64;
    static constexpr int part = E::part < inner ? E::part : inner; /* at once, when going back */
    static constexpr int piece = 16 / (int)sizeof(element);
    static constexpr int pitch = D + piece; /* so that neighbours of a column lie in other banks */
    static constexpr int stages = sizeof(element) == 2 ? 2 : 1;
    static constexpr int own_size = own * pitch, inner_size = inner * pitch; /* in elements */
    static constexpr int scratch = E::template scratch<inner>;               /* for each warp */
    static constexpr size_t bytes(int owned)
    {
        return sizeof(element) *
                   (size_t)(owned * own_size + 2 * stages * inner_size + FLASH_WARPS * scratch) +
               sizeof(float) * 2 * (stages * inner > own ? stages * inner : own);
    }
};

/* Where a thread is: the head, the block's first own row and the warp's, and its lane. */
struct flash_spot {
    int64_t b, h, head;
    int first, mine, warp, g, t;

    __device__ int row(int e) const { return mine + g + 8 * (e >> 1); }
    /* The same with the warp's rows from 16 m on. */
    __device__ flash_spot at(int m) const
    {
        flash_spot w = *this;
        w.mine += 16 * m;
        return w;
    }
};

/* Tile i of all heads. Backwards: the last ones have most to do. In a causal call tile by tile of
 * all heads, those that have most to do first. */
__device__ inline flash_spot flash_spot_of(const cuda_flash &f, int64_t i, int rows, int own,
                                           bool backwards)
{
    int64_t tiles = (rows + own - 1) / own, heads = f.batch * f.heads;
    int64_t tile = f.causal ? cuda_div(i, heads) : i - cuda_div(i, tiles) * tiles;
    int64_t head = f.causal ? i - tile * heads : cuda_div(i, tiles), b = cuda_div(head, f.heads);
    int lane = (int)threadIdx.x % CUDA_WARP, warp = (int)threadIdx.x / CUDA_WARP;
    if (backwards)
        tile = tiles - 1 - tile;
    int first = (int)tile * own;
    return {b,    head - b * f.heads, head,    first, first + own / FLASH_WARPS * warp,
            warp, lane >> 2,          lane & 3};
}

template <typename T>
__device__ inline T *flash_row(const cuda_flash_rows &r, const flash_spot &w, int row)
{
    return (T *)r.p + w.b * r.batch + w.h * r.head + (int64_t)row * r.row;
}

/* COUNT rows from `first` on, of `total`, into shared memory; 0 beyond the rows and the width. */
template <typename S, int COUNT>
__device__ inline void flash_load(const cuda_flash &f, const cuda_flash_rows &r,
                                  const flash_spot &w, int first, int total,
                                  typename S::element *to)
{
    typedef typename S::element element;
    constexpr int pieces = (S::pitch - S::piece) / S::piece, step = FLASH_THREADS / pieces;
    int row = (int)threadIdx.x / pieces, column = (int)threadIdx.x % pieces * S::piece;
    const element *from = flash_row<const element>(r, w, first);
    uint32_t place = (uint32_t)row * (uint32_t)r.row + (uint32_t)column;
    element *at = to + row * S::pitch + column;
    CUDA_UNROLL
    for (int i = 0; i < COUNT; i += step, from += step * r.row, at += step * S::pitch) {
        bool inside = first + row + i < total && column < f.width;
        if (f.aligned)
            cuda_copy16(at, from + place, inside);
        for (int e = 0; e < S::piece && !f.aligned; e++)
            at[e] = inside && column + e < f.width ? from[row * r.row + column + e] : (element)0;
    }
}

/* fn(first row, its tile of a, its tile of b, stage) for the inner tiles from..to-1, whose rows are
 * those of a and b; also(first row, stage) loads what else belongs to one. With two stages one tile
 * is under way while another one is worked on, and the first while before() is. */
template <typename S, typename B, typename F, typename L>
__device__ inline void flash_walk(const cuda_flash &f, const cuda_flash_rows &a,
                                  const cuda_flash_rows &b, const flash_spot &w, int from, int to,
                                  int total, typename S::element *tiles, B before, F fn, L also)
{
    auto load = [&](int j, int stage) {
        typename S::element *at = tiles + 2 * stage * S::inner_size;
        flash_load<S, S::inner>(f, a, w, j * S::inner, total, at);
        flash_load<S, S::inner>(f, b, w, j * S::inner, total, at + S::inner_size);
        also(j * S::inner, stage);
    };
    if (S::stages == 2 && from < to)
        load(from, 0);
    before();
    for (int j = from; j < to; j++) {
        int stage = S::stages == 2 ? (j - from) & 1 : 0;
        if (S::stages == 1) {
            __syncthreads();
            load(j, 0);
        }
        cuda_copies_wait();
        __syncthreads();
        if (S::stages == 2 && j + 1 < to)
            load(j + 1, stage ^ 1);
        const typename S::element *at = tiles + 2 * stage * S::inner_size;
        fn(j * S::inner, at, at + S::inner_size, stage);
    }
}

/* A block's shared memory: the tiles it owns, those it walks over, each warp's scratch, sums. */
template <typename S> struct flash_memory {
    typedef typename S::element element;
    element *own, *inner, *scratch;
    float *sums; /* two for each query: of each stage, or the block's own */

    __device__ flash_memory(unsigned char *shared, int owned, const flash_spot &w)
    {
        own = (element *)shared;
        inner = own + owned * S::own_size;
        scratch = inner + 2 * S::stages * S::inner_size;
        sums = (float *)(void *)(scratch + FLASH_WARPS * S::scratch);
        scratch += w.warp * S::scratch;
    }
    /* This warp's rows of an own tile. */
    __device__ const element *rows(int tile, const flash_spot &w) const
    {
        return own + tile * S::own_size + S::warp_rows * w.warp * S::pitch;
    }
};

/* Which of four weights dropout leaves. */
__device__ inline uint32_t flash_kept_four(const cuda_flash &f, uint64_t block)
{
    uint32_t draw[4], kept = 0;
    cuda_draw_four({f.seed, f.call}, block, draw);
    CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        kept |= (uint32_t)(cuda_draw_of(draw[i]) >= f.p) << i;
    return kept;
}

/* Which of its four weights of tile n dropout leaves this thread. Four neighbouring keys have one
 * block of draws (where their number is a multiple of four): the threads that share it each draw
 * one block and tell the others. */
template <bool TURNED>
__device__ inline uint32_t flash_kept_shared(const cuda_flash &f, const flash_spot &w, int inner,
                                             int n)
{
    int mine = TURNED ? w.g & 3 : w.t & 1, half = TURNED ? mine >> 1 : mine;
    int own = w.mine + 8 * half + (TURNED ? w.g & ~3 : w.g);
    int column = inner + 8 * n + (TURNED ? 2 * w.t + (mine & 1) : 4 * (w.t >> 1));
    int64_t row = w.head * f.time + (TURNED ? column : own);
    uint64_t draw = (uint64_t)(row * f.keys + (TURNED ? own : column));
    uint32_t all = flash_kept_four(f, draw / 4) << 4 * mine, kept = 0;
    all = cuda_join_bits(all, TURNED ? 4 : 1);
    if (TURNED)
        all = cuda_join_bits(all, 8);
    CUDA_UNROLL
    for (int e = 0; e < 4; e++) {
        int bit = TURNED ? 4 * e + (w.g & 3) : 4 * (e >> 1) + 2 * (w.t & 1) + (e & 1);
        kept |= (all >> bit & 1) << e;
    }
    return kept;
}

/* The same of 16 rows and N tiles: bit 4 n + e. Not unrolled: a draw is long. */
template <int N, bool TURNED>
__device__ inline uint32_t flash_kept_rows(const cuda_flash &f, const flash_spot &w, int inner)
{
    uint32_t kept = 0;
    if (f.keys % 4 == 0) {
        CUDA_ROLLED
        for (int n = 0; n < N; n++)
            kept |= flash_kept_shared<TURNED>(f, w, inner, n) << 4 * n;
        return kept;
    }
    CUDA_ROLLED
    for (int i = 0; i < 4 * N; i++) {
        int own = w.row(i & 3), column = inner + (i >> 2) * 8 + 2 * w.t + (i & 1);
        int64_t row = w.head * f.time + (TURNED ? column : own);
        uint64_t draw = (uint64_t)(row * f.keys + (TURNED ? own : column));
        kept |= (uint32_t)(cuda_draw({f.seed, f.call}, draw) >= f.p) << i;
    }
    return kept;
}

/* The same of all the warp's rows, of 16 each. */
template <int M, int N, bool TURNED>
__device__ inline void flash_kept(const cuda_flash &f, const flash_spot &w, int inner,
                                  uint32_t kept[M])
{
    CUDA_UNROLL
    for (int m = 0; m < M; m++)
        kept[m] = f.p > 0 ? flash_kept_rows<N, TURNED>(f, w.at(m), inner) : 0;
}

/* What dropout leaves of s. Its factor is a result's: within a tile a weight may be large already,
 * and the greatest f16 is small. */
template <int N>
__device__ inline void flash_drop(const cuda_flash &f, uint32_t kept, float (*s)[4])
{
    if (f.p <= 0)
        return;
    CUDA_UNROLL
    for (int n = 0; n < N; n++) {
        CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            s[n][e] = kept >> (4 * n + e) & 1 ? s[n][e] : 0;
    }
}

/* The columns [x, y) that a row counts with. TURNED: rows are keys, columns queries. */
template <bool TURNED> __device__ inline int2 flash_columns(const cuda_flash &f, int row)
{
    if (row >= (TURNED ? f.keys : f.time))
        return {0, 0};
    if (TURNED)
        return {f.causal && row < f.time ? row : f.causal ? f.time : 0, f.time};
    return {0, f.causal && row < f.keys ? row + 1 : f.keys};
}

/* Whether a warp's `rows` rows have nothing to do with the columns inner..inner+n-1. */
template <bool TURNED>
__device__ inline bool flash_skips(const cuda_flash &f, const flash_spot &w, int rows, int inner,
                                   int n)
{
    if (w.mine >= (TURNED ? f.keys : f.time))
        return true;
    return f.causal && (TURNED ? inner + n <= w.mine : inner >= w.mine + rows);
}

/* Where query `row` of the heads has what the forward pass leaves of it: its top; how much further
 * the logarithm of its sum is. */
__device__ inline const float *flash_lse(const cuda_flash &f, const flash_spot &w, int row)
{
    return f.lse + w.head * f.time + row;
}
__device__ inline int64_t flash_rows(const cuda_flash &f)
{
    return f.batch * f.heads * f.time;
}

/* The score x with its part of the mask. */
template <typename E>
__device__ inline float flash_masked(const cuda_flash &f, const flash_spot &w, int query, int key,
                                     float x)
{
    const typename E::element *mask = (const typename E::element *)f.mask;
    int64_t row = (w.b * f.mask_b + w.h * f.mask_h) * f.time + query;
    float m = E::number(mask[row * f.keys + key]), y = x + FLASH_LOG2E * m;
    /* A finite mask stays finite, though it be the least number: a query that all keys are hidden
     * from by it has their mean, as without the factor. */
    return y == -INFINITY && m != -INFINITY && x != -INFINITY ? -FLT_MAX : y;
}

/* Products of 16 rows and 8 N columns become scores, -inf where a key is hidden or where there is
 * no such query. */
template <typename E, int N, bool TURNED>
__device__ inline void flash_scores(const cuda_flash &f, const flash_spot &w, int inner,
                                    float (*s)[4])
{
    int rows = w.mine + 16, columns = inner + 8 * N;
    bool all = rows <= (TURNED ? f.keys : f.time) && columns <= (TURNED ? f.time : f.keys) &&
               (!f.causal || (TURNED ? rows - 1 <= inner : columns - 1 <= w.mine)) && !f.mask;
    CUDA_UNROLL
    for (int n = 0; n < N; n++) {
        CUDA_UNROLL
        for (int e = 0; e < 4; e++)
            s[n][e] *= f.before;
    }
    if (all)
        return;
    CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        int own = w.row(2 * half);
        int2 has = flash_columns<TURNED>(f, own);
        int first = inner + 2 * w.t, from = has.x - first, to = has.y - first;
        CUDA_UNROLL
        for (int i = 0; i < 2 * N; i++) {
            int place = 8 * (i >> 1) + (i & 1), column = first + place;
            float *x = &s[i >> 1][2 * half + (i & 1)];
            if ((TURNED && place < from) || place >= to)
                *x = -INFINITY;
            else if (f.mask)
                *x = flash_masked<E>(f, w, TURNED ? column : own, TURNED ? own : column, *x);
        }
    }
}

/* This thread's part of its warp's rows of a result, times factor[e / 2]. */
template <typename E, int D>
__device__ inline void flash_write(const cuda_flash &f, const cuda_flash_rows &r,
                                   const flash_spot &w, int total, const float (*o)[4],
                                   const float factor[2])
{
    CUDA_UNROLL
    for (int half = 0; half < 2; half++) {
        int row = w.row(2 * half);
        typename E::element *p = flash_row<typename E::element>(r, w, row);
        CUDA_UNROLL
        for (int n = 0; n < D / 8; n++) {
            int column = E::column(n, w.t);
            float x = o[n][2 * half] * factor[half], y = o[n][2 * half + 1] * factor[half];
            if (row < total && column + 1 < f.width && f.aligned)
                E::store_two(p + column, x, y);
            else if (row < total && column < f.width) {
                p[column] = E::element_of(x);
                if (column + 1 < f.width)
                    p[column + 1] = E::element_of(y);
            }
        }
    }
}

#endif
