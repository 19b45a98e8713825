/* y = x w^T + b and its gradients by oneDNN's sgemm (row-major), the bias by a loop of our own. */
#include <dnnl.h>
#include <string.h>

#include "dnnl_prim.h"
#include "ref.h"

/* How a product is laid out: C [m, n] = op(A) op(B), with the leading dimensions of A and B. */
struct gemm {
    char trans_a, trans_b;
    int64_t m, n, k, lda, ldb;
};

static int gemm(const struct gemm *g, const float *a, const float *b, float beta, float *y,
                struct det_err *err)
{
    return prim_check(dnnl_sgemm(g->trans_a, g->trans_b, g->m, g->n, g->k, 1, a, g->lda, b, g->ldb,
                                 beta, y, g->n),
                      "sgemm", err);
}

int cpu_linear(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[0];
    const float *b = in_f32(c, 2);
    float *y = out_f32(c, 0);
    for (int64_t i = 0; b && i < m; i++)
        memcpy(y + i * n, b, (size_t)n * sizeof *y);
    const struct gemm g = {'N', 'T', m, n, k, k, k};
    return gemm(&g, in_f32(c, 0), in_f32(c, 1), b ? 1 : 0, y, err);
}

int cpu_linear_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], k = c->in[1]->dims[1];
    const struct gemm g = {'N', 'N', m, k, n, n, k};
    return gemm(&g, in_f32(c, 0), in_f32(c, 1), 0, out_f32(c, 0), err);
}

static void bias_grad(const float *dy, int64_t m, int64_t n, float *db)
{
    memset(db, 0, (size_t)n * sizeof *db);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            db[j] += dy[i * n + j];
}

int cpu_linear_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[1];
    if (c->out[1])
        bias_grad(in_f32(c, 1), m, n, out_f32(c, 1));
    const struct gemm g = {'T', 'N', n, k, m, n, k};
    return gemm(&g, in_f32(c, 1), in_f32(c, 0), 0, out_f32(c, 0), err);
}
