/*
 * Reading and adding at indices. Tensors are [A, N, B], or [N, B] where A = 1. Additions are made
 * in the order of the index, each destination by one thread: no atomics, equal bits at every run.
 * An index out of range sets *bad, which the stream's next synchronisation reports.
 */
#include "cuda_dtype.cuh"

struct rows {
    int64_t a, n, b;
};

static struct rows rows_of(const struct det_tensor *t)
{
    const int64_t *d = t->dims + t->ndim - 2;
    return {t->ndim > 2 ? t->dims[0] : 1, d[0], d[1]};
}

/* The index, or -1 where there is no such row. */
__device__ static int64_t checked(int64_t at, int64_t n, int *bad)
{
    if (at >= 0 && at < n)
        return at;
    *bad = 1;
    return -1;
}

int cuda_index_select(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct rows x = rows_of(c->in[0]);
    const int64_t *index = in_i64(c, 1), k = (int64_t)c->in[1]->numel;
    size_t size = det_dtype_size(c->in[0]->dtype);
    const void *from = c->in[0]->data;
    void *y = c->out[0]->data;
    int *bad = s->bad;
    return cuda_each(
        s, c, x.a * k * x.b,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, x.b), a = cuda_div(row, k);
            int64_t at = checked(index[row - a * k], x.n, bad);
            if (at >= 0)
                cuda_move(size, y, i, from, (a * x.n + at) * x.b + (i - row * x.b));
        },
        err);
}

/* What both additions start from: x, or zeros. */
static int start(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    size_t bytes = c->out[0]->numel * det_dtype_size(c->out[0]->dtype);
    cudaError_t rc = cudaSuccess;
    if (bytes == 0)
        return 0;
    if (!c->in[0])
        rc = cudaMemsetAsync(c->out[0]->data, 0, bytes, s->native);
    else if (c->in[0]->data != c->out[0]->data)
        rc = cudaMemcpyAsync(c->out[0]->data, c->in[0]->data, bytes, cudaMemcpyDeviceToDevice,
                             s->native);
    return cuda_check(rc, "index_add", err);
}

/* One block for each destination: it looks through the index, a piece at a time, and its threads
 * add the rows that are meant, each its own columns. */
template <typename T>
struct add {
    struct rows y;
    int64_t k, skip;
    const int64_t *index;
    const T *src;
    T *to;
    int *bad;
};

template <typename T>
__device__ static void add_to_row(const add<T> &v, int64_t row)
{
    CUDA_SHARED(bool, meant, CUDA_BLOCK_MAX);
    int64_t a = cuda_div(row, v.y.n), n = row - a * v.y.n;
    for (int64_t from = 0; from < v.k; from += blockDim.x) {
        int64_t i = from + threadIdx.x, at = i < v.k ? v.index[i] : v.skip;
        bool here = at == n && at != v.skip;
        if (at != v.skip && n == 0)
            checked(at, v.y.n, v.bad);
        meant[threadIdx.x] = here;
        if (cuda_combine((int)here, cuda_plus()) == 0)
            continue;
        for (int64_t j = threadIdx.x; j < v.y.b; j += blockDim.x)
            for (unsigned l = 0; l < blockDim.x; l++)
                if (meant[l])
                    v.to[row * v.y.b + j] += v.src[(a * v.k + from + l) * v.y.b + j];
        __syncthreads();
    }
}

template <typename T>
static int index_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    add<T> v = {rows_of(c->out[0]),
                (int64_t)c->in[1]->numel,
                c->a.skip,
                in_i64(c, 1),
                (const T *)c->in[2]->data,
                (T *)c->out[0]->data,
                s->bad};
    int rc = start(s, c, err);
    if (rc < 0 || c->out[0]->numel == 0)
        return rc;
    return cuda_blocks(s, c, v.y.a * v.y.n, DEVICE(int64_t row) { add_to_row(v, row); }, err);
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

int cuda_gather(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims, *index = in_i64(c, 1);
    int64_t n = d[1], b = d[2], kb = c->in[1]->dims[1] * b;
    size_t size = det_dtype_size(c->in[0]->dtype);
    const void *x = c->in[0]->data;
    void *y = c->out[0]->data;
    int *bad = s->bad;
    return cuda_each(
        s, c, d[0] * kb,
        DEVICE(int64_t i) {
            int64_t at = checked(index[i], n, bad), a = cuda_div(i, kb);
            if (at >= 0)
                cuda_move(size, y, i, x, (a * n + at) * b + i % b);
        },
        err);
}

/* A thread for each column of [A, :, B]. */
template <typename T>
static int scatter_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->out[0]->dims, *index = in_i64(c, 1);
    int64_t n = d[1], b = d[2], count = c->in[1]->dims[1];
    const T *src = (const T *)c->in[2]->data;
    T *y = (T *)c->out[0]->data;
    int *bad = s->bad, rc = start(s, c, err);
    if (rc < 0)
        return rc;
    return cuda_each(
        s, c, d[0] * b,
        DEVICE(int64_t i) {
            int64_t a = cuda_div(i, b), column = i - a * b;
            for (int64_t k = 0; k < count; k++) {
                int64_t from = (a * count + k) * b + column, at = checked(index[from], n, bad);
                if (at >= 0)
                    y[(a * n + at) * b + column] += src[from];
            }
        },
        err);
}

int cuda_scatter_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (c->out[0]->dtype) {
    case DET_F32: return scatter_add<float>(s, c, err);
    case DET_F64: return scatter_add<double>(s, c, err);
    default: return scatter_add<uint64_t>(s, c, err);
    }
}

int cuda_one_hot(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->out[0]->dims[1], *y = out_i64(c, 0);
    const int64_t *x = in_i64(c, 0);
    int *bad = s->bad;
    return cuda_each(
        s, c, (int64_t)c->in[0]->numel,
        DEVICE(int64_t i) {
            int64_t at = checked(x[i], n, bad);
            for (int64_t j = 0; j < n; j++)
                y[i * n + j] = j == at;
        },
        err);
}
