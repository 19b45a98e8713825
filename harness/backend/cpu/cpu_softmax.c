/* Softmax and its logarithm over rows, divided among the threads. */
#include "cpu_real.h"

#define GRAIN_ELEMENTS 8192
#define LANES          16

/* max and sum, the logarithm of what is above it, are taken away one after the other: their sum
 * would lose the digits of the smaller one. */
CPU_CLONES static void forward_row(const real *x, int64_t n, bool logarithm, real *y)
{
    real max, sum = CPU(row_log_sum)(x, n, &max);
    if (logarithm)
        for (int64_t j = 0; j < n; j++)
            y[j] = x[j] - max - sum;
    else
        for (int64_t j = 0; j < n; j++)
            y[j] = vm_exp(x[j] - max - sum);
}

static void forward_rows(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->in[0]->dims[1];
    for (int64_t i = from; i < to; i++)
        forward_row(in_real(c, 0) + i * n, n, c->kernel == DET_KERNEL_LOG_SOFTMAX,
                    out_real(c, 0) + i * n);
}

/* The sum of dy, or of dy * y, in LANES partial sums. */
CPU_CLONES static real row_dot(const real *dy, const real *y, int64_t n)
{
    real sum[LANES] = {0}, total = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += y ? dy[j + l] * y[j + l] : dy[j + l];
    for (int l = 0; j < n; j++, l++)
        sum[l] += y ? dy[j] * y[j] : dy[j];
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return total;
}

CPU_CLONES static void log_bwd_row(const real *dy, const real *y, int64_t n, real *dx)
{
    real sum = row_dot(dy, NULL, n);
    for (int64_t j = 0; j < n; j++)
        dx[j] = dy[j] - vm_exp(y[j]) * sum;
}

CPU_CLONES static void bwd_row(const real *dy, const real *y, int64_t n, real *dx)
{
    real dot = row_dot(dy, y, n);
    for (int64_t j = 0; j < n; j++)
        dx[j] = y[j] * (dy[j] - dot);
}

static void backward_rows(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->in[0]->dims[1];
    bool logarithm = c->kernel == DET_KERNEL_LOG_SOFTMAX_BWD;
    for (int64_t i = from * n; i < to * n; i += n)
        (logarithm ? log_bwd_row : bwd_row)(in_real(c, 0) + i, in_real(c, 1) + i, n,
                                            out_real(c, 0) + i);
}

static int over_rows(struct det_stream *s, const struct det_call *c, cpu_range_fn *fn)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    if (n > 0)
        cpu_parallel(cpu_device(s)->threads, m, 1 + GRAIN_ELEMENTS / n, fn, c);
    return 0;
}

int CPU(softmax)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_rows(s, c, forward_rows);
}

int CPU(softmax_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_rows(s, c, backward_rows);
}
