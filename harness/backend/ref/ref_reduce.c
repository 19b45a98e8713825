/* Losses and reductions. */
#include "ref.h"

#include <math.h>

#include <inttypes.h>
#include <string.h>

/* Sums blocks of this many elements, then the blocks: the order never depends on threads. */
#define BLOCK 4096

static double sum_of(const float *x, size_t n, bool squares)
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
            return det_fail(err, DET_EINVAL,
                            "target %zu is class %" PRId64
                            ", but there are the classes 0 to %" PRId64
                            ": check the labels or the size of the last layer",
                            i, t[i], classes - 1);
    return 0;
}

int ref_nll(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const float *x = in_f32(c, 0);
    double sum = 0;
    int rc = check_target(c->in[1], n, err);
    if (rc < 0)
        return rc;
    for (int64_t i = 0; i < m; i++)
        sum -= x[i * n + in_i64(c, 1)[i]];
    out_f32(c, 0)[0] = (float)(sum / (double)m);
    return 0;
}

int ref_nll_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->out[0]->dims[0], n = c->out[0]->dims[1];
    float *dx = out_f32(c, 0);
    memset(dx, 0, c->out[0]->numel * sizeof *dx);
    for (int64_t i = 0; i < m; i++)
        dx[i * n + in_i64(c, 1)[i]] = -in_f32(c, 0)[0] / (float)m;
    return 0;
}

int ref_mse(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const float *x = in_f32(c, 0), *t = in_f32(c, 1);
    double sum = 0;
    for (size_t i = 0; i < c->in[0]->numel; i++)
        sum += ((double)x[i] - t[i]) * ((double)x[i] - t[i]);
    out_f32(c, 0)[0] = (float)(sum / (double)c->in[0]->numel);
    return 0;
}

int ref_mse_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const float *x = in_f32(c, 1), *t = in_f32(c, 2);
    float *dx = out_f32(c, 0), scale = 2 * in_f32(c, 0)[0] / (float)c->out[0]->numel;
    for (size_t i = 0; i < c->out[0]->numel; i++)
        dx[i] = scale * (x[i] - t[i]);
    return 0;
}

int ref_sum(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    out_f32(c, 0)[0] = (float)(c->a.scale * sum_of(in_f32(c, 0), c->in[0]->numel, false));
    return 0;
}

int ref_sum_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    float *dx = out_f32(c, 0), v = (float)c->a.scale * in_f32(c, 0)[0];
    for (size_t i = 0; i < c->out[0]->numel; i++)
        dx[i] = v;
    return 0;
}

int ref_sqnorm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    out_f32(c, 0)[0] = (float)sum_of(in_f32(c, 0), c->in[0]->numel, true);
    return 0;
}

int ref_absmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const float *x = in_f32(c, 0);
    float most = 0;
    for (size_t i = 0; i < c->in[0]->numel && most == most; i++) {
        float v = fabsf(x[i]);
        most = v <= most ? most : v; /* a NaN is taken, and ends the loop */
    }
    out_f32(c, 0)[0] = most;
    return 0;
}

int ref_argmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    int64_t *y = (int64_t *)(void *)c->out[0]->data;
    for (int64_t i = 0; i < m; i++) {
        const float *x = in_f32(c, 0) + i * n;
        y[i] = 0;
        for (int64_t j = 1; j < n; j++)
            if (x[j] > x[y[i]])
                y[i] = j;
    }
    return 0;
}

int ref_eq_count(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    size_t size = det_dtype_size(c->in[0]->dtype), equal = 0;
    for (size_t i = 0; i < c->in[0]->numel; i++)
        equal += memcmp(c->in[0]->data + i * size, c->in[1]->data + i * size, size) == 0;
    out_f32(c, 0)[0] = (float)equal;
    return 0;
}
