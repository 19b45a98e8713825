/* Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019): a team for a row, tiles for the
 * gradients of the weights. */
#include <type_traits>

#include "cuda_row.cuh"
#include "cuda_tile.cuh"

#define KEPT 8 /* packs of a lane: as many as a warp's row has (cuda_row_most()) */

/* A team's row of n elements: load(j) gives what belongs to the pack at j, which a warp keeps, all
 * loaded before the first is used; a block, whose rows are long, loads it again for each pass. */
template <typename X, typename RAW, typename TEAM, typename LOAD> struct row_of {
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
    template <typename F> __device__ void each(F f) const
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
                        v[i] =
                            (v[i] - mean) * invstd * (w.p ? scale[i] : 1) + (b.p ? offset[i] : 0);
                    y.store(index * n + j, v);
                });
            },
            err);
    }
};

/* What the gradient of x is made of: dy w, and the normalised x. */
template <typename X> struct slopes {
    typedef typename X::real real;
    struct raw {
        typename X::raw dy, x;
    };
    X dy, x, w;
    __device__ raw load(int64_t at) const { return {dy.load(at), x.load(at)}; }
    /* dy, and the normalised x. */
    __device__ void normal(const raw &r, real mean, real invstd, real *d, real *xhat) const
    {
        X::open(r.dy, d);
        X::open(r.x, xhat);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            xhat[i] = (xhat[i] - mean) * invstd;
    }
    /* Those at j; 1 where there are none. */
    __device__ void weights(int64_t j, real *scale) const
    {
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            scale[i] = 1;
        if (w.p)
            X::open(w.load(j), scale);
    }
    __device__ void open(const raw &r, int64_t j, real mean, real invstd, real *g, real *xhat) const
    {
        real scale[X::width];
        weights(j, scale);
        normal(r, mean, invstd, g, xhat);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            g[i] *= scale[i];
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
        X dx = X::of(c->out[0]), have = X::of(c->in[5]);
        bool rms = c->a.rms;
        return cuda_teams(
            s, c, n > 0 ? c->in[1]->dims[0] : 0, n, cuda_row_most<X>(),
            [=] __device__(int64_t index, auto team) {
                auto row =
                    row_by<X, raw>(n, team, [&](int64_t j) { return k.load(index * n + j); });
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
                    real old[X::width] = {};
                    if (have.p)
                        X::open(have.load(index * n + j), old);
                    k.open(at, j, mean, invstd, g, xhat);
                    CUDA_UNROLL
                    for (int i = 0; i < X::width; i++)
                        g[i] = old[i] + invstd * (g[i] - even - xhat[i] * dot);
                    dx.store(index * n + j, g);
                });
            },
            err);
    }
};

/* For each column the sums of dy, and of dy times the normalised x. */
template <typename X> struct weight_slopes {
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
        weight_slopes<X> f = {X::of(c->in[0]),   X::of(c->in[1]),    any::of(c->in[3]),
                              any::of(c->in[4]), any::of(c->out[1]), any::of(c->out[2])};
        return cuda_tile_sums(s, c, c->in[1]->dims[0], c->in[1]->dims[1], f, err);
    }
};

/* ---- All gradients in one pass, of rows that a block has a thread for each pack of ---- */

#define ROWS    2                         /* of a team, loaded before the first is used */
#define WORTHY  8                         /* rows that a team is worth */
#define NEAR_BY (CUDA_BLOCK < 64 ? 2 : 8) /* columns of a part that are read together */

/* The sums of a team, for each of its rows; by turns in two places, so that the block meets once.
 * All threads of the block must come. */
template <typename T> __device__ static void team_sums(cuda_two<T> (&r)[ROWS], int lanes, int turn)
{
    CUDA_SHARED(cuda_two<T>, all, 2 * ROWS * CUDA_BLOCK_MAX / CUDA_LANES_MIN);
    int warps = (int)blockDim.x / CUDA_LANES, each = lanes / CUDA_LANES;
    cuda_two<T> *mine = all + turn * ROWS * warps + threadIdx.x / CUDA_LANES;
    CUDA_UNROLL
    for (int u = 0; u < ROWS; u++)
        r[u] = cuda_combine_warp(r[u], cuda_plus_two());
    if (each == 1)
        return;
    CUDA_UNROLL
    for (int u = 0; u < ROWS; u++)
        if (threadIdx.x % CUDA_LANES == 0)
            mine[u * warps] = r[u];
    __syncthreads();
    mine -= threadIdx.x / CUDA_LANES % each;
    CUDA_UNROLL
    for (int u = 0; u < ROWS; u++) {
        r[u] = mine[u * warps];
        for (int i = 1; i < each; i++)
            r[u] = cuda_plus_two()(r[u], mine[u * warps + i]);
    }
}

/* A thread's pack of a row. */
template <typename X> struct pack_of_row {
    typedef typename X::real real;
    typename slopes<X>::raw raw;
    typename X::raw have; /* what dx is added to */
    real mean, invstd;
    int64_t at; /* -1: none */

    __device__ cuda_two<real> sums(const slopes<X> &k, const real *scale) const
    {
        real dy[X::width], xhat[X::width];
        cuda_two<real> sum = {0, 0};
        k.normal(raw, mean, invstd, dy, xhat);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++) {
            sum.a += dy[i] * scale[i];
            sum.b += dy[i] * scale[i] * xhat[i];
        }
        return sum;
    }
    /* dx, by the row's means; adds to the sums of the columns. */
    __device__ void slope(const slopes<X> &k, const real *scale, cuda_two<real> mean_of, real *dx,
                          real *db, real *dw) const
    {
        real dy[X::width], xhat[X::width];
        k.normal(raw, mean, invstd, dy, xhat);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++) {
            db[i] += dy[i];
            dw[i] += dy[i] * xhat[i];
            dx[i] += invstd * (dy[i] * scale[i] - mean_of.a - xhat[i] * mean_of.b);
        }
    }
};

/* A team of `lanes` threads takes every teams-th row, and leaves the sums of its columns: what of
 * x and dy a warp keeps for its row would leave no registers for these. */
template <typename X> struct all_slopes {
    typedef typename X::real real;
    typedef pack_of_row<X> row;
    static constexpr int width = X::width, blocks = width > 4 ? 2 : 3; /* of an SM */
    slopes<X> k;
    X have, dx;
    cuda_any<real> mean, invstd;
    int64_t rows, n, teams;
    int lanes;
    bool rms;
    real *parts; /* [teams, 2, n]: of dy, and of dy times the normalised x */

    __device__ void load(row (&r)[ROWS], int64_t first, int64_t column) const
    {
        CUDA_UNROLL
        for (int u = 0; u < ROWS; u++) {
            int64_t i = first + u * teams;
            r[u].at = i < rows && column < n ? i * n + column : -1;
            if (r[u].at < 0)
                continue;
            r[u].raw = k.load(r[u].at);
            if (have.p)
                r[u].have = have.load(r[u].at);
            r[u].mean = mean.load(i);
            r[u].invstd = invstd.load(i);
        }
    }
    __device__ void finish(const row &r, const real *scale, cuda_two<real> sum, real *db,
                           real *dw) const
    {
        real g[width] = {};
        if (have.p)
            X::open(r.have, g);
        r.slope(k, scale, {rms ? 0 : sum.a / (real)n, sum.b / (real)n}, g, db, dw);
        dx.store(r.at, g);
    }
    __device__ void operator()(int64_t block) const
    {
        int64_t team = block * (blockDim.x / lanes) + threadIdx.x / lanes;
        int64_t column = (int64_t)(threadIdx.x % lanes) * width;
        real scale[width], db[width] = {}, dw[width] = {};
        k.weights(column < n ? column : 0, scale);
        int turn = 0;
        __syncthreads(); /* others may still be at the block before */
        for (int64_t first = 0; first < rows; first += ROWS * teams, turn ^= 1) {
            row r[ROWS];
            cuda_two<real> sum[ROWS];
            load(r, first + team, column);
            CUDA_UNROLL
            for (int u = 0; u < ROWS; u++)
                sum[u] = r[u].at < 0 ? cuda_two<real>{0, 0} : r[u].sums(k, scale);
            team_sums(sum, lanes, turn);
            CUDA_UNROLL
            for (int u = 0; u < ROWS; u++)
                if (r[u].at >= 0)
                    finish(r[u], scale, sum[u], db, dw);
        }
        for (int i = 0; i < width && column < n; i++) {
            parts[2 * team * n + column + i] = db[i];
            parts[(2 * team + 1) * n + column + i] = dw[i];
        }
    }
};

template <typename F>
__global__ void __launch_bounds__(CUDA_BLOCK, F::blocks) layer_norm_rows(int64_t blocks, F f)
{
    for (int64_t i = blockIdx.x; i < blocks; i += gridDim.x)
        f(i);
}

/* What the teams left, added up. */
template <typename T>
static int add_parts(struct det_stream *s, const struct det_call *c, const T *parts, int64_t teams,
                     struct det_err *err)
{
    int64_t n = c->in[1]->dims[1], wide = NEAR_BY;
    cuda_any<T> dw = cuda_any<T>::of(c->out[1]), db = cuda_any<T>::of(c->out[2]);
    return cuda_blocks(
        s, c, (n + wide - 1) / wide,
        DEVICE(int64_t block) {
            CUDA_SHARED(cuda_two<double>, all, CUDA_BLOCK_MAX);
            int64_t column = block * wide + threadIdx.x % wide;
            int row = (int)(threadIdx.x / wide), step = (int)(blockDim.x / wide);
            cuda_two<double> sum = {0, 0}, *mine = all + threadIdx.x;
            for (int64_t p = row; column < n && p < teams; p += step) {
                sum.a += (double)parts[2 * p * n + column];
                sum.b += (double)parts[(2 * p + 1) * n + column];
            }
            *mine = sum;
            for (int half = step / 2; half > 0; half /= 2) {
                __syncthreads();
                if (row < half)
                    *mine = cuda_plus_two()(*mine, mine[half * wide]);
            }
            T b = (T)mine->a, w = (T)mine->b;
            if (dw.p && row == 0 && column < n)
                dw.store(column, &w);
            if (db.p && row == 0 && column < n)
                db.store(column, &b);
            __syncthreads();
        },
        err);
}

struct layer_norm_all {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef cuda_any<typename X::real> any;
        int64_t rows = c->in[1]->dims[0], n = c->in[1]->dims[1], lanes = CUDA_LANES, blocks;
        int64_t held = CUDA_SMS * all_slopes<X>::blocks;
        void *parts = NULL;
        while (lanes * X::width < n)
            lanes *= 2;
        blocks = (rows + WORTHY * (CUDA_BLOCK / lanes) - 1) / (WORTHY * (CUDA_BLOCK / lanes));
        blocks = blocks < held ? blocks : held;
        int64_t teams = blocks * (CUDA_BLOCK / lanes);
        int rc = cuda_use(s->device, err);
        if (rc == 0)
            rc = cuda_partials(s->device, (size_t)(2 * teams * n) * sizeof(typename X::real),
                               &parts, err);
        if (rc < 0)
            return rc;
        all_slopes<X> f = {{X::of(c->in[0]), X::of(c->in[1]), X::of(c->in[2])},
                           X::of(c->in[5]),
                           X::of(c->out[0]),
                           any::of(c->in[3]),
                           any::of(c->in[4]),
                           rows,
                           n,
                           teams,
                           (int)lanes,
                           c->a.rms,
                           (typename X::real *)parts};
        CUDA_LAUNCH(layer_norm_rows, CUDA_GRID(blocks), s->native, blocks, f);
        rc = cuda_launched(s, c, err);
        return rc < 0 ? rc : add_parts(s, c, f.parts, teams, err);
    }
};

/* Whether a block has a thread for each pack of a row. */
static bool fits_block(const struct det_call *c, int packed)
{
    int64_t n = c->in[1]->dims[1], rows = c->in[1]->dims[0];
    return packed >= 0 && rows > 0 && n > 0 &&
           n * (int64_t)det_dtype_size((enum det_dtype)packed) <=
               CUDA_BLOCK * (int64_t)sizeof(cuda_quad);
}

int cuda_layer_norm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int packed = cuda_packed({c->in[0], c->in[1], c->in[2], c->out[0]}, c->in[0]->dims[1]);
    return cuda_run_packed<layer_norm>(packed, s, c, err);
}

int cuda_layer_norm_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return layer_norm::run<cuda_any<double>>(s, c, err);
}

int cuda_layer_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->in[1]->dims[1];
    int by_x = cuda_packed({c->in[0], c->in[1], c->in[2], c->in[5], c->out[0]}, n), rc = 0;
    if (c->out[0] && (c->out[1] || c->out[2]) && fits_block(c, by_x))
        return cuda_run_packed<layer_norm_all>(by_x, s, c, err);
    if (c->out[1] || c->out[2]) /* first: without memory for it nothing is added to dx, either */
        rc = cuda_run_packed<layer_norm_dw>(cuda_packed({c->in[0], c->in[1]}, n), s, c, err);
    if (rc == 0 && c->out[0])
        rc = cuda_run_packed<layer_norm_dx>(by_x, s, c, err);
    return rc;
}

int cuda_layer_norm_bwd_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    bool of_columns = c->out[1] || c->out[2];
    int rc = of_columns ? layer_norm_dw::run<cuda_any<double>>(s, c, err) : 0;
    if (rc == 0 && c->out[0])
        rc = layer_norm_dx::run<cuda_any<double>>(s, c, err);
    return rc;
}
