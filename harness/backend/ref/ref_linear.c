/* y = x w^T + b and its gradients; x [M,K], w [N,K], y [M,N]. Sums are in double. */
#include "ref.h"

int ref_linear(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[0];
    const float *x = in_f32(c, 0), *w = in_f32(c, 1), *b = in_f32(c, 2);
    float *y = out_f32(c, 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = b ? b[j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)x[i * k + l] * w[j * k + l];
            y[i * n + j] = (float)sum;
        }
    return 0;
}

int ref_linear_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], k = c->in[1]->dims[1];
    const float *dy = in_f32(c, 0), *w = in_f32(c, 1);
    float *dx = out_f32(c, 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += (double)dy[i * n + j] * w[j * k + l];
            dx[i * k + l] = (float)sum;
        }
    return 0;
}

int ref_linear_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[1];
    const float *x = in_f32(c, 0), *dy = in_f32(c, 1);
    float *dw = out_f32(c, 0), *db = out_f32(c, 1);
    for (int64_t j = 0; j < n; j++) {
        double bias = 0;
        for (int64_t i = 0; i < m; i++)
            bias += dy[i * n + j];
        if (db)
            db[j] = (float)bias;
        for (int64_t l = 0; l < k; l++) {
            double sum = 0;
            for (int64_t i = 0; i < m; i++)
                sum += (double)dy[i * n + j] * x[i * k + l];
            dw[j * k + l] = (float)sum;
        }
    }
    return 0;
}
