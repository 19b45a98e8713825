/*
 * Matrices [rows, columns] in tiles, for sums of columns and for work whose numbers belong to the
 * columns: the lanes of a warp lie along a row, so that it is read whole, and a thread keeps its
 * columns, so that what belongs to them is loaded once and no element needs a division.
 *
 * The work of a thread is a struct F with
 *   typename real, raw; width                what is summed in; what load() gives; columns a thread
 *   batch                                    rows that are loaded before the first is used
 *   begin(first, column)                     before the rows of a tile from `first` on
 *   raw load(at, row)                        of elements at, at + 1 ... at + width - 1
 *   use(raw, at)
 * and, for sums, also
 *   sums; real sum[sums][width]              how many for a column; added to by use(), from 0
 *   of_part(column, first, rows, double *v)  makes the sums of a tile such that all tiles' add up
 *   put(column, const double *v)             what comes of them
 * Rows are divided by the shape alone, and added in a fixed order.
 */
#ifndef CUDA_TILE_CUH
#define CUDA_TILE_CUH

#include "cuda_pack.cuh"

#define CUDA_TILES      1056 /* at least, where there is enough to do: 8 for each SM of an H200 */
#define CUDA_TILE_ROWS  16   /* that a thread is worth */
#define CUDA_PARTS_OF_WARP 128 /* that a warp adds up; more are a block's */

struct cuda_tiling {
    int64_t rows, columns, strips, parts, part_rows;
    int lanes; /* threads along a row: a power of two */
};

/* For threads of `width` columns. */
static inline struct cuda_tiling cuda_tiling_of(int64_t rows, int64_t columns, int width)
{
    struct cuda_tiling t = {rows, columns};
    int64_t most = CUDA_BLOCK / 8 > 2 ? CUDA_BLOCK / 8 : 2;
    for (t.lanes = 1; t.lanes < most && (int64_t)t.lanes * width < columns;)
        t.lanes *= 2;
    int64_t tall = CUDA_BLOCK / t.lanes, wide = (int64_t)t.lanes * width;
    t.strips = (columns + wide - 1) / wide;
    int64_t wish = (CUDA_TILES + t.strips - 1) / (t.strips > 0 ? t.strips : 1);
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

template <typename F>
__device__ inline void cuda_tile_rows(const struct cuda_tiling &t, const cuda_spot_of_tile &k, F &f)
{
    if (k.column >= t.columns)
        return;
    f.begin(k.first, k.column);
    int64_t row = k.first + k.row, at = row * t.columns + k.column, hop = k.step * t.columns;
    for (; row + (F::batch - 1) * k.step < k.end; row += F::batch * k.step) {
        typename F::raw raw[F::batch];
        CUDA_UNROLL
        for (int u = 0; u < F::batch; u++)
            raw[u] = f.load(at + u * hop, row + u * k.step);
        CUDA_UNROLL
        for (int u = 0; u < F::batch; u++)
            f.use(raw[u], at + u * hop);
        at += F::batch * hop;
    }
    for (; row < k.end; row += k.step, at += hop)
        f.use(f.load(at, row), at);
}

/* f for all elements; the last rows first: they are what the cache still has of a pass before. */
template <typename F>
int cuda_tile_each(struct det_stream *s, const struct det_call *c, int64_t rows, int64_t columns,
                   F f, struct det_err *err)
{
    struct cuda_tiling t = cuda_tiling_of(rows, columns, F::width);
    return cuda_blocks(
        s, c, t.strips * t.parts,
        DEVICE(int64_t block) {
            F mine = f;
            cuda_tile_rows(t, cuda_tile_of(t, t.strips * t.parts - 1 - block, F::width), mine);
        },
        err);
}

/* Sum number k of a part of a column. */
template <typename F>
__device__ inline typename F::real *cuda_part(const struct cuda_tiling &t, void *work, int k,
                                              int64_t column, int64_t part)
{
    return (typename F::real *)work + (k * t.columns + column) * t.parts + part;
}

/* What comes of a column's sums, which lie so far apart, in a tile. */
template <typename F>
__device__ inline void cuda_tile_done(const struct cuda_tiling &t, const F &f, int64_t part,
                                      int64_t column, const typename F::real *sum, int apart,
                                      void *work)
{
    double v[F::sums] = {};
    CUDA_UNROLL
    for (int n = 0; n < F::sums; n++)
        if (t.parts > 1)
            *cuda_part<F>(t, work, n, column, part) = sum[n * apart];
        else
            v[n] = (double)sum[n * apart];
    if (t.parts > 1)
        return;
    f.of_part(column, 0, t.rows, v);
    f.put(column, v);
}

/* Adds up the sums of a tile's threads; then a thread for each column. */
template <typename F>
__device__ inline void cuda_tile_meet(const struct cuda_tiling &t, const cuda_spot_of_tile &k,
                                      const F &f, void *work)
{
    typedef typename F::real real;
    CUDA_SHARED(real, all, CUDA_BLOCK_MAX *F::sums *F::width);
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
            cuda_tile_done(t, f, k.part, column, all + i % F::width * apart + i / F::width,
                           F::width * apart, work);
    }
}

/* The parts of a column added up, by a team. */
template <typename F, typename TEAM>
__device__ inline void cuda_parts_done(const struct cuda_tiling &t, F &f, void *work,
                                       int64_t column, TEAM team)
{
    double total[F::sums] = {};
    for (int64_t p = team.first(); p < t.parts; p += team.step()) {
        int64_t first = p * t.part_rows, left = t.rows - first;
        double v[F::sums];
        for (int n = 0; n < F::sums; n++)
            v[n] = (double)*cuda_part<F>(t, work, n, column, p);
        f.of_part(column, first, left < t.part_rows ? left : t.part_rows, v);
        for (int n = 0; n < F::sums; n++)
            total[n] += v[n];
    }
    for (int n = 0; n < F::sums; n++)
        total[n] = team.combine(total[n], cuda_plus());
    if (team.leader())
        f.put(column, total);
}

/* The sums of all columns. One launch where the rows are few. */
template <typename F>
int cuda_tile_sums(struct det_stream *s, const struct det_call *c, int64_t rows, int64_t columns,
                   F f, struct det_err *err)
{
    struct cuda_tiling t = cuda_tiling_of(rows, columns, F::width);
    void *work = NULL;
    size_t bytes = F::sums * (size_t)(columns * t.parts) * sizeof(typename F::real);
    int rc = t.parts > 1 ? cuda_partials(s->device, bytes, &work, err) : 0;
    if (rc == 0)
        rc = cuda_blocks(
            s, c, t.strips * t.parts,
            DEVICE(int64_t block) {
                F mine = f;
                cuda_spot_of_tile k = cuda_tile_of(t, block, F::width);
                cuda_tile_rows(t, k, mine);
                cuda_tile_meet(t, k, mine, work);
            },
            err);
    if (rc < 0 || t.parts <= 1)
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
