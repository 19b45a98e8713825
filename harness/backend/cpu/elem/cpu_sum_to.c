/*
 * Sums over any dimensions. Outputs are cut into parts, never sums, so the bits do not depend on
 * the number of threads. Accumulates in double, up to BLOCK neighbouring outputs at a time.
 */
#include "cpu.h"

#include "ref.h"

#define BLOCK 256

struct dims {
    int n;
    int64_t size[DET_DIMS_MAX], x[DET_DIMS_MAX], y[DET_DIMS_MAX]; /* sizes and strides */
};

struct job {
    const struct det_call *c;
    struct dims kept, summed;
};

static void add_dim(struct dims *d, int64_t size, int64_t x, int64_t y)
{
    if (d->n > 0 && d->x[d->n - 1] == x * size && d->y[d->n - 1] == y * size) {
        d->size[d->n - 1] *= size;
        d->x[d->n - 1] = x;
        d->y[d->n - 1] = y;
        return;
    }
    d->size[d->n] = size;
    d->x[d->n] = x;
    d->y[d->n++] = y;
}

static void plan_sums(struct job *j, const struct det_tensor *x, const struct det_tensor *wide)
{
    for (int i = 0; i < x->ndim; i++)
        if (x->dims[i] != 1)
            add_dim(wide->strides[i] ? &j->kept : &j->summed, x->dims[i], x->strides[i],
                    wide->strides[i]);
    if (j->kept.n == 0)
        add_dim(&j->kept, 1, 0, 0);
    if (j->summed.n == 0)
        add_dim(&j->summed, 1, 0, 0);
}

/* Where element i of d lies in x and y; returns how many of its innermost dimension are left. */
static int64_t locate_element(const struct dims *d, int64_t i, int64_t *x, int64_t *y)
{
    int64_t left = d->size[d->n - 1] - i % d->size[d->n - 1];
    for (int k = d->n - 1; k >= 0; i /= d->size[k], k--) {
        *x += i % d->size[k] * d->x[k];
        *y += i % d->size[k] * d->y[k];
    }
    return left;
}

/* sum[0..n-1] += the m rows that begin at x. */
CPU_CLONES static void add_rows(const float *restrict x, int64_t m, int64_t row_step, int64_t n,
                                double *restrict sum)
{
    for (int64_t r = 0; r < m; r++, x += row_step)
        for (int64_t i = 0; i < n; i++)
            sum[i] += (double)x[i];
}

/* The sum of m elements in eight lanes. */
CPU_CLONES static double lanes_sum(const float *restrict x, int64_t m, int64_t step)
{
    double lane[8] = {0};
    int64_t r = 0;
    if (step == 1)
        for (; r + 8 <= m; r += 8)
            for (int k = 0; k < 8; k++)
                lane[k] += (double)x[r + k];
    for (; r < m; r++)
        lane[0] += (double)x[r * step];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void sum_block(const struct job *j, const float *x, int64_t n, double *sum)
{
    const struct dims *k = &j->kept, *d = &j->summed;
    int64_t total = 1, inner = d->size[d->n - 1], step = k->x[k->n - 1];
    for (int i = 0; i < d->n; i++)
        total *= d->size[i];
    for (int64_t at = 0; at < total; at += inner) {
        int64_t from = 0, unused = 0;
        locate_element(d, at, &from, &unused);
        if (step == 1)
            add_rows(x + from, inner, d->x[d->n - 1], n, sum);
        else
            for (int64_t i = 0; i < n; i++)
                sum[i] += lanes_sum(x + from + i * step, inner, d->x[d->n - 1]);
    }
}

static void sum_part(const void *arg, int64_t from, int64_t to)
{
    const struct job *j = arg;
    const struct dims *k = &j->kept;
    while (from < to) {
        double sum[BLOCK] = {0};
        int64_t x = 0, y = 0, n = locate_element(k, from, &x, &y);
        n = n < to - from ? n : to - from;
        n = n < BLOCK ? n : BLOCK;
        sum_block(j, in_f32(j->c, 0) + x, n, sum);
        for (int64_t i = 0; i < n; i++)
            out_f32(j->c, 0)[y + i * k->y[k->n - 1]] = (float)sum[i];
        from += n;
    }
}

int cpu_sum_to(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    struct det_tensor wide;
    struct job j = {.c = c};
    if (x->dtype != DET_F32 || y->dtype != DET_F32 || x->numel == 0)
        return ref_sum_to(s, c, err);
    det__broadcast(y, x->ndim, x->dims, &wide);
    plan_sums(&j, x, &wide);
    int64_t each = (int64_t)(x->numel / y->numel), grain = CPU_GRAIN / (each ? each : 1);
    cpu_parallel(cpu_device(s)->threads, (int64_t)y->numel, grain ? grain : 1, sum_part, &j);
    return 0;
}
