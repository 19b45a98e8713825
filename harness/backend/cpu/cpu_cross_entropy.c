/*
 * Cross-entropy in one pass over the logits each way: nothing of the size of the logits is kept
 * but the logits themselves. Rows are divided among the threads; the sum over rows is serial.
 */
#include <string.h>

#include "cpu_real.h"

#define GRAIN_ELEMENTS 8192
#define LANES          16

CPU_CLONES static real row_max(const real *x, int64_t n)
{
    real max[LANES], most = x[0];
    int64_t j = 0;
    for (int l = 0; l < LANES; l++)
        max[l] = x[0];
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            max[l] = x[j + l] > max[l] ? x[j + l] : max[l];
    for (; j < n; j++)
        most = x[j] > most ? x[j] : most;
    for (int l = 0; l < LANES; l++)
        most = max[l] > most ? max[l] : most;
    return most;
}

/* log sum exp(x - max), the exponentials added up in LANES partial sums. */
CPU_CLONES real CPU(row_log_sum)(const real *x, int64_t n, real *ret_max)
{
    real sum[LANES] = {0}, max = row_max(x, n), total = 0;
    int64_t j = 0;
    *ret_max = max;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += vm_exp(x[j + l] - max);
    for (int l = 0; j < n; j++, l++)
        sum[l] += vm_exp(x[j] - max);
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return log(total);
}

static void log_sums(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->in[0]->dims[1];
    real *max = out_real(c, 1), *sum = max + c->in[0]->dims[0];
    for (int64_t i = from; i < to; i++) {
        max[i] = 0;
        sum[i] = c->a.log_probs ? 0 : CPU(row_log_sum)(in_real(c, 0) + i * n, n, &max[i]);
    }
}

static double row_loss(const struct det_call *c, int64_t i)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], t = in_i64(c, 1)[i];
    const real *x = in_real(c, 0) + i * n, *w = in_real(c, 2);
    double lse = (double)out_real(c, 1)[i] + out_real(c, 1)[m + i];
    double smooth = c->a.smoothing, all = 0;
    double loss = (1 - smooth) * (w ? w[t] : 1) * (lse - x[t]);
    for (int64_t j = 0; smooth > 0 && j < n; j++)
        all += (w ? w[j] : 1) * (lse - x[j]);
    return loss + smooth / (double)n * all;
}

int CPU(cross_entropy)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const real *w = in_real(c, 2);
    double total = 0, count = 0;
    int rc = ref_check_targets(c, n, err);
    if (rc < 0)
        return rc;
    cpu_parallel(cpu_device(s)->threads, m, 1 + GRAIN_ELEMENTS / n, log_sums, c);
    for (int64_t i = 0; i < m; i++) {
        int64_t t = in_i64(c, 1)[i];
        double loss = t == c->a.skip ? 0 : row_loss(c, i);
        count += t == c->a.skip ? 0 : w ? w[t] : 1;
        total += loss;
        if (c->a.mode == DET_REDUCE_NONE)
            out_real(c, 0)[i] = (real)loss;
    }
    out_real(c, 2)[0] = (real)count;
    if (c->a.mode != DET_REDUCE_NONE)
        out_real(c, 0)[0] = (real)(c->a.mode == DET_REDUCE_MEAN ? total / count : total);
    return 0;
}

/* dx = dy (softmax(x) - onehot(t)): the case without weights and smoothing. */
CPU_CLONES static void backward_row(const real *x, int64_t n, real max, real sum, real dy, real *dx)
{
    for (int64_t j = 0; j < n; j++)
        dx[j] = dy * vm_exp(x[j] - max - sum);
}

static void backward_rows(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->in[1]->dims[1];
    const real *max = in_real(c, 4), *sum = max + c->in[1]->dims[0];
    const int64_t *target = (const int64_t *)(const void *)c->in[2]->data;
    for (int64_t i = from; i < to; i++) {
        real dy = in_real(c, 0)[c->a.mode == DET_REDUCE_NONE ? i : 0], *dx = out_real(c, 0) + i * n;
        dy = c->a.mode == DET_REDUCE_MEAN ? dy / in_real(c, 5)[0] : dy;
        if (target[i] == c->a.skip) {
            memset(dx, 0, (size_t)n * sizeof *dx);
            continue;
        }
        backward_row(in_real(c, 1) + i * n, n, max[i], sum[i], dy, dx);
        dx[target[i]] -= dy;
    }
}

int CPU(cross_entropy_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[1]->dims[0], n = c->in[1]->dims[1];
    if (c->in[3] || c->a.smoothing > 0 || c->a.log_probs)
        return REF(cross_entropy_bwd)(s, c, err);
    cpu_parallel(cpu_device(s)->threads, m, 1 + GRAIN_ELEMENTS / n, backward_rows, c);
    return 0;
}
