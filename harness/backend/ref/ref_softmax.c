/* Softmax over rows; the row's maximum is subtracted first (Goodfellow et al. 2016, 4.1). */
#include "ref_real.h"

#include <math.h>

static double row_log_sum(const real *x, int64_t n)
{
    double max = x[0], sum = 0;
    for (int64_t j = 1; j < n; j++)
        max = x[j] > max ? x[j] : max;
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j] - max);
    return max + log(sum);
}

static int softmax(const struct det_call *c, bool logarithm)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    for (int64_t i = 0; i < m && n > 0; i++) {
        const real *x = in_real(c, 0) + i * n;
        real *y = out_real(c, 0) + i * n;
        double lse = row_log_sum(x, n);
        for (int64_t j = 0; j < n; j++)
            y[j] = (real)(logarithm ? x[j] - lse : exp(x[j] - lse));
    }
    return 0;
}

REF_KERNEL(log_softmax)
{
    (void)s, (void)err;
    return softmax(c, true);
}

REF_KERNEL(softmax)
{
    (void)s, (void)err;
    return softmax(c, false);
}

REF_KERNEL(log_softmax_bwd)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    for (int64_t i = 0; i < m; i++) {
        const real *dy = in_real(c, 0) + i * n, *y = in_real(c, 1) + i * n;
        real *dx = out_real(c, 0) + i * n;
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += dy[j];
        for (int64_t j = 0; j < n; j++)
            dx[j] = (real)(dy[j] - exp(y[j]) * sum);
    }
    return 0;
}

REF_KERNEL(softmax_bwd)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    for (int64_t i = 0; i < m; i++) {
        const real *dy = in_real(c, 0) + i * n, *y = in_real(c, 1) + i * n;
        real *dx = out_real(c, 0) + i * n;
        double dot = 0;
        for (int64_t j = 0; j < n; j++)
            dot += (double)dy[j] * y[j];
        for (int64_t j = 0; j < n; j++)
            dx[j] = (real)(y[j] * (dy[j] - dot));
    }
    return 0;
}
