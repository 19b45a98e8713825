/* y = x w^T + b and its gradients; x [M,K], w [N,K], y [M,N]. Sums are in double. */
#include "ref_real.h"

REF_KERNEL(linear)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[0];
    const real *x = in_real(c, 0), *w = in_real(c, 1), *b = in_real(c, 2);
    real *y = out_real(c, 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = b ? b[j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)x[i * k + l] * w[j * k + l];
            y[i * n + j] = (real)sum;
        }
    return 0;
}

REF_KERNEL(linear_bwd_data)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], k = c->in[1]->dims[1];
    const real *dy = in_real(c, 0), *w = in_real(c, 1);
    real *dx = out_real(c, 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += (double)dy[i * n + j] * w[j * k + l];
            dx[i * k + l] = (real)sum;
        }
    return 0;
}

REF_KERNEL(linear_bwd_weight)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[1];
    const real *x = in_real(c, 0), *dy = in_real(c, 1);
    real *dw = out_real(c, 0), *db = out_real(c, 1);
    for (int64_t j = 0; j < n; j++) {
        double bias = 0;
        for (int64_t i = 0; i < m; i++)
            bias += dy[i * n + j];
        if (db)
            db[j] = (real)bias;
        for (int64_t l = 0; l < k; l++) {
            double sum = 0;
            for (int64_t i = 0; i < m; i++)
                sum += (double)dy[i * n + j] * x[i * k + l];
            dw[j * k + l] = (real)sum;
        }
    }
    return 0;
}
