/* Reductions and running sums over the middle dimension of [A, N, B]; sums in double. */
#include "ref_reduce.h"

#include <math.h>

/* One column: its first element, the distance between elements, how many there are. */
struct column {
    int64_t first, step, n;
};

static struct column column(const struct det_tensor *x, int64_t i)
{
    int64_t n = x->dims[1], b = x->dims[2];
    return (struct column){i / b * n * b + i % b, b, n};
}

static double sum(const float *x, struct column c)
{
    double total = 0;
    for (int64_t j = 0; j < c.n; j++)
        total += x[c.first + j * c.step];
    return total;
}

static double product(const float *x, struct column c)
{
    double total = 1;
    for (int64_t j = 0; j < c.n; j++)
        total *= x[c.first + j * c.step];
    return total;
}

/* The first of equals; a NaN is greater and less than all, as in PyTorch. */
static int64_t extreme(const float *x, struct column c, double sign)
{
    int64_t at = 0;
    for (int64_t j = 1; j < c.n; j++) {
        double v = sign * x[c.first + j * c.step], best = sign * x[c.first + at * c.step];
        if (v > best || (isnan(v) && !isnan(best)))
            at = j;
    }
    return at;
}

void ref_reduce_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    const float *x = in_f32(c, 0);
    for (int64_t i = from; i < to; i++) {
        struct column k = column(c->in[0], i);
        int64_t at = 0;
        if (c->a.mode == DET_REDUCE_DIM_SUM) {
            out_f32(c, 0)[i] = (float)(c->a.scale * sum(x, k));
            continue;
        }
        if (c->a.mode == DET_REDUCE_DIM_PROD) {
            out_f32(c, 0)[i] = (float)product(x, k);
            continue;
        }
        at = extreme(x, k, c->a.mode == DET_REDUCE_DIM_MAX ? 1 : -1);
        out_f32(c, 0)[i] = x[k.first + at * k.step];
        ((int64_t *)(void *)c->out[1]->data)[i] = at;
    }
}

int ref_reduce(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_reduce_range(c, 0, (int64_t)c->out[0]->numel);
    return 0;
}

/* Each element's gradient is dy times the product of the others: those before it from the left,
 * those after it from the right, so that zeros need no division. */
static void product_back(const float *x, struct column k, float dy, float *dx)
{
    double before = 1, after = 1;
    for (int64_t j = 0; j < k.n; j++) {
        dx[k.first + j * k.step] = (float)before;
        before *= x[k.first + j * k.step];
    }
    for (int64_t j = k.n - 1; j >= 0; j--) {
        int64_t i = k.first + j * k.step;
        dx[i] = (float)(dx[i] * after * dy);
        after *= x[i];
    }
}

void ref_reduce_bwd_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    float *dx = out_f32(c, 0);
    for (int64_t i = from; i < to; i++) {
        struct column k = column(c->out[0], i);
        float dy = in_f32(c, 0)[i];
        if (c->a.mode == DET_REDUCE_DIM_PROD) {
            product_back(in_f32(c, 1), k, dy, dx);
            continue;
        }
        bool all = c->a.mode == DET_REDUCE_DIM_SUM;
        int64_t at = all ? 0 : ((const int64_t *)(const void *)c->in[2]->data)[i];
        for (int64_t j = 0; j < k.n; j++)
            dx[k.first + j * k.step] = all ? (float)c->a.scale * dy : j == at ? dy : 0;
    }
}

int ref_reduce_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_reduce_bwd_range(c, 0, (int64_t)c->in[0]->numel);
    return 0;
}

void ref_cumsum_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    for (int64_t i = from; i < to; i++) {
        struct column k = column(c->in[0], i);
        double total = 0;
        for (int64_t j = 0; j < k.n; j++) {
            int64_t at = k.first + (c->a.reverse ? k.n - 1 - j : j) * k.step;
            total += in_f32(c, 0)[at];
            out_f32(c, 0)[at] = (float)total;
        }
    }
}

int ref_cumsum(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_cumsum_range(c, 0, c->in[0]->dims[0] * c->in[0]->dims[2]);
    return 0;
}
