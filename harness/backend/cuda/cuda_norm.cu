/* Layer norm (Ba et al. 2016), RMS norm (Zhang & Sennrich 2019) and batch norm (Ioffe & Szegedy
 * 2015): sums in double, one block for a row or a channel. */
#include "cuda_kernel.cuh"

/* Elements first, first + step, ... n of them: their mean, and the mean square of what is left. */
template <typename T>
__device__ static double mean_of(const T *x, int64_t step, int64_t n)
{
    double sum = 0;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
        sum += x[j * step];
    return cuda_combine(sum, cuda_plus()) / (double)n;
}

template <typename T>
__device__ static double square_of(const T *x, int64_t step, int64_t n, double mean)
{
    double sum = 0;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
        sum += (x[j * step] - mean) * (x[j * step] - mean);
    return cuda_combine(sum, cuda_plus()) / (double)n;
}

template <typename T>
static int layer_norm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->in[0]->dims[1];
    const T *x = in_real<T>(c, 0), *w = in_real<T>(c, 1), *b = in_real<T>(c, 2);
    T *y = out_real<T>(c, 0), *means = out_real<T>(c, 1), *invstds = out_real<T>(c, 2);
    double eps = c->a.eps;
    bool rms = c->a.rms;
    return cuda_blocks(
        s, c, n > 0 ? c->in[0]->dims[0] : 0,
        DEVICE(int64_t row) {
            const T *xr = x + row * n;
            double mean = rms ? 0 : mean_of(xr, 1, n);
            double invstd = 1 / sqrt(square_of(xr, 1, n, mean) + eps);
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
                y[row * n + j] =
                    (T)((xr[j] - mean) * invstd * (w ? w[j] : 1) + (b ? b[j] : 0));
            if (threadIdx.x == 0) {
                means[row] = (T)mean;
                invstds[row] = (T)invstd;
            }
        },
        err);
}
CUDA_REAL(layer_norm)

template <typename T>
static int layer_norm_dx(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->in[1]->dims[1];
    const T *dy = in_real<T>(c, 0), *x = in_real<T>(c, 1), *w = in_real<T>(c, 2);
    const T *means = in_real<T>(c, 3), *invstds = in_real<T>(c, 4);
    T *dx = out_real<T>(c, 0);
    bool rms = c->a.rms;
    return cuda_blocks(
        s, c, c->in[1]->dims[0],
        DEVICE(int64_t row) {
            double mean = means[row], invstd = invstds[row], sum = 0, dot = 0;
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
                double g = (double)dy[row * n + j] * (w ? w[j] : 1);
                sum += g;
                dot += g * (x[row * n + j] - mean) * invstd;
            }
            sum = cuda_combine(sum, cuda_plus());
            dot = cuda_combine(dot, cuda_plus());
            sum = rms ? 0 : sum / (double)n;
            for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
                double g = (double)dy[row * n + j] * (w ? w[j] : 1);
                double xhat = (x[row * n + j] - mean) * invstd;
                dx[row * n + j] = (T)(invstd * (g - sum - xhat * dot / (double)n));
            }
        },
        err);
}

template <typename T>
static int layer_norm_dw(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[1]->dims[0], n = c->in[1]->dims[1];
    const T *dy = in_real<T>(c, 0), *x = in_real<T>(c, 1);
    const T *mean = in_real<T>(c, 3), *invstd = in_real<T>(c, 4);
    T *dw = out_real<T>(c, 1), *db = out_real<T>(c, 2);
    return cuda_columns(
        s, c, n, m,
        [=] __device__(int64_t j, auto team) {
            double w = 0, b = 0;
            for (int64_t i = team.first(); i < m; i += team.step()) {
                w += (double)dy[i * n + j] * (x[i * n + j] - mean[i]) * invstd[i];
                b += dy[i * n + j];
            }
            w = team.combine(w, cuda_plus());
            b = team.combine(b, cuda_plus());
            if (team.leader() && dw)
                dw[j] = (T)w;
            if (team.leader() && db)
                db[j] = (T)b;
        },
        err);
}

template <typename T>
static int layer_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int rc = c->out[0] ? layer_norm_dx<T>(s, c, err) : 0;
    if (rc == 0 && (c->out[1] || c->out[2]))
        rc = layer_norm_dw<T>(s, c, err);
    return rc;
}
CUDA_REAL(layer_norm_bwd)

/* y of the channels' mean and invstd, which are in out 1 and 2. */
template <typename T>
static int normalise(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t channels = c->in[0]->dims[1];
    const T *x = in_real<T>(c, 0), *w = in_real<T>(c, 1), *b = in_real<T>(c, 2);
    const T *more = in_real<T>(c, 5);
    const T *mean = out_real<T>(c, 1), *invstd = out_real<T>(c, 2);
    T *y = out_real<T>(c, 0);
    bool relu = c->a.relu;
    return cuda_each(
        s, c, (int64_t)c->in[0]->numel,
        DEVICE(int64_t i) {
            int64_t ch = i - cuda_div(i, channels) * channels;
            T v = (x[i] - mean[ch]) * invstd[ch] * w[ch] + b[ch] + (more ? more[i] : 0);
            y[i] = relu && v < 0 ? 0 : v;
        },
        err);
}

template <typename T>
static int batch_norm_train(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t channels = c->in[0]->dims[1], n = (int64_t)c->in[0]->numel / (channels ? channels : 1);
    const T *x = in_real<T>(c, 0);
    T *means = out_real<T>(c, 1), *invstds = out_real<T>(c, 2);
    T *running_mean = out_real<T>(c, 3), *running_var = out_real<T>(c, 4);
    double eps = c->a.eps, momentum = c->a.momentum;
    int rc = cuda_blocks(
        s, c, channels,
        DEVICE(int64_t ch) {
            double mean = mean_of(x + ch, channels, n), var = square_of(x + ch, channels, n, mean);
            double whole = n > 1 ? var * (double)n / (double)(n - 1) : var;
            if (threadIdx.x != 0)
                return;
            means[ch] = (T)mean;
            invstds[ch] = (T)(1 / sqrt(var + eps));
            running_mean[ch] = (T)((1 - momentum) * running_mean[ch] + momentum * mean);
            running_var[ch] = (T)((1 - momentum) * running_var[ch] + momentum * whole);
        },
        err);
    return rc < 0 ? rc : normalise<T>(s, c, err);
}
CUDA_REAL(batch_norm_train)

template <typename T>
static int batch_norm_eval(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *mean = in_real<T>(c, 3), *var = in_real<T>(c, 4);
    T *means = out_real<T>(c, 1), *invstds = out_real<T>(c, 2);
    double eps = c->a.eps;
    int rc = cuda_each(
        s, c, c->in[0]->dims[1],
        DEVICE(int64_t ch) {
            means[ch] = mean[ch];
            invstds[ch] = (T)(1 / sqrt(var[ch] + eps));
        },
        err);
    return rc < 0 ? rc : normalise<T>(s, c, err);
}
CUDA_REAL(batch_norm_eval)

/* What of the gradient passed the ReLU. */
template <typename T>
struct passed {
    const T *dy, *y; /* y: NULL, or what a ReLU left */
    __device__ T operator()(int64_t i) const { return y && y[i] <= 0 ? 0 : dy[i]; }
};

template <typename T>
static int batch_norm_sums(struct det_stream *s, const struct det_call *c, passed<T> g,
                           struct det_err *err)
{
    int64_t channels = c->in[1]->dims[1], n = (int64_t)c->in[1]->numel / (channels ? channels : 1);
    const T *x = in_real<T>(c, 1), *mean = in_real<T>(c, 4), *invstd = in_real<T>(c, 5);
    T *dw = out_real<T>(c, 1), *db = out_real<T>(c, 2);
    return cuda_blocks(
        s, c, channels,
        DEVICE(int64_t ch) {
            double w = 0, b = 0;
            for (int64_t r = threadIdx.x; r < n; r += blockDim.x) {
                int64_t i = r * channels + ch;
                w += (double)g(i) * (x[i] - mean[ch]) * invstd[ch];
                b += g(i);
            }
            w = cuda_combine(w, cuda_plus());
            b = cuda_combine(b, cuda_plus());
            if (threadIdx.x != 0)
                return;
            dw[ch] = (T)w;
            db[ch] = (T)b;
        },
        err);
}

template <typename T>
static int batch_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t channels = c->in[1]->dims[1];
    passed<T> g = {in_real<T>(c, 0), c->a.relu ? in_real<T>(c, 2) : NULL};
    int rc = batch_norm_sums(s, c, g, err);
    const T *x = in_real<T>(c, 1), *w = in_real<T>(c, 3);
    const T *mean = in_real<T>(c, 4), *invstd = in_real<T>(c, 5);
    const T *dw = out_real<T>(c, 1), *db = out_real<T>(c, 2);
    T *dx = out_real<T>(c, 0), *dr = out_real<T>(c, 3);
    T n = (T)(c->in[1]->numel / (size_t)(channels ? channels : 1));
    bool train = c->a.train;
    if (rc < 0 || (!dx && !dr))
        return rc;
    return cuda_each(
        s, c, (int64_t)c->in[1]->numel,
        DEVICE(int64_t i) {
            int64_t ch = i - cuda_div(i, channels) * channels;
            T d = g(i), xhat = (x[i] - mean[ch]) * invstd[ch];
            if (dx)
                dx[i] = w[ch] * invstd[ch] * (d - (train ? (db[ch] + xhat * dw[ch]) / n : 0));
            if (dr)
                dr[i] = d;
        },
        err);
}
CUDA_REAL(batch_norm_bwd)
