/*
 * Reading at indices, and what else takes them; cuda_index_add.cu adds. Tensors are [A, N, B], or
 * [N, B] where A = 1. An index out of range sets *bad, which the stream's next synchronisation
 * reports.
 */
#include "cuda_index.cuh"

int cuda_index_select(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_rows x = cuda_rows_of(c->in[0]);
    const int64_t *index = in_i64(c, 1), k = (int64_t)c->in[1]->numel;
    size_t size = det_dtype_size(c->in[0]->dtype);
    const void *from = c->in[0]->data;
    void *y = c->out[0]->data;
    int *bad = s->bad;
    return cuda_each(
        s, c, x.a * k * x.b,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, x.b), a = cuda_div(row, k);
            int64_t at = cuda_checked(index[row - a * k], x.n, bad);
            if (at >= 0)
                cuda_move(size, y, i, from, (a * x.n + at) * x.b + (i - row * x.b));
        },
        err);
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
            int64_t at = cuda_checked(index[i], n, bad), a = cuda_div(i, kb);
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
    int *bad = s->bad, rc = cuda_index_start(s, c, err);
    if (rc < 0)
        return rc;
    return cuda_each(
        s, c, d[0] * b,
        DEVICE(int64_t i) {
            int64_t a = cuda_div(i, b), column = i - a * b;
            for (int64_t k = 0; k < count; k++) {
                int64_t from = (a * count + k) * b + column, at = cuda_checked(index[from], n, bad);
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
            int64_t at = cuda_checked(x[i], n, bad);
            for (int64_t j = 0; j < n; j++)
                y[i * n + j] = j == at;
        },
        err);
}
