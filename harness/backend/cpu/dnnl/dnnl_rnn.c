/* The gradients of recurrent weights: one product over all steps at once, by oneDNN's sgemm. */
#include <string.h>

#include "cpu_rnn.h"
#include "dnnl_prim.h"

/* dw (+)= dg^T h over n rows. */
static int multiply_grads(const struct rnn_grads *g, const real *dg, const real *h, int64_t n,
                          real beta, struct det_err *err)
{
    return prim_check(prim_gemm('T', 'N', g->rows, g->hidden, n, 1, dg, g->rows, h, g->hidden, beta,
                                g->dw, g->hidden),
                      "sgemm", err);
}

int CPU(rnn_weight_grads)(const struct rnn_grads *g, struct det_err *err)
{
    int64_t steps = g->time - 1, n = g->batch;
    if (g->db)
        memset(g->db, 0, (size_t)g->rows * sizeof *g->db);
    for (int64_t i = 0; g->db && i < g->time * n; i++)
        for (int64_t j = 0; j < g->rows; j++)
            g->db[j] += g->dg[i * g->rows + j];
    if (g->time == 0 || n == 0 || g->hidden == 0) {
        memset(g->dw, 0, (size_t)(g->rows * g->hidden) * sizeof *g->dw);
        return 0;
    }
    int64_t first = rnn_time(g->reverse, g->time, 0);
    int rc = multiply_grads(g, g->dg + first * n * g->rows, g->h0, n, 0, err);
    if (rc < 0 || steps == 0)
        return rc;
    const real *dg = g->reverse ? g->dg : g->dg + n * g->rows;
    const real *h = g->reverse ? g->y + n * g->hidden : g->y;
    return multiply_grads(g, dg, h, steps * n, 1, err);
}
