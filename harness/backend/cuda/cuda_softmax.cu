/* Softmax over rows; the row's maximum is subtracted first (Goodfellow et al. 2016, 4.1). */
#include "cuda_row.cuh"

static int softmax(struct det_stream *s, const struct det_call *c, bool log, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0);
    return cuda_blocks(
        s, c, n > 0 ? m : 0,
        DEVICE(int64_t row) {
            const float *xr = x + row * n;
            double lse = cuda_row_log_sum(xr, n);
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
                float v = (float)(xr[j] - lse);
                y[row * n + j] = log ? v : expf(v);
            }
        },
        err);
}

int cuda_log_softmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return softmax(s, c, true, err);
}

int cuda_softmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return softmax(s, c, false, err);
}

static int softmax_bwd(struct det_stream *s, const struct det_call *c, bool log,
                       struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const float *dy = in_f32(c, 0), *y = in_f32(c, 1);
    float *dx = out_f32(c, 0);
    return cuda_blocks(
        s, c, m,
        DEVICE(int64_t row) {
            const float *d = dy + row * n, *yr = y + row * n;
            double sum = 0;
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
                sum += log ? d[j] : (double)d[j] * yr[j];
            sum = cuda_combine(sum, cuda_plus());
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
                dx[row * n + j] = (float)(log ? d[j] - expf(yr[j]) * sum : yr[j] * (d[j] - sum));
        },
        err);
}

int cuda_log_softmax_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return softmax_bwd(s, c, true, err);
}

int cuda_softmax_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return softmax_bwd(s, c, false, err);
}
