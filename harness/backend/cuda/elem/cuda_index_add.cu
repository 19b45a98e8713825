/*
 * Adding rows at indices, [A, K, B] to [A, N, B], in the order of the index: positions are sorted
 * by the row that they go to, equals in their order, and each row's additions are made one after
 * the other by the threads that have its columns. No atomics: equal bits at every run.
 *
 * The sort is by digits, the lowest first (Knuth, vol. 3, 5.2.5). A block has a tile of positions;
 * each of its threads looks through the whole tile for its own digits, in order, which keeps equals
 * so without any threads having to agree.
 */
#include "cuda_index.cuh"

#define DIGITS   256
#define TILE     (4 * CUDA_BLOCK)
#define TILE_MAX (4 * CUDA_BLOCK_MAX)

struct order {
    int64_t k, n, skip, tiles;
    const int64_t *index;
    int *bad;
    int64_t *from, *to; /* positions, before and after a digit */
    int64_t *count;     /* [DIGITS][tiles]: of a digit in a tile, then where they go to */
    int shift;          /* the digit's lowest bit; 0: `from` is not there yet, all in order */

    /* The row of a position; n for those that add nothing. */
    __device__ int64_t row(int64_t position) const
    {
        int64_t at = index[position];
        return at == skip || at < 0 || at >= n ? n : at;
    }
    __device__ int64_t position(int64_t i) const { return shift == 0 ? i : from[i]; }
    __device__ uint8_t digit(int64_t i) const { return (uint8_t)(row(position(i)) >> shift); }
};

/* f(digit, i) for the places i of a tile, digits apart, each in its order. */
template <typename F, typename G>
__device__ static void look(const struct order &o, int64_t tile, F begin, G found)
{
    CUDA_SHARED(uint8_t, digits, TILE_MAX);
    int64_t first = tile * TILE, n = o.k - first < TILE ? o.k - first : TILE;
    for (int64_t l = threadIdx.x; l < n; l += blockDim.x)
        digits[l] = o.digit(first + l);
    __syncthreads();
    for (int d = (int)threadIdx.x; d < DIGITS; d += (int)blockDim.x) {
        int64_t at = begin(d);
        for (int64_t l = 0; l < n; l++)
            if (digits[l] == d)
                found(first + l, at++);
        o.count[d * o.tiles + tile] = at;
    }
    __syncthreads();
}

static int count(struct det_stream *s, const struct det_call *c, struct order o,
                 struct det_err *err)
{
    return cuda_blocks(
        s, c, o.tiles,
        DEVICE(int64_t tile) {
            look(
                o, tile, [](int) { return (int64_t)0; }, [](int64_t, int64_t) {});
        },
        err);
}

/* Counts become the sums of all before them, by one block. */
static int scan(struct det_stream *s, const struct det_call *c, struct order o, struct det_err *err)
{
    return cuda_blocks(
        s, c, 1,
        DEVICE(int64_t) {
            CUDA_SHARED(int64_t, sums, CUDA_BLOCK_MAX);
            int64_t n = DIGITS * o.tiles, each = (n + blockDim.x - 1) / blockDim.x;
            int64_t from = threadIdx.x * each, to = from + each < n ? from + each : n, sum = 0;
            for (int64_t i = from; i < to; i++)
                sum += o.count[i];
            sums[threadIdx.x] = sum;
            __syncthreads();
            sum = 0;
            for (unsigned t = 0; t < threadIdx.x; t++)
                sum += sums[t];
            for (int64_t i = from; i < to; i++) {
                int64_t next = sum + o.count[i];
                o.count[i] = sum;
                sum = next;
            }
            __syncthreads();
        },
        err);
}

static int place(struct det_stream *s, const struct det_call *c, struct order o,
                 struct det_err *err)
{
    return cuda_blocks(
        s, c, o.tiles,
        DEVICE(int64_t tile) {
            look(
                o, tile, [&](int d) { return o.count[d * o.tiles + tile]; },
                [&](int64_t i, int64_t at) { o.to[at] = o.position(i); });
        },
        err);
}

/* The sorted positions are in o->from afterwards. */
static int sort(struct det_stream *s, const struct det_call *c, struct order *o,
                struct det_err *err)
{
    void *work;
    o->tiles = (o->k + TILE - 1) / TILE;
    size_t bytes = (size_t)(2 * o->k + DIGITS * o->tiles) * sizeof(int64_t);
    int rc = cuda_workspace(s->device, bytes, &work, err);
    o->from = (int64_t *)work, o->to = o->from + o->k, o->count = o->to + o->k;
    for (o->shift = 0; rc == 0 && o->shift < 64 && o->n >> o->shift > 0; o->shift += 8) {
        if ((rc = count(s, c, *o, err)) == 0 && (rc = scan(s, c, *o, err)) == 0)
            rc = place(s, c, *o, err);
        int64_t *sorted = o->to;
        o->to = o->from;
        o->from = sorted;
    }
    return rc;
}

#define AHEAD 8 /* rows that are read before they are added */

template <typename T> struct sums {
    struct cuda_rows y;
    const T *src;
    T *to;
};

/* Column j of row n: what the places from i on add to it. */
template <typename T>
__device__ static void add_column(const struct order &o, const sums<T> &v, int64_t a, int64_t i,
                                  int64_t n, int64_t j)
{
    T *to = v.to + (a * v.y.n + n) * v.y.b + j, sum = *to;
    for (bool more = true; more; i += AHEAD) {
        T next[AHEAD];
        bool here[AHEAD];
#pragma unroll
        for (int l = 0; l < AHEAD; l++) {
            int64_t k = i + l < o.k ? o.from[i + l] : -1;
            here[l] = k >= 0 && o.row(k) == n;
            next[l] = here[l] ? v.src[(a * o.k + k) * v.y.b + j] : 0;
        }
#pragma unroll
        for (int l = 0; l < AHEAD; l++)
            if (here[l])
                sum += next[l];
        more = here[AHEAD - 1];
    }
    *to = sum;
}

/* A block for each place in the sorted positions and each piece of the columns; the first place of
 * a row works, the others have nothing to do. */
template <typename T>
static int add_all(struct det_stream *s, const struct det_call *c, struct order o, const sums<T> &v,
                   struct det_err *err)
{
    int64_t pieces = (v.y.b + CUDA_BLOCK - 1) / CUDA_BLOCK;
    return cuda_blocks(
        s, c, v.y.a * o.k * pieces,
        DEVICE(int64_t block) {
            int64_t rest = cuda_div(block, pieces), a = cuda_div(rest, o.k), i = rest - a * o.k;
            int64_t j = (block - rest * pieces) * blockDim.x + threadIdx.x;
            int64_t position = o.from[i], n = o.row(position);
            if (n == o.n && o.index[position] != o.skip)
                *o.bad = 1;
            if (n < o.n && (i == 0 || o.row(o.from[i - 1]) != n) && j < v.y.b)
                add_column(o, v, a, i, n, j);
        },
        err);
}

template <typename T>
static int index_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct sums<T> v = {
        cuda_rows_of(c->out[0]), (const T *)c->in[2]->data, (T *)c->out[0]->data
    };
    struct order o = {.k = (int64_t)c->in[1]->numel,
                      .n = v.y.n,
                      .skip = c->a.skip,
                      .index = in_i64(c, 1),
                      .bad = s->bad};
    int rc = cuda_index_start(s, c, err);
    if (rc < 0 || o.k == 0 || c->out[0]->numel == 0)
        return rc;
    rc = sort(s, c, &o, err);
    return rc < 0 ? rc : add_all(s, c, o, v, err);
}

/* Whole numbers are added modulo 2^64. */
int cuda_index_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (c->out[0]->dtype) {
    case DET_F32: return index_add<float>(s, c, err);
    case DET_F64: return index_add<double>(s, c, err);
    default: return index_add<uint64_t>(s, c, err);
    }
}
