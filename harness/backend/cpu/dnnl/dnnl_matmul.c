/*
 * Batched matrix products by oneDNN's sgemm. Where there are several products their batches are
 * divided among the threads (one thread each: sgemm within a parallel loop uses one), a single one
 * is divided by oneDNN.
 */
#include <string.h>

#include "dnnl_prim.h"

struct products {
    const struct det_call *c;
    int64_t dims[DET_DIMS_MAX]; /* of the batches */
    int64_t outer, inner;       /* y's matrices, and how many products are summed into each */
};

static dnnl_status_t multiply_at(const struct det_call *c, const int64_t *at, real beta)
{
    const struct det_tensor *a = c->in[0], *b = c->in[1], *y = c->out[0];
    int64_t lda = a->dims[a->ndim - 1], ldb = b->dims[b->ndim - 1];
    int64_t m = y->dims[y->ndim - 2], n = y->dims[y->ndim - 1];
    int64_t k = a->dims[c->a.trans_a ? a->ndim - 2 : a->ndim - 1];
    return prim_gemm(c->a.trans_a ? 'T' : 'N', c->a.trans_b ? 'T' : 'N', m, n, k, 1,
                     in_real(c, 0) + ref_batch_offset(a, at), lda,
                     in_real(c, 1) + ref_batch_offset(b, at), ldb, beta,
                     out_real(c, 0) + ref_batch_offset(y, at), n);
}

/* The place of the inner-th product of y's outer-th matrix: y's dimensions count in outer, those
 * that are summed in inner. */
static void place_of_product(const struct products *p, int64_t outer, int64_t inner, int64_t *at)
{
    const struct det_tensor *y = p->c->out[0];
    for (int d = y->ndim - 3; d >= 0; d--) {
        int64_t *from = y->dims[d] == p->dims[d] ? &outer : &inner;
        at[d] = *from % p->dims[d];
        *from /= p->dims[d];
    }
}

static void multiply_range(const void *arg, int64_t from, int64_t to)
{
    const struct products *p = arg;
    int64_t at[DET_DIMS_MAX] = {0};
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < p->inner; j++) {
            place_of_product(p, i, j, at);
            multiply_at(p->c, at, j > 0 ? 1 : 0);
        }
}

int CPU(matmul)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *a = c->in[0], *y = c->out[0];
    struct products p = {.c = c, .outer = 1, .inner = 1};
    int64_t all = ref_batch_dims(c, p.dims), at[DET_DIMS_MAX] = {0};
    if (y->numel == 0)
        return 0;
    if (all == 0 || a->numel == 0) { /* a sum over nothing */
        memset(y->data, 0, y->numel * sizeof(real));
        return 0;
    }
    for (int d = 0; d < y->ndim - 2; d++)
        *(y->dims[d] == p.dims[d] ? &p.outer : &p.inner) *= p.dims[d];
    if (all == 1)
        return prim_check(multiply_at(c, at, 0), "matmul", err);
    cpu_parallel(cpu_device(s)->threads, p.outer, 1, multiply_range, &p);
    return 0;
}
