/* Losses of classes and of whole tensors, and their gradients. A class out of range sets *bad,
 * which the stream's next synchronisation reports. */
#include "cuda_row.cuh"
#include "cuda_total.cuh"

template <typename T>
static int nll(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const T *x = in_real<T>(c, 0);
    const int64_t *target = in_i64(c, 1);
    int *bad = s->bad;
    auto loss = DEVICE(int64_t i) {
        int64_t t = target[i];
        if (t >= 0 && t < n)
            return -(double)x[i * n + t];
        *bad = 1;
        return 0.0;
    };
    return cuda_sum_of(s, c, m, loss, 1 / (double)m, out_real<T>(c, 0), err);
}
CUDA_REAL(nll)

template <typename T>
static int nll_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->out[0]->dims[0], n = c->out[0]->dims[1];
    const T *dy = in_real<T>(c, 0);
    const int64_t *target = in_i64(c, 1);
    T *dx = out_real<T>(c, 0);
    return cuda_each(
        s, c, m * n,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n);
            dx[i] = i - row * n == target[row] ? -*dy / (T)m : 0;
        },
        err);
}
CUDA_REAL(nll_bwd)

template <typename T>
static int mse(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *x = in_real<T>(c, 0), *t = in_real<T>(c, 1);
    int64_t n = (int64_t)c->in[0]->numel;
    return cuda_sum_of(
        s, c, n, DEVICE(int64_t i) { return ((double)x[i] - t[i]) * ((double)x[i] - t[i]); },
        1 / (double)n, out_real<T>(c, 0), err);
}
CUDA_REAL(mse)

template <typename T>
static int mse_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *dy = in_real<T>(c, 0), *x = in_real<T>(c, 1), *t = in_real<T>(c, 2);
    int64_t n = (int64_t)c->out[0]->numel;
    T *dx = out_real<T>(c, 0);
    return cuda_each(
        s, c, n, DEVICE(int64_t i) { dx[i] = 2 * *dy / (T)n * (x[i] - t[i]); }, err);
}
CUDA_REAL(mse_bwd)

/* The loss of a row, and what it counts. */
template <typename T>
struct cross {
    int64_t n, skip;
    double smoothing;
    bool log_probs;
    const T *x, *w;
    const int64_t *target;
    int *bad;
};

template <typename T>
static cross<T> cross_of(struct det_stream *s, const struct det_call *c, int first)
{
    return {c->in[first]->dims[1], c->a.skip,                c->a.smoothing,
            c->a.log_probs,        in_real<T>(c, first),     in_real<T>(c, first + 2),
            in_i64(c, first + 1),  s->bad};
}

template <typename T>
__device__ static T weight(const cross<T> &k, int64_t j)
{
    return k.w ? k.w[j] : 1;
}

/* The row's class, or -1 where it is left out. */
template <typename T>
__device__ static int64_t class_of(const cross<T> &k, int64_t row)
{
    int64_t t = k.target[row];
    if (t == k.skip)
        return -1;
    if (t >= 0 && t < k.n)
        return t;
    *k.bad = 1;
    return -1;
}

/* -log of the class's probability; log_sum is what the exponents sum to above the greatest. */
template <typename T>
__device__ static double surprise(T x, T top, double log_sum)
{
    return log_sum - (double)(x - top); /* top + log_sum first would lose digits */
}

/* The sum of w times their surprise over classes, by the whole block; 0: nothing is smoothed. */
template <typename T>
__device__ static double smoothed(const cross<T> &k, const T *x, T top, double log_sum)
{
    double all = 0;
    if (k.smoothing == 0)
        return 0;
    for (int64_t j = threadIdx.x; j < k.n; j += blockDim.x)
        all += weight(k, j) * surprise(x[j], top, log_sum);
    return cuda_combine(all, cuda_plus());
}

/* Row losses go to rows[0..m), what they count to rows[m..2m). */
template <typename T>
static int row_losses(struct det_stream *s, const struct det_call *c, double *rows,
                      struct det_err *err)
{
    cross<T> k = cross_of<T>(s, c, 0);
    int64_t m = c->in[0]->dims[0];
    T *sums = out_real<T>(c, 1);
    return cuda_blocks(
        s, c, m,
        DEVICE(int64_t row) {
            const T *x = k.x + row * k.n;
            T top = k.log_probs ? 0 : cuda_row_max(x, k.n);
            double sum = k.log_probs ? 0 : cuda_row_log_sum(x, k.n, top);
            double all = smoothed(k, x, top, sum);
            if (threadIdx.x != 0)
                return;
            int64_t t = class_of(k, row);
            double w = t < 0 ? 0 : weight(k, t);
            double loss = t < 0 ? 0 : (1 - k.smoothing) * w * surprise(x[t], top, sum);
            rows[row] = t < 0 ? 0 : loss + k.smoothing / (double)k.n * all;
            rows[m + row] = w;
            sums[row] = (T)sum;
        },
        err);
}

template <typename T>
static int cross_entropy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0];
    int mode = c->a.mode;
    T *y = out_real<T>(c, 0), *count = out_real<T>(c, 2);
    void *work = NULL;
    int rc = cuda_workspace(s->device, 2 * (size_t)m * sizeof(double) + 8, &work, err);
    double *rows = (double *)work;
    if (rc == 0)
        rc = row_losses<T>(s, c, rows, err);
    if (rc < 0)
        return rc;
    return cuda_blocks(
        s, c, 1,
        DEVICE(int64_t) {
            double total = 0, counted = 0;
            for (int64_t i = threadIdx.x; i < m; i += blockDim.x) {
                total += rows[i];
                counted += rows[m + i];
                if (mode == DET_REDUCE_NONE)
                    y[i] = (T)rows[i];
            }
            total = cuda_combine(total, cuda_plus());
            counted = cuda_combine(counted, cuda_plus());
            if (threadIdx.x != 0)
                return;
            *count = (T)counted;
            if (mode != DET_REDUCE_NONE)
                *y = (T)(mode == DET_REDUCE_MEAN ? total / counted : total);
        },
        err);
}
CUDA_REAL(cross_entropy)

/* d loss / dx_j = sum_c q_c w_c (p_j - [c = j]). */
template <typename T>
static int cross_entropy_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    cross<T> k = cross_of<T>(s, c, 1);
    const T *dys = in_real<T>(c, 0), *sums = in_real<T>(c, 4), *count = in_real<T>(c, 5);
    T *dx = out_real<T>(c, 0);
    int mode = c->a.mode;
    return cuda_blocks(
        s, c, c->in[1]->dims[0],
        DEVICE(int64_t row) {
            int64_t t = class_of(k, row);
            double smooth = k.smoothing / (double)k.n, sum_w = 0;
            for (int64_t j = threadIdx.x; smooth > 0 && j < k.n; j += blockDim.x)
                sum_w += weight(k, j);
            sum_w = cuda_combine(sum_w, cuda_plus());
            double dy = dys[mode == DET_REDUCE_NONE ? row : 0];
            T top = cuda_row_max(k.x + row * k.n, k.n);
            double hit = t < 0 ? 0 : (1 - k.smoothing) * weight(k, t);
            dy = mode == DET_REDUCE_MEAN ? dy / *count : dy;
            for (int64_t j = threadIdx.x; j < k.n; j += blockDim.x) {
                double p = k.log_probs ? 0 : exp((T)-surprise(k.x[row * k.n + j], top, sums[row]));
                double g = p * (hit + smooth * sum_w) - smooth * weight(k, j) - (j == t ? hit : 0);
                dx[row * k.n + j] = t < 0 ? 0 : (T)(dy * g);
            }
        },
        err);
}
CUDA_REAL(cross_entropy_bwd)
