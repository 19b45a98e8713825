/* Filling, copying and converting between any strides and dtypes, choosing, sums of what a
 * broadcast repeated. */
#include "cuda_pack.cuh"
#include "cuda_walk.cuh"

int cuda_fill(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    void *y = c->out[0]->data;
    int dtype = c->out[0]->dtype;
    int64_t n = (int64_t)c->out[0]->numel;
    double v = c->a.scale;
    if (v == 0)
        return cuda_check(cudaMemsetAsync(y, 0, det_tensor_bytes(c->out[0]), s->native), "fill",
                          err);
    return cuda_each(
        s, c, n, DEVICE(int64_t i) { cuda_store(dtype, y, i, v); }, err);
}

template <typename T>
static int convert(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return cuda_map<T, 1>(
        s, c, DEVICE(T x) { return x; }, err);
}

/* ---- the bits as they are ---- */

/* The walk in the largest pieces, of up to 16 bytes, that all rows of both tensors are made of;
 * *size is an element's, then a piece's. */
static void widen(struct cuda_walk *k, size_t *size)
{
    int row = k->w.ndim - 1;
    if (k->w.strides[0][row] != 1 || k->w.strides[1][row] != 1)
        return;
    uint64_t all = (uint64_t)(k->w.dims[row] * (int64_t)*size) | 16;
    for (int t = 0; t < 2; t++) {
        all |= (uintptr_t)k->p[t];
        for (int d = 0; d < row; d++)
            all |= (uint64_t)(k->w.strides[t][d] * (int64_t)*size);
    }
    int64_t piece = (int64_t)(all & -all), n = piece / (int64_t)*size; /* the lowest bit of all */
    if (n <= 1)
        return;
    for (int t = 0; t < 2; t++)
        for (int d = 0; d < row; d++)
            k->w.strides[t][d] /= n;
    k->w.dims[row] /= n;
    k->w.numel /= n;
    *size = (size_t)piece;
}

/* The dimension along which x is dense while y is dense along rows: a transposition; else -1. */
#define TURN_MIN 8 /* elements both ways that are worth it */
static int turned(const struct det__walk *w)
{
    int row = w->ndim - 1;
    if (w->strides[0][row] != 1 || w->strides[1][row] == 1 || w->dims[row] < TURN_MIN)
        return -1;
    for (int d = 0; d < row; d++)
        if (w->strides[1][d] == 1 && w->dims[d] >= TURN_MIN)
            return d;
    return -1;
}

/* Squares of tile x tile elements, rows and columns of which are read and written as they lie:
 * through shared memory. */
struct squares {
    struct det__walk rest; /* over the other dimensions */
    int64_t rows, columns; /* of y */
    int64_t y_step, x_step;
};

static struct squares squares_of(const struct det__walk *w, int across)
{
    int row = w->ndim - 1;
    struct squares r = {.rows = w->dims[across],
                        .columns = w->dims[row],
                        .y_step = w->strides[0][across],
                        .x_step = w->strides[1][row]};
    r.rest.tensors = 2, r.rest.numel = 1;
    for (int d = 0; d < row; d++) {
        if (d == across)
            continue;
        r.rest.dims[r.rest.ndim] = w->dims[d];
        for (int t = 0; t < 2; t++)
            r.rest.strides[t][r.rest.ndim] = w->strides[t][d];
        r.rest.numel *= w->dims[d];
        r.rest.ndim++;
    }
    return r;
}

template <typename T, int TILE>
__device__ static void turn_tile(const struct squares &k, T *y, const T *x, int64_t row,
                                 int64_t column)
{
    constexpr int STEP = TILE + (sizeof(T) < 4 ? 4 / (int)sizeof(T) : 1); /* no two in one bank */
    CUDA_SHARED(T, tile, TILE * STEP);
    int down = CUDA_BLOCK > TILE ? (int)CUDA_BLOCK / TILE : 1; /* rows of the tile at a time */
    int fast = (int)threadIdx.x % TILE, slow = (int)threadIdx.x / TILE;
    int64_t rows = k.rows - row, columns = k.columns - column;
    const T *from = x + (column + slow) * k.x_step + row;
#pragma unroll
    for (int i = slow; i < slow + TILE; i += down, from += down * k.x_step)
        for (int j = fast; j < TILE; j += (int)CUDA_BLOCK)
            if (j < rows && i < columns)
                tile[i * STEP + j] = from[j];
    __syncthreads();
    T *to = y + (row + slow) * k.y_step + column;
#pragma unroll
    for (int i = slow; i < slow + TILE; i += down, to += down * k.y_step)
        for (int j = fast; j < TILE; j += (int)CUDA_BLOCK)
            if (j < columns && i < rows)
                to[j] = tile[j * STEP + i];
    __syncthreads();
}

template <typename T, int TILE>
static int turn(struct det_stream *s, const struct det_call *c, const struct squares &k,
                struct det_err *err)
{
    int64_t down = (k.rows + TILE - 1) / TILE, across = (k.columns + TILE - 1) / TILE;
    T *y = (T *)c->out[0]->data;
    const T *x = (const T *)c->in[0]->data;
    return cuda_blocks(
        s, c, k.rest.numel * down * across,
        DEVICE(int64_t i) {
            int64_t rest = cuda_div(i, across), column = i - rest * across;
            int64_t image = cuda_div(rest, down), row = rest - image * down;
            cuda_place<2> at = cuda_place_of<2>(k.rest, image);
            turn_tile<T, TILE>(k, y + at.at[0], x + at.at[1], row * TILE, column * TILE);
        },
        err);
}

static int turn_by_size(struct det_stream *s, const struct det_call *c, const struct squares &k,
                        struct det_err *err)
{
    switch (det_dtype_size(c->out[0]->dtype)) {
    case 8: return turn<uint64_t, 32>(s, c, k, err);
    case 4: return turn<uint32_t, 64>(s, c, k, err);
    case 2: return turn<uint16_t, 64>(s, c, k, err);
    default: return turn<uint8_t, 64>(s, c, k, err);
    }
}

/* ---- few channels: rows of some elements that lie apart in x ---- */

/* The dimension along which x is dense, where y's few elements of a row follow each other without a
 * gap; else -1. */
static int dealt(const struct det__walk *w)
{
    int row = w->ndim - 1;
    if (w->strides[0][row] != 1 || w->dims[row] < 2 || w->dims[row] >= TURN_MIN)
        return -1;
    for (int d = 0; d < row; d++)
        if (w->strides[1][d] == 1 && w->strides[0][d] == w->dims[row] && w->dims[d] >= TURN_MIN)
            return d;
    return -1;
}

/* A thread writes 16 bytes of y, or what is left of an image: planes are read in runs by
 * neighbours. */
template <typename T>
static int deal(struct det_stream *s, const struct det_call *c, const struct squares &k,
                struct det_err *err)
{
    constexpr int WIDE = 16 / (int)sizeof(T);
    int channels = (int)k.columns;
    int64_t image = k.rows * channels, packs = (image + WIDE - 1) / WIDE;
    T *y = (T *)c->out[0]->data;
    const T *x = (const T *)c->in[0]->data;
    bool even = (uintptr_t)y % 16 == 0 && image % WIDE == 0;
    for (int d = 0; d < k.rest.ndim; d++)
        even = even && k.rest.strides[0][d] % WIDE == 0;
    return cuda_each(
        s, c, k.rest.numel * packs,
        DEVICE(int64_t i) {
            int64_t n = cuda_div(i, packs), first = (i - n * packs) * WIDE;
            int64_t pixel = cuda_div(first, channels);
            int channel = (int)(first - pixel * channels);
            cuda_place<2> at = cuda_place_of<2>(k.rest, n);
            const T *from = x + at.at[1];
            T *to = y + at.at[0] + first;
            T v[WIDE];
            CUDA_UNROLL
            for (int j = 0; j < WIDE; j++) {
                v[j] = first + j < image ? from[channel * k.x_step + pixel] : (T)0;
                bool last = ++channel == channels;
                channel = last ? 0 : channel;
                pixel += last;
            }
            if (even) {
                cuda_quad q;
                memcpy(&q, v, sizeof q);
                *(cuda_quad *)to = q;
                return;
            }
            for (int j = 0; j < WIDE && first + j < image; j++)
                to[j] = v[j];
        },
        err);
}

static int deal_by_size(struct det_stream *s, const struct det_call *c, const struct squares &k,
                        struct det_err *err)
{
    switch (det_dtype_size(c->out[0]->dtype)) {
    case 8: return deal<uint64_t>(s, c, k, err);
    case 4: return deal<uint32_t>(s, c, k, err);
    case 2: return deal<uint16_t>(s, c, k, err);
    default: return deal<uint8_t>(s, c, k, err);
    }
}

static int move(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, 2);
    size_t size = det_dtype_size(c->out[0]->dtype);
    if (k.w.numel == 0)
        return 0;
    int across = turned(&k.w);
    if (across >= 0)
        return turn_by_size(s, c, squares_of(&k.w, across), err);
    across = dealt(&k.w);
    if (across >= 0)
        return deal_by_size(s, c, squares_of(&k.w, across), err);
    widen(&k, &size);
    return cuda_each(
        s, c, k.w.numel,
        DEVICE(int64_t i) {
            cuda_place<2> at = cuda_place_of<2>(k.w, i);
            cuda_move(size, k.p[0], at.at[0], k.p[1], at.at[1]);
        },
        err);
}

struct same {
    __device__ float operator()(float x) const { return x; }
};

int cuda_copy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    if (x->dtype == y->dtype)
        return move(s, c, err);
    if (cuda_is_narrow(x->dtype) && cuda_is_narrow(y->dtype)) /* no double is needed */
        return cuda_map_packs<1>(s, c, same{}, err);
    return det__is_float(x->dtype) ? convert<double>(s, c, err) : convert<int64_t>(s, c, err);
}

int cuda_where(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, 4);
    size_t size = det_dtype_size(c->out[0]->dtype);
    return cuda_each(
        s, c, k.w.numel,
        DEVICE(int64_t i) {
            cuda_place<4> at = cuda_place_of<4>(k.w, i);
            bool first = cuda_load<int64_t>(k.dtype[1], k.p[1], at.at[1]);
            cuda_move(size, k.p[0], at.at[0], first ? k.p[2] : k.p[3], first ? at.at[2] : at.at[3]);
        },
        err);
}

/* x's dimensions, apart: those that y has (0), those that are summed (1). */
struct sums {
    struct det__walk w[2];
};

static struct sums split(const struct det_tensor *x, const struct det_tensor *y)
{
    struct det_tensor wide;
    struct det__walk all;
    struct sums r = {};
    det__broadcast(y, x->ndim, x->dims, &wide);
    const struct det_tensor *t[] = {x, &wide};
    det__walk_init(&all, 2, t);
    for (int i = 0; i < 2; i++)
        r.w[i].tensors = 2, r.w[i].numel = 1;
    for (int d = 0; d < all.ndim; d++) {
        struct det__walk *w = &r.w[all.strides[1][d] == 0];
        w->dims[w->ndim] = all.dims[d];
        w->strides[0][w->ndim] = all.strides[0][d];
        w->strides[1][w->ndim++] = all.strides[1][d];
        w->numel *= all.dims[d];
    }
    return r;
}

/* x is dense, y one of its rows. */
static bool is_of_rows(const struct sums &k)
{
    const struct det__walk &row = k.w[0], &rows = k.w[1];
    return row.ndim == 1 && row.strides[0][0] == 1 && row.strides[1][0] == 1 && rows.ndim == 1 &&
           rows.strides[0][0] == row.numel;
}

int cuda_sum_to(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct sums k = split(c->in[0], c->out[0]);
    int from = c->in[0]->dtype, to = c->out[0]->dtype;
    const void *x = c->in[0]->data;
    void *y = c->out[0]->data;
    if (c->in[0]->numel == 0) {
        struct det_call fill = {};
        fill.out[0] = c->out[0];
        return cuda_fill(s, &fill, err);
    }
    if (is_of_rows(k))
        return cuda_sum_columns(s, c, c->in[0], c->out[0], 1, err);
    return cuda_columns(
        s, c, k.w[0].numel, k.w[1].numel,
        [=] __device__(int64_t i, auto team) {
            cuda_place<2> at = cuda_place_of<2>(k.w[0], i);
            double total = 0;
            for (int64_t j = team.first(); j < k.w[1].numel; j += team.step())
                total += cuda_load<double>(from, x, at.at[0] + cuda_place_of<2>(k.w[1], j).at[0]);
            total = team.combine(total, cuda_plus());
            if (team.leader())
                cuda_store(to, y, at.at[1], total);
        },
        err);
}
