/* Normalisation of rows: layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019). */
#include "ref_real.h"

#include <math.h>

static double row_mean(const real *x, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += x[j];
    return sum / (double)n;
}

static double row_square(const real *x, int64_t n, double mean)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += (x[j] - mean) * (x[j] - mean);
    return sum / (double)n;
}

REF_KERNEL(layer_norm)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const real *w = in_real(c, 1), *b = in_real(c, 2);
    for (int64_t i = 0; i < m && n > 0; i++) {
        const real *x = in_real(c, 0) + i * n;
        real *y = out_real(c, 0) + i * n;
        double mean = c->a.rms ? 0 : row_mean(x, n);
        double invstd = 1 / sqrt(row_square(x, n, mean) + c->a.eps);
        for (int64_t j = 0; j < n; j++)
            y[j] = (real)((x[j] - mean) * invstd * (w ? w[j] : 1) + (b ? b[j] : 0));
        out_real(c, 1)[i] = (real)mean;
        out_real(c, 2)[i] = (real)invstd;
    }
    return 0;
}

static void backward_row(const struct det_call *c, int64_t i, int64_t n)
{
    const real *dy = in_real(c, 0) + i * n, *x = in_real(c, 1) + i * n, *w = in_real(c, 2);
    const real *have = c->in[5] ? in_real(c, 5) + i * n : NULL;
    double mean = in_real(c, 3)[i], invstd = in_real(c, 4)[i], sum = 0, dot = 0;
    real *dx = out_real(c, 0) + i * n;
    for (int64_t j = 0; j < n; j++) {
        double g = (double)dy[j] * (w ? w[j] : 1);
        sum += g;
        dot += g * (x[j] - mean) * invstd;
    }
    sum = c->a.rms ? 0 : sum / (double)n;
    for (int64_t j = 0; j < n; j++) {
        double g = (double)dy[j] * (w ? w[j] : 1), xhat = (x[j] - mean) * invstd;
        real slope = (real)(invstd * (g - sum - xhat * dot / (double)n));
        dx[j] = have ? have[j] + slope : slope;
    }
}

static void backward_column(const struct det_call *c, int64_t j, int64_t m, int64_t n)
{
    const real *dy = in_real(c, 0), *x = in_real(c, 1);
    const real *mean = in_real(c, 3), *invstd = in_real(c, 4);
    double dw = 0, db = 0;
    for (int64_t i = 0; i < m; i++) {
        dw += (double)dy[i * n + j] * (x[i * n + j] - mean[i]) * invstd[i];
        db += dy[i * n + j];
    }
    if (c->out[1])
        out_real(c, 1)[j] = (real)dw;
    if (c->out[2])
        out_real(c, 2)[j] = (real)db;
}

REF_KERNEL(layer_norm_bwd)
{
    (void)s, (void)err;
    int64_t m = c->in[1]->dims[0], n = c->in[1]->dims[1];
    for (int64_t i = 0; c->out[0] && i < m; i++)
        backward_row(c, i, n);
    for (int64_t j = 0; (c->out[1] || c->out[2]) && j < n; j++)
        backward_column(c, j, m, n);
    return 0;
}
