/*
 * Matrices [rows, columns] in tiles, for sums of columns and for work whose numbers belong to the
 * columns: the lanes of a warp lie along a row, so that it is read whole, and a thread keeps its
 * columns, so that what belongs to them is loaded once and no element needs a division.
 *
 * The work of a thread is a struct F with
 *   typename real, raw; width                what is summed in; what load() gives; columns a thread
 *   batch                                    rows that are loaded before the first is used
 *   blocks                                   of an SM at once: its registers are divided by them
 *   begin(first, column)                     before the rows of a tile from `first` on
 *   raw load(at, row)                        of elements at, at + 1 ... at + width - 1
 *   use(raw, at)
 * and, for sums, also
 *   sums; real sum[sums][width]              how many for a column; added to by use(), from 0
 *   of_part(column, first, rows, double *v)  makes the sums of a tile such that all tiles' add up
 *   put(column, const double *v)             what comes of them
 * Rows are divided by the shape alone, and added in a fixed order.
 *
 * Memory is waited for, not arithmetic: an SM needs some 64 KiB under way, which is batch packs of
 * each tensor of 256 * blocks threads.
 */
#ifndef CUDA_TILE_CUH
#define CUDA_TILE_CUH

#include "cuda_pack.cuh"

#define CUDA_SMS           132 /* of an H200 */
#define CUDA_TILE_ROWS     8   /* that a thread is worth */
#define CUDA_TILE_MANY     64  /* more rows of a thread are divided once more, into up to .. */
#define CUDA_TILE_ROUNDS   2   /* tiles for each block that the device holds at once */
#define CUDA_PARTS_OF_WARP 128 /* that a warp adds up; more are a block's */

struct cuda_tiling {
    int64_t rows, columns, strips, parts, part_rows;
    int lanes; /* threads along a row: a power of two */
};

/* For threads of F: as many tiles as the device holds at once, or a multiple of it, so that all
 * SMs end together. */
template <typename F> static inline struct cuda_tiling cuda_tiling_of(int64_t rows, int64_t columns)
{
    struct cuda_tiling t = {rows, columns};
    int64_t most = CUDA_BLOCK / 8 > 2 ? CUDA_BLOCK / 8 : 2;
    for (t.lanes = 1; t.lanes < most && (int64_t)t.lanes * F::width < columns;)
        t.lanes *= 2;
    int64_t tall = CUDA_BLOCK / t.lanes, wide = (int64_t)t.lanes * F::width;
    t.strips = (columns + wide - 1) / wide;
    int64_t held = CUDA_SMS * F::blocks, tiles = t.strips > 0 ? t.strips : 1;
    int64_t rounds = rows / (tall * CUDA_TILE_MANY) * tiles / held;
    rounds = rounds < 1 ? 1 : rounds < CUDA_TILE_ROUNDS ? rounds : CUDA_TILE_ROUNDS;
    int64_t wish = rounds * held > tiles ? rounds * held / tiles : 1;
    int64_t worth = (rows + tall * CUDA_TILE_ROWS - 1) / (tall * CUDA_TILE_ROWS);
    t.parts = wish < worth ? wish : worth > 0 ? worth : 1;
    t.part_rows = ((rows + t.parts - 1) / t.parts + tall - 1) / tall * tall;
    t.parts = t.part_rows > 0 ? (rows + t.part_rows - 1) / t.part_rows : 1;
    return t;
}

/* The tile of a block, and what of it is a thread's. */
struct cuda_spot_of_tile {
    int64_t part, strip, first, end, column;
    int row, step; /* of the thread in the tile; between its rows */
};

__device__ inline cuda_spot_of_tile cuda_tile_of(const struct cuda_tiling &t, int64_t block,
                                                 int width)
{
    cuda_spot_of_tile k;
    k.part = cuda_div(block, t.strips);
    k.strip = block - k.part * t.strips;
    int lane = (int)threadIdx.x & (t.lanes - 1);
    k.step = (int)blockDim.x / t.lanes;
    k.row = (int)threadIdx.x / t.lanes;
    k.first = k.part * t.part_rows;
    k.end = k.first + t.part_rows < t.rows ? k.first + t.part_rows : t.rows;
    k.column = (k.strip * t.lanes + lane) * width;
    return k;
}

/* A pack that nothing needs soon again: the cache may let it go first. */
template <typename X> __device__ inline typename X::raw cuda_load_last(const X &x, int64_t at)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(typename X::raw) == 16) {
        uint4 v = __ldcs((const uint4 *)(x.p + at));
        return {{v.x, v.y, v.z, v.w}};
    }
#endif
    return x.load(at);
}

/* What belongs to a thread's columns. That it is f32 is asked once, so the loads go together. */
template <typename T, int N>
__device__ inline void cuda_load_columns(const cuda_any<T> &x, int64_t column, T (&v)[N])
{
    if (sizeof(T) == sizeof(float) && x.dtype == DET_F32) {
        CUDA_UNROLL
        for (int i = 0; i < N; i++)
            v[i] = (T)((const float *)x.p)[column + i];
    } else {
        for (int i = 0; i < N; i++)
            v[i] = x.load(column + i);
    }
}

/* f for the thread's rows, from the last one up if BACK. */
template <bool BACK, typename F>
__device__ inline void cuda_tile_rows(const struct cuda_tiling &t, const cuda_spot_of_tile &k, F &f)
{
    int64_t rows = k.end - k.first - k.row, step = k.step;
    if (k.column >= t.columns || rows <= 0)
        return;
    int n = (int)((rows + step - 1) / step);
    f.begin(k.first, k.column);
    int64_t row = k.first + k.row + (BACK ? (n - 1) * step : 0);
    step = BACK ? -step : step;
    int64_t at = row * t.columns + k.column, hop = step * t.columns;
    typename F::raw raw[F::batch];
    for (; n >= F::batch; n -= F::batch) {
        CUDA_UNROLL
        for (int u = 0; u < F::batch; u++)
            raw[u] = f.load(at + u * hop, row + u * step);
        CUDA_UNROLL
        for (int u = 0; u < F::batch; u++)
            f.use(raw[u], at + u * hop);
        at += F::batch * hop;
        row += F::batch * step;
    }
    CUDA_UNROLL
    for (int u = 0; u < F::batch - 1; u++)
        if (u < n)
            raw[u] = f.load(at + u * hop, row + u * step);
    CUDA_UNROLL
    for (int u = 0; u < F::batch - 1; u++)
        if (u < n)
            f.use(raw[u], at + u * hop);
}

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK, F::blocks) cuda_each_tile(struct cuda_tiling t, F f)
{
    for (int64_t n = t.strips * t.parts, i = blockIdx.x; i < n; i += gridDim.x) {
        F mine = f;
        cuda_tile_rows<true>(t, cuda_tile_of(t, n - 1 - i, F::width), mine);
    }
}

/* Launches over tiles. */
#define CUDA_GRID(n) ((unsigned)((n) < CUDA_GRID_MAX ? (n) : CUDA_GRID_MAX))

/* f for all elements; the last first: they are what the cache still has of a pass before. */
template <typename F>
int cuda_tile_each(struct det_stream *s, const struct det_call *c, int64_t rows, int64_t columns,
                   F f, struct det_err *err)
{
    struct cuda_tiling t = cuda_tiling_of<F>(rows, columns);
    int rc = cuda_use(s->device, err);
    if (rc < 0 || rows <= 0 || columns <= 0)
        return rc;
    CUDA_LAUNCH(cuda_each_tile<F>, CUDA_GRID(t.strips * t.parts), s->native, t, f);
    return cuda_launched(s, c, err);
}

/* Sum number k of a part of a column. */
__device__ inline double *cuda_part(const struct cuda_tiling &t, void *work, int k, int64_t column,
                                    int64_t part)
{
    return (double *)work + (k * t.columns + column) * t.parts + part;
}

/* What comes of a column's sums, which lie so far apart, in a tile. ONE: there is no other part. */
template <bool ONE, typename F>
__device__ inline void cuda_tile_done(const struct cuda_tiling &t, const F &f,
                                      const cuda_spot_of_tile &k, int64_t column,
                                      const typename F::real *sum, int apart, void *work)
{
    double v[F::sums];
    CUDA_UNROLL
    for (int n = 0; n < F::sums; n++)
        v[n] = (double)sum[n * apart];
    f.of_part(column, k.first, k.end - k.first, v);
    if constexpr (ONE) {
        f.put(column, v);
    } else {
        CUDA_UNROLL
        for (int n = 0; n < F::sums; n++)
            *cuda_part(t, work, n, column, k.part) = v[n];
    }
}

/* Adds up the sums of a tile's threads; then a thread for each column. */
template <bool ONE, typename F>
__device__ inline void cuda_tile_meet(const struct cuda_tiling &t, const cuda_spot_of_tile &k,
                                      const F &f, void *work)
{
    typedef typename F::real real;
    CUDA_SHARED(real, all, CUDA_BLOCK_MAX * F::sums * F::width);
    real *mine = all + threadIdx.x;
    int wide = t.lanes * F::width, apart = (int)blockDim.x;
    __syncthreads(); /* others may still be at the tile before */
    CUDA_UNROLL
    for (int i = 0; i < F::sums * F::width; i++)
        mine[i * apart] = f.sum[i / F::width][i % F::width];
    __syncthreads();
    for (int half = k.step / 2; half > 0; half /= 2) {
        CUDA_UNROLL
        for (int i = 0; i < F::sums * F::width; i++)
            if (k.row < half)
                mine[i * apart] += mine[i * apart + half * t.lanes];
        __syncthreads();
    }
    for (int i = (int)threadIdx.x; i < wide; i += apart) {
        int64_t column = k.strip * wide + i;
        if (column < t.columns)
            cuda_tile_done<ONE>(t, f, k, column, all + i % F::width * apart + i / F::width,
                                F::width * apart, work);
    }
}

/* The parts of a column added up, by a team. */
template <typename F, typename TEAM>
__device__ inline void cuda_parts_done(const struct cuda_tiling &t, F &f, void *work,
                                       int64_t column, TEAM team)
{
    double total[F::sums] = {};
    for (int64_t p = team.first(); p < t.parts; p += team.step())
        for (int n = 0; n < F::sums; n++)
            total[n] += *cuda_part(t, work, n, column, p);
    for (int n = 0; n < F::sums; n++)
        total[n] = team.combine(total[n], cuda_plus());
    if (team.leader())
        f.put(column, total);
}

template <bool ONE, typename F>
__global__ void __launch_bounds__(CUDA_BLOCK, F::blocks)
    cuda_tile_parts(struct cuda_tiling t, F f, void *work)
{
    for (int64_t n = t.strips * t.parts, i = blockIdx.x; i < n; i += gridDim.x) {
        F mine = f;
        cuda_spot_of_tile k = cuda_tile_of(t, i, F::width);
        cuda_tile_rows<false>(t, k, mine);
        cuda_tile_meet<ONE>(t, k, mine, work);
    }
}

/* The sums of all columns. One launch where the rows are few. */
template <typename F>
int cuda_tile_sums(struct det_stream *s, const struct det_call *c, int64_t rows, int64_t columns,
                   F f, struct det_err *err)
{
    struct cuda_tiling t = cuda_tiling_of<F>(rows, columns);
    void *work = NULL;
    size_t bytes = F::sums * (size_t)(columns * t.parts) * sizeof(double);
    int rc = cuda_use(s->device, err);
    if (rc < 0 || columns <= 0)
        return rc;
    bool one = t.parts <= 1;
    if (!one && (rc = cuda_partials(s->device, bytes, &work, err)) < 0)
        return rc;
    auto kernel = one ? cuda_tile_parts<true, F> : cuda_tile_parts<false, F>;
    CUDA_LAUNCH(kernel, CUDA_GRID(t.strips * t.parts), s->native, t, f, work);
    if ((rc = cuda_launched(s, c, err)) < 0 || one)
        return rc;
    return cuda_teams(
        s, c, columns, t.parts, CUDA_PARTS_OF_WARP,
        [=] __device__(int64_t column, auto team) {
            F mine = f;
            cuda_parts_done(t, mine, work, column, team);
        },
        err);
}

#endif
