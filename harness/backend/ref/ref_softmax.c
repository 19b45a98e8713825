/* Softmax over rows; the row's maximum is subtracted first (Goodfellow et al. 2016, 4.1). */
#include "ref.h"

#include <math.h>

static double row_log_sum(const float *x, int64_t n)
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
        const float *x = in_f32(c, 0) + i * n;
        float *y = out_f32(c, 0) + i * n;
        double lse = row_log_sum(x, n);
        for (int64_t j = 0; j < n; j++)
            y[j] = (float)(logarithm ? x[j] - lse : exp(x[j] - lse));
    }
    return 0;
}

int ref_log_softmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    return softmax(c, true);
}

int ref_softmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    return softmax(c, false);
}

int ref_log_softmax_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    for (int64_t i = 0; i < m; i++) {
        const float *dy = in_f32(c, 0) + i * n, *y = in_f32(c, 1) + i * n;
        float *dx = out_f32(c, 0) + i * n;
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += dy[j];
        for (int64_t j = 0; j < n; j++)
            dx[j] = (float)(dy[j] - exp(y[j]) * sum);
    }
    return 0;
}

int ref_softmax_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    for (int64_t i = 0; i < m; i++) {
        const float *dy = in_f32(c, 0) + i * n, *y = in_f32(c, 1) + i * n;
        float *dx = out_f32(c, 0) + i * n;
        double dot = 0;
        for (int64_t j = 0; j < n; j++)
            dot += (double)dy[j] * y[j];
        for (int64_t j = 0; j < n; j++)
            dx[j] = (float)(y[j] * (dy[j] - dot));
    }
    return 0;
}
