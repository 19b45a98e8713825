/* What reading and adding at indices share. */
#ifndef CUDA_INDEX_CUH
#define CUDA_INDEX_CUH

#include "cuda_dtype.cuh"

/* [A, N, B], or [N, B] where A = 1. */
struct cuda_rows {
    int64_t a, n, b;
};

static inline struct cuda_rows cuda_rows_of(const struct det_tensor *t)
{
    const int64_t *d = t->dims + t->ndim - 2;
    return {t->ndim > 2 ? t->dims[0] : 1, d[0], d[1]};
}

/* The index, or -1 where there is no such row. */
__device__ inline int64_t cuda_checked(int64_t at, int64_t n, int *bad)
{
    if (at >= 0 && at < n)
        return at;
    *bad = 1;
    return -1;
}

/* What both additions start from: x, or zeros. */
static inline int cuda_index_start(struct det_stream *s, const struct det_call *c,
                                   struct det_err *err)
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

#endif
