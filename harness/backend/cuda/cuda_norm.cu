/* Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019): one block for a row. */
#include "cuda_tile.cuh"

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

/* For each column the sums of dy, and of dy times the normalised x. */
template <typename X>
struct weight_slopes {
    typedef typename X::real real;
    struct raw {
        typename X::raw dy, x;
        real mean, invstd;
    };
    static constexpr int width = X::width, batch = 2, sums = 2;
    X dy, x;
    cuda_any<real> mean, invstd, dw, db;
    real sum[sums][width];

    __device__ void begin(int64_t, int64_t) {}
    __device__ raw load(int64_t at, int64_t row) const
    {
        return {dy.load(at), x.load(at), mean.load(row), invstd.load(row)};
    }
    __device__ void use(const raw &r, int64_t)
    {
        real d[width], v[width];
        X::open(r.dy, d);
        X::open(r.x, v);
        CUDA_UNROLL
        for (int i = 0; i < width; i++) {
            sum[0][i] += d[i];
            sum[1][i] += d[i] * ((v[i] - r.mean) * r.invstd);
        }
    }
    __device__ void of_part(int64_t, int64_t, int64_t, double *) const {}
    __device__ void put(int64_t column, const double *v) const
    {
        real b = (real)v[0], w = (real)v[1];
        if (dw.p)
            dw.store(column, &w);
        if (db.p)
            db.store(column, &b);
    }
};

struct layer_norm_dw {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef cuda_any<typename X::real> any;
        weight_slopes<X> f = {X::of(c->in[0]), X::of(c->in[1]), any::of(c->in[3]),
                              any::of(c->in[4]), any::of(c->out[1]), any::of(c->out[2])};
        return cuda_tile_sums(s, c, c->in[1]->dims[0], c->in[1]->dims[1], f, err);
    }
};

template <typename T>
static int layer_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int rc = c->out[0] ? layer_norm_dx<T>(s, c, err) : 0;
    if (rc == 0 && (c->out[1] || c->out[2]))
        rc = sizeof(T) == sizeof(double)
                 ? layer_norm_dw::run<cuda_any<double>>(s, c, err)
                 : cuda_run_packed<layer_norm_dw>(
                       cuda_packed({c->in[0], c->in[1]}, c->in[1]->dims[1]), s, c, err);
    return rc;
}
CUDA_REAL(layer_norm_bwd)
