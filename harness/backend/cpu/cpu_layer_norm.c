/*
 * Layer norm and RMS norm of rows. Rows are divided among the threads; the gradients of weight and
 * bias are sums over rows, so there the columns are divided and the bits do not depend on threads.
 */
#include "cpu_real.h"

#include <string.h>

#define GRAIN_ELEMENTS 16384
#define LANES          16 /* partial sums of a row: a fixed order that fits the vector units */

static real sum_lanes(const real sum[LANES])
{
    real total = 0;
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return total;
}

CPU_CLONES static real row_sum(const real *x, int64_t n)
{
    real sum[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += x[j + l];
    for (int l = 0; j < n; j++, l++)
        sum[l] += x[j];
    return sum_lanes(sum);
}

CPU_CLONES static real row_squares(const real *x, int64_t n, real mean)
{
    real sum[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += (x[j + l] - mean) * (x[j + l] - mean);
    for (int l = 0; j < n; j++, l++)
        sum[l] += (x[j] - mean) * (x[j] - mean);
    return sum_lanes(sum);
}

CPU_CLONES static void write_row(const struct det_call *c, int64_t i, real mean, real invstd)
{
    int64_t n = c->in[0]->dims[1];
    const real *x = in_real(c, 0) + i * n, *w = in_real(c, 1), *b = in_real(c, 2);
    real *y = out_real(c, 0) + i * n;
    if (w && b)
        for (int64_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * invstd * w[j] + b[j];
    else if (w)
        for (int64_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * invstd * w[j];
    else
        for (int64_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * invstd + (b ? b[j] : 0);
}

static void forward_rows(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->in[0]->dims[1];
    for (int64_t i = from; i < to; i++) {
        const real *x = in_real(c, 0) + i * n;
        real mean = c->a.rms ? 0 : row_sum(x, n) / (real)n;
        real invstd = 1 / sqrt(row_squares(x, n, mean) / (real)n + (real)c->a.eps);
        write_row(c, i, mean, invstd);
        out_real(c, 1)[i] = mean;
        out_real(c, 2)[i] = invstd;
    }
}

static int64_t rows_per_grain(int64_t n)
{
    return 1 + GRAIN_ELEMENTS / (n > 0 ? n : 1);
}

int CPU(layer_norm)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    if (n > 0)
        cpu_parallel(cpu_device(s)->threads, m, rows_per_grain(n), forward_rows, c);
    return 0;
}

/* g = dy * w over a row: its sum, and its product with the normalised row. */
CPU_CLONES static void row_dots(const struct det_call *c, int64_t i, real *ret_sum, real *ret_dot)
{
    int64_t n = c->in[1]->dims[1], j = 0;
    const real *dy = in_real(c, 0) + i * n, *x = in_real(c, 1) + i * n, *w = in_real(c, 2);
    real mean = in_real(c, 3)[i], sum[LANES] = {0}, dot[LANES] = {0};
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++) {
            real g = w ? dy[j + l] * w[j + l] : dy[j + l];
            sum[l] += g;
            dot[l] += g * (x[j + l] - mean);
        }
    for (int l = 0; j < n; j++, l++) {
        real g = w ? dy[j] * w[j] : dy[j];
        sum[l] += g;
        dot[l] += g * (x[j] - mean);
    }
    *ret_sum = sum_lanes(sum);
    *ret_dot = sum_lanes(dot) * in_real(c, 4)[i];
}

CPU_CLONES static void backward_rows(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->in[1]->dims[1];
    const real *w = in_real(c, 2);
    for (int64_t i = from; i < to; i++) {
        const real *dy = in_real(c, 0) + i * n, *x = in_real(c, 1) + i * n;
        const real *have = c->in[5] ? in_real(c, 5) + i * n : NULL;
        real *dx = out_real(c, 0) + i * n, mean = in_real(c, 3)[i], invstd = in_real(c, 4)[i];
        real sum, dot;
        row_dots(c, i, &sum, &dot);
        sum = c->a.rms ? 0 : sum / (real)n;
        dot = dot * invstd / (real)n;
        for (int64_t j = 0; j < n; j++)
            dx[j] = (have ? have[j] : 0) +
                    invstd * ((w ? dy[j] * w[j] : dy[j]) - sum - (x[j] - mean) * dot);
    }
}

CPU_CLONES static void backward_columns(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t m = c->in[1]->dims[0], n = c->in[1]->dims[1];
    real *dw = out_real(c, 1), *db = out_real(c, 2);
    if (dw)
        memset(dw + from, 0, (size_t)(to - from) * sizeof *dw);
    if (db)
        memset(db + from, 0, (size_t)(to - from) * sizeof *db);
    for (int64_t i = 0; i < m; i++) {
        const real *dy = in_real(c, 0) + i * n, *x = in_real(c, 1) + i * n;
        real mean = in_real(c, 3)[i], invstd = in_real(c, 4)[i];
        for (int64_t j = from; dw && j < to; j++)
            dw[j] += dy[j] * ((x[j] - mean) * invstd);
        for (int64_t j = from; db && j < to; j++)
            db[j] += dy[j];
    }
}

int CPU(layer_norm_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    int threads = cpu_device(s)->threads;
    int64_t m = c->in[1]->dims[0], n = c->in[1]->dims[1];
    if (c->out[0] && n > 0)
        cpu_parallel(threads, m, rows_per_grain(n), backward_rows, c);
    if (c->out[1] || c->out[2])
        cpu_parallel(threads, n, rows_per_grain(m), backward_columns, c);
    return 0;
}
