/* Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019): a team for a row, tiles for the
 * gradients of the weights. */
#include "cuda_row.cuh"
#include "cuda_tile.cuh"

/* A row's mean (0 where `rms`) and the mean square about it, in one pass, about its first element,
 * and in double: no digits are lost where the mean is large, or the first element. */
template <typename X, typename TEAM>
__device__ static cuda_two<double> moments_of(X x, int64_t at, int64_t n, bool rms, TEAM team)
{
    typedef typename X::real real;
    real v[X::width], shift;
    X::open(x.load(at), v);
    shift = rms ? 0 : v[0];
    cuda_two<double> r = {0, 0};
    for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
        X::open(x.load(at + j), v);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++) {
            double d = (double)(v[i] - shift);
            r.a += d;
            r.b += d * d;
        }
    }
    r = team.combine(r, cuda_plus_two());
    double up = rms ? 0 : (double)r.a / (double)n, square = (double)r.b / (double)n - up * up;
    return {(double)shift + up, square < 0 ? 0 : square};
}

struct layer_norm {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        int64_t n = c->in[0]->dims[1];
        X x = X::of(c->in[0]), w = X::of(c->in[1]), b = X::of(c->in[2]), y = X::of(c->out[0]);
        cuda_any<real> means = cuda_any<real>::of(c->out[1]);
        cuda_any<real> invstds = cuda_any<real>::of(c->out[2]);
        double eps = c->a.eps;
        bool rms = c->a.rms;
        return cuda_teams(
            s, c, n > 0 ? c->in[0]->dims[0] : 0, n, cuda_row_most<X>(),
            [=] __device__(int64_t row, auto team) {
                cuda_two<double> k = moments_of(x, row * n, n, rms, team);
                real mean = (real)k.a, invstd = (real)(1 / sqrt(k.b + eps));
                if (team.more)
                    return;
                if (team.leader()) {
                    means.store(row, &mean);
                    invstds.store(row, &invstd);
                }
                for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
                    real v[X::width], scale[X::width], offset[X::width];
                    X::open(x.load(row * n + j), v);
                    if (w.p)
                        X::open(w.load(j), scale);
                    if (b.p)
                        X::open(b.load(j), offset);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++)
                        v[i] = (v[i] - mean) * invstd * (w.p ? scale[i] : 1) +
                               (b.p ? offset[i] : 0);
                    y.store(row * n + j, v);
                }
            },
            err);
    }
};

/* dy w of a pack, and the normalised x. */
template <typename X>
struct slopes {
    typedef typename X::real real;
    X dy, x, w;
    __device__ void open(int64_t at, int64_t j, real mean, real invstd, real *g, real *xhat) const
    {
        real scale[X::width];
        X::open(dy.load(at + j), g);
        X::open(x.load(at + j), xhat);
        if (w.p)
            X::open(w.load(j), scale);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++) {
            g[i] *= w.p ? scale[i] : 1;
            xhat[i] = (xhat[i] - mean) * invstd;
        }
    }
};

struct layer_norm_dx {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        int64_t n = c->in[1]->dims[1];
        slopes<X> k = {X::of(c->in[0]), X::of(c->in[1]), X::of(c->in[2])};
        cuda_any<real> means = cuda_any<real>::of(c->in[3]);
        cuda_any<real> invstds = cuda_any<real>::of(c->in[4]);
        X dx = X::of(c->out[0]);
        bool rms = c->a.rms;
        return cuda_teams(
            s, c, n > 0 ? c->in[1]->dims[0] : 0, n, cuda_row_most<X>(),
            [=] __device__(int64_t row, auto team) {
                real mean = means.load(row), invstd = invstds.load(row);
                real g[X::width], xhat[X::width];
                cuda_two<real> r = {0, 0};
                for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
                    k.open(row * n, j, mean, invstd, g, xhat);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++) {
                        r.a += g[i];
                        r.b += g[i] * xhat[i];
                    }
                }
                r = team.combine(r, cuda_plus_two());
                real even = rms ? 0 : r.a / (real)n, dot = r.b / (real)n;
                if (team.more)
                    return;
                for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
                    k.open(row * n, j, mean, invstd, g, xhat);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++)
                        g[i] = invstd * (g[i] - even - xhat[i] * dot);
                    dx.store(row * n + j, g);
                }
            },
            err);
    }
};

/* For each column the sums of dy, and of dy times the normalised x. */
template <typename X>
struct weight_slopes {
    typedef typename X::real real;
    struct raw {
        typename X::raw dy, x;
        real mean, invstd;
    };
    static constexpr int width = X::width, batch = 4, blocks = 2, sums = 2;
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

int cuda_layer_norm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int packed =
        cuda_packed({c->in[0], c->in[1], c->in[2], c->out[0]}, c->in[0]->dims[1]);
    return cuda_run_packed<layer_norm>(packed, s, c, err);
}

int cuda_layer_norm_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return layer_norm::run<cuda_any<double>>(s, c, err);
}

int cuda_layer_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->in[1]->dims[1];
    int by_x = cuda_packed({c->in[0], c->in[1], c->in[2], c->out[0]}, n), rc = 0;
    if (c->out[0])
        rc = cuda_run_packed<layer_norm_dx>(by_x, s, c, err);
    if (rc == 0 && (c->out[1] || c->out[2]))
        rc = cuda_run_packed<layer_norm_dw>(cuda_packed({c->in[0], c->in[1]}, n), s, c, err);
    return rc;
}

int cuda_layer_norm_bwd_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int rc = c->out[0] ? layer_norm_dx::run<cuda_any<double>>(s, c, err) : 0;
    if (rc == 0 && (c->out[1] || c->out[2]))
        rc = layer_norm_dw::run<cuda_any<double>>(s, c, err);
    return rc;
}
