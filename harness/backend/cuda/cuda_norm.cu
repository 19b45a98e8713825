/* Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019): a team for a row, tiles for the
 * gradients of the weights. */
#include <type_traits>

#include "cuda_row.cuh"
#include "cuda_tile.cuh"

#define KEPT 8 /* packs of a lane: as many as a warp's row has (cuda_row_most()) */

/* A team's row of n elements: load(j) gives what belongs to the pack at j, which a warp keeps, all
 * loaded before the first is used; a block, whose rows are long, loads it again for each pass. */
template <typename X, typename RAW, typename TEAM, typename LOAD>
struct row_of {
    static constexpr bool keeps = std::is_same_v<TEAM, cuda_team<CUDA_BY_WARP>>;
    int64_t n;
    TEAM team;
    LOAD load;
    RAW kept[keeps ? KEPT : 1];

    __device__ row_of(int64_t n, TEAM team, LOAD load) : n(n), team(team), load(load)
    {
        if constexpr (keeps)
            CUDA_UNROLL
            for (int r = 0; r < KEPT; r++)
                if (at(r) < n)
                    kept[r] = load(at(r));
    }
    __device__ int64_t at(int64_t r) const { return (team.first() + r * team.step()) * X::width; }
    /* f(RAW, j) for the thread's packs. */
    template <typename F>
    __device__ void each(F f) const
    {
        if constexpr (keeps) {
            CUDA_UNROLL
            for (int r = 0; r < KEPT; r++)
                if (at(r) < n)
                    f(kept[r], at(r));
        } else {
            for (int64_t r = 0; at(r) < n; r++)
                f(load(at(r)), at(r));
        }
    }
};

template <typename X, typename RAW, typename TEAM, typename LOAD>
__device__ static row_of<X, RAW, TEAM, LOAD> row_by(int64_t n, TEAM team, LOAD load)
{
    return {n, team, load};
}

/* A row's mean (0 where `rms`) and the mean square about it, in one pass, about its first element,
 * and in double: no digits are lost where the mean is large, or the first element. */
template <typename X, typename ROW>
__device__ static cuda_two<double> moments_of(const ROW &row, X x, int64_t at, bool rms)
{
    typedef typename X::real real;
    real first[X::width];
    X::open(x.load(at), first);
    real shift = rms ? 0 : first[0];
    cuda_two<double> r = {0, 0};
    row.each([&](const typename X::raw &raw, int64_t) {
        real v[X::width];
        X::open(raw, v);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++) {
            double d = (double)(v[i] - shift);
            r.a += d;
            r.b += d * d;
        }
    });
    r = row.team.combine(r, cuda_plus_two());
    double n = (double)row.n, up = rms ? 0 : r.a / n, square = r.b / n - up * up;
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
            [=] __device__(int64_t index, auto team) {
                auto row = row_by<X, typename X::raw>(
                    n, team, [&](int64_t j) { return x.load(index * n + j); });
                cuda_two<double> k = moments_of(row, x, index * n, rms);
                real mean = (real)k.a, invstd = (real)(1 / sqrt(k.b + eps));
                if (team.more)
                    return;
                if (team.leader()) {
                    means.store(index, &mean);
                    invstds.store(index, &invstd);
                }
                row.each([&](const typename X::raw &raw, int64_t j) {
                    real v[X::width], scale[X::width] = {}, offset[X::width] = {};
                    X::open(raw, v);
                    if (w.p)
                        X::open(w.load(j), scale);
                    if (b.p)
                        X::open(b.load(j), offset);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++)
                        v[i] = (v[i] - mean) * invstd * (w.p ? scale[i] : 1) +
                               (b.p ? offset[i] : 0);
                    y.store(index * n + j, v);
                });
            },
            err);
    }
};

/* dy w of a pack, and the normalised x. */
template <typename X>
struct slopes {
    typedef typename X::real real;
    struct raw {
        typename X::raw dy, x;
    };
    X dy, x, w;
    __device__ raw load(int64_t at) const { return {dy.load(at), x.load(at)}; }
    __device__ void open(const raw &r, int64_t j, real mean, real invstd, real *g,
                         real *xhat) const
    {
        real scale[X::width] = {};
        X::open(r.dy, g);
        X::open(r.x, xhat);
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
        typedef typename slopes<X>::raw raw;
        int64_t n = c->in[1]->dims[1];
        slopes<X> k = {X::of(c->in[0]), X::of(c->in[1]), X::of(c->in[2])};
        cuda_any<real> means = cuda_any<real>::of(c->in[3]);
        cuda_any<real> invstds = cuda_any<real>::of(c->in[4]);
        X dx = X::of(c->out[0]);
        bool rms = c->a.rms;
        return cuda_teams(
            s, c, n > 0 ? c->in[1]->dims[0] : 0, n, cuda_row_most<X>(),
            [=] __device__(int64_t index, auto team) {
                auto row = row_by<X, raw>(
                    n, team, [&](int64_t j) { return k.load(index * n + j); });
                real mean = means.load(index), invstd = invstds.load(index);
                real g[X::width], xhat[X::width];
                cuda_two<real> r = {0, 0};
                row.each([&](const raw &at, int64_t j) {
                    k.open(at, j, mean, invstd, g, xhat);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++) {
                        r.a += g[i];
                        r.b += g[i] * xhat[i];
                    }
                });
                r = team.combine(r, cuda_plus_two());
                real even = rms ? 0 : r.a / (real)n, dot = r.b / (real)n;
                if (team.more)
                    return;
                row.each([&](const raw &at, int64_t j) {
                    k.open(at, j, mean, invstd, g, xhat);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++)
                        g[i] = invstd * (g[i] - even - xhat[i] * dot);
                    dx.store(index * n + j, g);
                });
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
