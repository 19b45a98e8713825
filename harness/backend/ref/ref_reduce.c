/* Losses and reductions. */
#include "ref_real.h"

#include <math.h>

#include <string.h>

/* Sums blocks of this many elements, then the blocks: the order never depends on threads. */
#define BLOCK 4096

static double sum_of(const real *x, size_t n, bool squares)
{
    double total = 0;
    for (size_t from = 0; from < n; from += BLOCK) {
        size_t to = from + BLOCK < n ? from + BLOCK : n;
        double sum = 0;
        for (size_t i = from; i < to; i++)
            sum += squares ? (double)x[i] * x[i] : x[i];
        total += sum;
    }
    return total;
}

static int check_target(const struct det_tensor *target, int64_t classes, struct det_err *err)
{
    const int64_t *t = (const int64_t *)(const void *)target->data;
    for (size_t i = 0; i < target->numel; i++)
        if (t[i] < 0 || t[i] >= classes)
            return ref_no_class(i, t[i], classes, err);
    return 0;
}

REF_KERNEL(nll)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const real *x = in_real(c, 0);
    double sum = 0;
    int rc = check_target(c->in[1], n, err);
    if (rc < 0)
        return rc;
    for (int64_t i = 0; i < m; i++)
        sum -= x[i * n + in_i64(c, 1)[i]];
    out_real(c, 0)[0] = (real)(sum / (double)m);
    return 0;
}

REF_KERNEL(nll_bwd)
{
    (void)s, (void)err;
    int64_t m = c->out[0]->dims[0], n = c->out[0]->dims[1];
    real *dx = out_real(c, 0);
    memset(dx, 0, c->out[0]->numel * sizeof *dx);
    for (int64_t i = 0; i < m; i++)
        dx[i * n + in_i64(c, 1)[i]] = -in_real(c, 0)[0] / (real)m;
    return 0;
}

REF_KERNEL(mse)
{
    (void)s, (void)err;
    const real *x = in_real(c, 0), *t = in_real(c, 1);
    double sum = 0;
    for (size_t i = 0; i < c->in[0]->numel; i++)
        sum += ((double)x[i] - t[i]) * ((double)x[i] - t[i]);
    out_real(c, 0)[0] = (real)(sum / (double)c->in[0]->numel);
    return 0;
}

REF_KERNEL(mse_bwd)
{
    (void)s, (void)err;
    const real *x = in_real(c, 1), *t = in_real(c, 2);
    real *dx = out_real(c, 0), scale = 2 * in_real(c, 0)[0] / (real)c->out[0]->numel;
    for (size_t i = 0; i < c->out[0]->numel; i++)
        dx[i] = scale * (x[i] - t[i]);
    return 0;
}

REF_KERNEL(sum)
{
    (void)s, (void)err;
    out_real(c, 0)[0] = (real)(c->a.scale * sum_of(in_real(c, 0), c->in[0]->numel, false));
    return 0;
}

REF_KERNEL(sum_bwd)
{
    (void)s, (void)err;
    real *dx = out_real(c, 0), v = (real)c->a.scale * in_real(c, 0)[0];
    for (size_t i = 0; i < c->out[0]->numel; i++)
        dx[i] = v;
    return 0;
}

REF_KERNEL(sqnorm)
{
    (void)s, (void)err;
    out_real(c, 0)[0] = (real)sum_of(in_real(c, 0), c->in[0]->numel, true);
    return 0;
}

REF_KERNEL(absmax)
{
    (void)s, (void)err;
    const real *x = in_real(c, 0);
    real most = 0;
    for (size_t i = 0; i < c->in[0]->numel && most == most; i++) {
        real v = fabs(x[i]);
        most = v <= most ? most : v; /* a NaN is taken, and ends the loop */
    }
    out_real(c, 0)[0] = most;
    return 0;
}

REF_KERNEL(limit)
{
    (void)s, (void)err;
    real *x = out_real(c, 0);
    double factor = c->a.hi / ((double)in_real(c, 0)[0] + c->a.eps);
    for (size_t i = 0; i < c->out[0]->numel && !(factor >= 1); i++)
        x[i] *= (real)factor;
    return 0;
}

REF_KERNEL(argmax)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    int64_t *y = (int64_t *)(void *)c->out[0]->data;
    for (int64_t i = 0; i < m; i++) {
        const real *x = in_real(c, 0) + i * n;
        y[i] = 0;
        for (int64_t j = 1; j < n; j++)
            if (x[j] > x[y[i]])
                y[i] = j;
    }
    return 0;
}
