/* Scaled dot-product attention (Vaswani et al. 2017) and its gradient, row by row, in double. */
#include "ref_attention.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "rng.h"

void REF(attention_keep)(const struct attention *a, int64_t row, real *keep)
{
    const struct det_attrs *attrs = &a->c->a;
    uint32_t draw[4];
    uint64_t first = (uint64_t)(row * a->keys);
    float p = (float)attrs->p; /* so that every dtype drops the same */
    real scale = (real)(1 / (1 - attrs->p));
    for (uint64_t s = 0; s < (uint64_t)a->keys; s++) {
        uint64_t i = first + s;
        if (s == 0 || i % 4 == 0)
            philox4x32(attrs->seed, attrs->call, i / 4, draw);
        keep[s] = (float)(draw[i % 4] >> 8) * 0x1p-24f >= p ? scale : 0;
    }
}

static double dot(struct head a, int64_t i, struct head b, int64_t j, int64_t n)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++)
        sum += (double)a.p[i * a.step + d] * b.p[j * b.step + d];
    return sum;
}

/* One row of one head on its way. */
struct row {
    const struct attention *a;
    int64_t b, h, t;
    double *weights; /* [S] */
    real *keep;      /* [S]; NULL: no dropout */
};

/* Of all heads. */
static int64_t rows_of(const struct attention *a)
{
    return a->batch * a->heads * a->time;
}

static int64_t row_index(const struct row *r)
{
    return (r->b * r->a->heads + r->h) * r->a->time + r->t;
}

/* The scores of the row, -inf where the future is hidden. Beside a mask's large numbers they lose
 * their digits as in every other backend. */
static void score_row(const struct row *r, struct head q, struct head k,
                      const struct det_tensor *mask)
{
    const struct attention *a = r->a;
    const real *m = mask_row(a, mask, r->b, r->h, r->t);
    for (int64_t s = 0; s < a->keys; s++) {
        double x = a->c->a.scale * dot(q, r->t, k, s, a->width);
        r->weights[s] = m ? (real)(x + m[s]) : x;
        if (a->c->a.causal && s > r->t)
            r->weights[s] = -INFINITY;
    }
    if (r->keep)
        REF(attention_keep)(a, row_index(r), r->keep);
}

/* x becomes exp(x - the greatest), over whose sum it is to be. */
static double to_weights(double *x, int64_t n, real *max)
{
    double sum = 0;
    *max = (real)x[0];
    for (int64_t s = 1; s < n; s++)
        *max = x[s] > *max ? (real)x[s] : *max;
    for (int64_t s = 0; s < n; s++)
        sum += x[s] = exp(x[s] - *max);
    return sum;
}

static void forward_row(const struct row *r)
{
    const struct attention *a = r->a;
    const struct det_call *c = a->c;
    struct head q = head_in(a, c->in[0], 0, r->b, r->h), y = head_out(a, c->out[0], r->b, r->h);
    struct head k = head_in(a, a->packed ? c->in[0] : c->in[1], 1, r->b, r->h);
    struct head v = head_in(a, a->packed ? c->in[0] : c->in[2], 2, r->b, r->h);
    score_row(r, q, k, c->in[3]);
    real *max = out_real(c, 1) + row_index(r);
    double total = to_weights(r->weights, a->keys, max);
    max[rows_of(a)] = (real)log(total);
    for (int64_t d = 0; d < a->width; d++) {
        double sum = 0;
        for (int64_t s = 0; s < a->keys; s++)
            sum += r->weights[s] * (r->keep ? r->keep[s] : 1) * v.p[s * v.step + d];
        y.p[r->t * y.step + d] = (real)(sum / total);
    }
}

static void backward_row(const struct row *r)
{
    const struct attention *a = r->a;
    const struct det_call *c = a->c;
    int kv = a->packed ? 1 : 2, vv = a->packed ? 1 : 3, dk = a->packed ? 0 : 1,
        dv = a->packed ? 0 : 2;
    struct head q = head_in(a, c->in[1], 0, r->b, r->h), k = head_in(a, c->in[kv], 1, r->b, r->h);
    struct head v = head_in(a, c->in[vv], 2, r->b, r->h), dy = head_out(a, c->in[0], r->b, r->h);
    struct head gq = head_in(a, c->out[0], 0, r->b, r->h);
    struct head gk = head_in(a, c->out[dk], 1, r->b, r->h);
    struct head gv = head_in(a, c->out[dv], 2, r->b, r->h);
    const real *max = in_real(c, 5) + row_index(r);
    double log_sum = max[rows_of(a)], delta = 0;
    score_row(r, q, k, c->in[4]);
    for (int64_t s = 0; s < a->keys; s++) {
        r->weights[s] = exp(r->weights[s] - *max - log_sum);
        delta += r->weights[s] * (r->keep ? r->keep[s] : 1) * dot(dy, r->t, v, s, a->width);
    }
    for (int64_t s = 0; s < a->keys; s++) {
        double keep = r->keep ? r->keep[s] : 1, g = keep * dot(dy, r->t, v, s, a->width);
        double ds = r->weights[s] * (g - delta) * c->a.scale;
        for (int64_t d = 0; d < a->width; d++) {
            gq.p[r->t * gq.step + d] += (real)(ds * k.p[s * k.step + d]);
            gk.p[s * gk.step + d] += (real)(ds * q.p[r->t * q.step + d]);
            gv.p[s * gv.step + d] += (real)(r->weights[s] * keep * dy.p[r->t * dy.step + d]);
        }
    }
}

static void all_rows(const struct attention *a, void (*fn)(const struct row *r))
{
    det_cleanup(freep) double *weights = det_alloc((size_t)a->keys * sizeof *weights + 1);
    det_cleanup(freep) real *keep = det_alloc((size_t)a->keys * sizeof *keep + 1);
    struct row r = {.a = a, .weights = weights, .keep = a->c->a.p > 0 ? keep : NULL};
    for (r.b = 0; r.b < a->batch; r.b++)
        for (r.h = 0; r.h < a->heads; r.h++)
            for (r.t = 0; r.t < a->time; r.t++)
                fn(&r);
}

REF_KERNEL(attention)
{
    (void)s, (void)err;
    struct attention a = attention_of(c, 0);
    all_rows(&a, forward_row);
    return 0;
}

REF_KERNEL(attention_bwd)
{
    (void)s, (void)err;
    struct attention a = attention_of(c, 1);
    for (int i = 0; i < 3; i++)
        if (c->out[i])
            memset(c->out[i]->data, 0, c->out[i]->numel * sizeof(real));
    all_rows(&a, backward_row);
    return 0;
}
