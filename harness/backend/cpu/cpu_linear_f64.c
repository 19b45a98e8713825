/* y = x w^T + b and its gradients, of doubles; x [M,K], w [N,K], y [M,N]. */
#include <string.h>

#include "cpu_dgemm.h"
#include "cpu_real.h"

int CPU(linear)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[0];
    const real *b = in_real(c, 2);
    real *y = out_real(c, 0);
    for (int64_t i = 0; b && i < m; i++)
        memcpy(y + i * n, b, (size_t)n * sizeof *y);
    cpu_dgemm('N', 'T', m, n, k, 1, in_real(c, 0), k, in_real(c, 1), k, b ? 1 : 0, y, n);
    return 0;
}

int CPU(linear_bwd_data)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], k = c->in[1]->dims[1];
    cpu_dgemm('N', 'N', m, k, n, 1, in_real(c, 0), n, in_real(c, 1), k, 0, out_real(c, 0), k);
    return 0;
}

int CPU(linear_bwd_weight)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[1];
    cpu_dgemm('T', 'N', n, k, m, 1, in_real(c, 1), n, in_real(c, 0), k, 0, out_real(c, 0), k);
    if (!c->out[1])
        return 0;
    return CPU(column_sums)(cpu_device(s)->threads, in_real(c, 1), m, n, out_real(c, 1), err);
}
