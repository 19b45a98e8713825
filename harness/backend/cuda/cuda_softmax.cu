/* Softmax over rows; the row's maximum is subtracted first (Goodfellow et al. 2016, 4.1). */
#include "cuda_row.cuh"

template <typename T>
static int rows(struct det_stream *s, const struct det_call *c, bool log, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const T *x = in_real<T>(c, 0);
    T *y = out_real<T>(c, 0);
    return cuda_blocks(
        s, c, n > 0 ? m : 0,
        DEVICE(int64_t row) {
            const T *xr = x + row * n;
            T top = cuda_row_max(xr, n);
            double log_sum = cuda_row_log_sum(xr, n, top);
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
                T v = (T)((double)(xr[j] - top) - log_sum); /* top + log_sum would lose digits */
                y[row * n + j] = log ? v : exp(v);
            }
        },
        err);
}

template <typename T>
static int log_softmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return rows<T>(s, c, true, err);
}
CUDA_REAL(log_softmax)

template <typename T>
static int softmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return rows<T>(s, c, false, err);
}
CUDA_REAL(softmax)

template <typename T>
static int rows_bwd(struct det_stream *s, const struct det_call *c, bool log, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const T *dy = in_real<T>(c, 0), *y = in_real<T>(c, 1);
    T *dx = out_real<T>(c, 0);
    return cuda_blocks(
        s, c, m,
        DEVICE(int64_t row) {
            const T *d = dy + row * n, *yr = y + row * n;
            double sum = 0;
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
                sum += log ? d[j] : (double)d[j] * yr[j];
            sum = cuda_combine(sum, cuda_plus());
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
                dx[row * n + j] = (T)(log ? d[j] - exp(yr[j]) * sum : yr[j] * (d[j] - sum));
        },
        err);
}

template <typename T>
static int log_softmax_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return rows_bwd<T>(s, c, true, err);
}
CUDA_REAL(log_softmax_bwd)

template <typename T>
static int softmax_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return rows_bwd<T>(s, c, false, err);
}
CUDA_REAL(softmax_bwd)
