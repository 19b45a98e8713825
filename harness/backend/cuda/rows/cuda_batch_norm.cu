/* Batch norm (Ioffe & Szegedy 2015) over rows of channels, in tiles (cuda_tile.cuh). */
#include <type_traits>

#include "cuda_tile.cuh"

/* What belongs to a channel, of whatever dtypes. */
template <typename T> struct channels {
    cuda_any<T> w, b, mean, invstd;
};

/* A thread's channels, as they are used; the same numbers in both directions, so that both find the
 * same sign. */
template <typename X> struct affine {
    typename X::real mean[X::width], scale[X::width], offset[X::width];

    __device__ void begin(const channels<typename X::real> &k, int64_t column)
    {
        typename X::real w[X::width];
        cuda_load_columns(k.mean, column, mean);
        cuda_load_columns(k.invstd, column, scale);
        cuda_load_columns(k.w, column, w);
        if (k.b.p)
            cuda_load_columns(k.b, column, offset);
        for (int i = 0; i < X::width; i++) {
            scale[i] *= w[i];
            offset[i] = k.b.p ? offset[i] : 0;
        }
    }
    __device__ typename X::real of(int i, typename X::real x) const
    {
        return fma(x - mean[i], scale[i], offset[i]);
    }
};

static int64_t rows_of(const struct det_tensor *x)
{
    return x->dims[1] > 0 ? (int64_t)x->numel / x->dims[1] : 0;
}

/* ---- forward ---- */

template <typename T> __device__ static T middle_of(T a, T b, T c)
{
    T low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c < high ? c : high;
}

/* The sums of what lies above one of the first rows of a part, and of its squares: one pass, and no
 * digits are lost where the mean is large. Of three rows the middle one, so that a single value far
 * from all others is not what these are measured from. */
template <typename X> struct moments {
    typedef typename X::real real;
    typedef typename X::raw raw;
    static constexpr int width = X::width, batch = 6, blocks = 3, sums = 2;
    X x;
    cuda_any<real> any, mean, invstd, running_mean, running_var;
    int64_t rows, channels;
    double eps, momentum;
    real shift[width], sum[sums][width];

    /* Of the three rows at the head of a part; near the end it may be another's. */
    __device__ int64_t head(int64_t first, int i) const
    {
        int64_t row = first + (i == 0 ? 0 : i == 1 ? 29 : 67);
        return (row < rows ? row : rows - 1) * channels;
    }
    __device__ void begin(int64_t first, int64_t column)
    {
        raw r[3];
        real a[3][width];
        CUDA_UNROLL
        for (int i = 0; i < 3; i++)
            r[i] = x.load(head(first, i) + column);
        CUDA_UNROLL
        for (int i = 0; i < 3; i++)
            X::open(r[i], a[i]);
        CUDA_UNROLL
        for (int i = 0; i < width; i++)
            shift[i] = middle_of(a[0][i], a[1][i], a[2][i]);
    }
    __device__ raw load(int64_t at, int64_t) const { return x.load(at); }
    __device__ void use(const raw &r, int64_t)
    {
        real v[width];
        X::open(r, v);
        CUDA_UNROLL
        for (int i = 0; i < width; i++) {
            real d = v[i] - shift[i];
            sum[0][i] += d;
            sum[1][i] += d * d;
        }
    }
    /* All about the first row of all. */
    __device__ void of_part(int64_t ch, int64_t first, int64_t n, double *v) const
    {
        real middle = middle_of(any.load(head(first, 0) + ch), any.load(head(first, 1) + ch),
                                any.load(head(first, 2) + ch));
        double up = (double)middle - (double)any.load(ch);
        v[1] += up * ((double)n * up + 2 * v[0]);
        v[0] += (double)n * up;
    }
    __device__ void put(int64_t ch, const double *v) const
    {
        double n = (double)rows, up = v[0] / n, var = v[1] / n - up * up;
        double m = (double)any.load(ch) + up;
        var = var < 0 ? 0 : var;
        double whole = rows > 1 ? var * n / (n - 1) : var;
        real to[] = {(real)m, (real)(1 / sqrt(var + eps)),
                     (real)((1 - momentum) * (double)running_mean.load(ch) + momentum * m),
                     (real)((1 - momentum) * (double)running_var.load(ch) + momentum * whole)};
        mean.store(ch, &to[0]);
        invstd.store(ch, &to[1]);
        running_mean.store(ch, &to[2]);
        running_var.store(ch, &to[3]);
    }
};

/* MORE: there is something to be added. */
template <typename X, bool MORE> struct normalised {
    typedef typename X::real real;
    static constexpr int width = X::width, batch = MORE ? 2 : 3, blocks = 4;
    struct alone {
        typename X::raw x;
    };
    struct both {
        typename X::raw x, more;
    };
    typedef std::conditional_t<MORE, both, alone> raw;
    X x, more, y;
    channels<real> k;
    bool relu;
    affine<X> a;

    __device__ void begin(int64_t, int64_t column) { a.begin(k, column); }
    __device__ raw load(int64_t at, int64_t) const
    {
        raw r = {cuda_load_last(x, at)};
        if constexpr (MORE)
            r.more = cuda_load_last(more, at);
        return r;
    }
    __device__ void use(const raw &r, int64_t at) const
    {
        real v[width], m[width] = {};
        X::open(r.x, v);
        if constexpr (MORE)
            X::open(r.more, m);
        CUDA_UNROLL
        for (int i = 0; i < width; i++) {
            v[i] = a.of(i, v[i]) + m[i];
            v[i] = relu && v[i] < 0 ? 0 : v[i];
        }
        y.store(at, v);
    }
};

/* y of the channels' mean and invstd, which are in out 1 and 2. */
template <typename X, bool MORE>
static int normalise_by(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    typedef cuda_any<typename X::real> any;
    const struct det_tensor *x = c->in[0];
    normalised<X, MORE> f = {X::of(x), X::of(c->in[5]), X::of(c->out[0])};
    f.k = {any::of(c->in[1]), any::of(c->in[2]), any::of(c->out[1]), any::of(c->out[2])};
    f.relu = c->a.relu;
    return cuda_tile_each(s, c, rows_of(x), x->dims[1], f, err);
}

template <typename X>
static int normalise(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return c->in[5] ? normalise_by<X, true>(s, c, err) : normalise_by<X, false>(s, c, err);
}

struct train {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef cuda_any<typename X::real> any;
        const struct det_tensor *x = c->in[0];
        moments<X> f = {X::of(x),           any::of(x),         any::of(c->out[1]),
                        any::of(c->out[2]), any::of(c->out[3]), any::of(c->out[4])};
        f.rows = rows_of(x), f.channels = x->dims[1];
        f.eps = c->a.eps, f.momentum = c->a.momentum;
        int rc = cuda_tile_sums(s, c, f.rows, f.channels, f, err);
        return rc < 0 ? rc : normalise<X>(s, c, err);
    }
};

struct eval {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        cuda_any<real> mean = cuda_any<real>::of(c->in[3]), var = cuda_any<real>::of(c->in[4]);
        cuda_any<real> means = cuda_any<real>::of(c->out[1]);
        cuda_any<real> invstds = cuda_any<real>::of(c->out[2]);
        double eps = c->a.eps;
        int rc = cuda_each(
            s, c, c->in[0]->dims[1],
            DEVICE(int64_t ch) {
                real m = mean.load(ch), invstd = (real)(1 / sqrt((double)var.load(ch) + eps));
                means.store(ch, &m);
                invstds.store(ch, &invstd);
            },
            err);
        return rc < 0 ? rc : normalise<X>(s, c, err);
    }
};

static int packed_forward(const struct det_call *c)
{
    return cuda_packed({c->in[0], c->in[5], c->out[0]}, c->in[0]->dims[1]);
}

int cuda_batch_norm_train(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return cuda_run_packed<train>(packed_forward(c), s, c, err);
}

int cuda_batch_norm_train_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return train::run<cuda_any<double>>(s, c, err);
}

int cuda_batch_norm_eval(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return cuda_run_packed<eval>(packed_forward(c), s, c, err);
}

int cuda_batch_norm_eval_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return eval::run<cuda_any<double>>(s, c, err);
}

/* ---- backward ---- */

/* What says which of the gradient passed the ReLU: none is there, the sign of x normalised, or that
 * of y where something was added to it. */
enum gate { OPEN, BY_X, BY_Y };

template <typename X, enum gate GATE>
struct passed {
    typedef typename X::real real; struct two{typename X::raw dy, x;};
struct three {
    typename X::raw dy, x, y;
};
typedef std::conditional_t<GATE == BY_Y, three, two> raw;
X dy, x, y;
channels<real> k;
affine<X> a;

template <bool LAST> __device__ raw load(int64_t at) const
{
    raw r = {LAST ? cuda_load_last(dy, at) : dy.load(at),
             LAST ? cuda_load_last(x, at) : x.load(at)};
    if constexpr (GATE == BY_Y)
        r.y = y.load(at);
    return r;
}
__device__ void open(const raw &r, real *g, real *v) const
{
    X::open(r.dy, g);
    X::open(r.x, v);
    real sign[X::width];
    if constexpr (GATE == BY_Y)
        X::open(r.y, sign);
    if constexpr (GATE != OPEN)
        CUDA_UNROLL
    for (int i = 0; i < X::width; i++)
        g[i] = (GATE == BY_Y ? sign[i] : a.of(i, v[i])) > 0 ? g[i] : 0;
}
}
;

template <typename X, enum gate GATE> static passed<X, GATE> passed_of(const struct det_call *c)
{
    typedef cuda_any<typename X::real> any;
    passed<X, GATE> p = {X::of(c->in[0]), X::of(c->in[1]), X::of(c->in[2])};
    p.k = {any::of(c->in[3]), any::of(c->in[6]), any::of(c->in[4]), any::of(c->in[5])};
    return p;
}

/* The sums of g and of g (x - mean); g is kept where it is wanted. */
template <typename X, enum gate GATE>
struct slopes {
    typedef typename X::real real; typedef typename passed<X, GATE>::raw raw;
    static constexpr int width = X::width, batch = GATE == BY_Y ? 3 : 4, blocks = 2, sums = 2;
    passed<X, GATE> g; X dr; cuda_any<real> dw, db; real sum[sums][width];

    __device__ void begin(int64_t, int64_t column){g.a.begin(g.k, column);}
__device__ raw load(int64_t at, int64_t) const
{
    return g.template load<false>(at);
}
__device__ void use(const raw &r, int64_t at)
{
    real d[width], v[width];
    g.open(r, d, v);
    CUDA_UNROLL
    for (int i = 0; i < width; i++) {
        sum[0][i] += d[i];
        sum[1][i] += d[i] * (v[i] - g.a.mean[i]);
    }
    if (dr.p)
        dr.store(at, d);
}
__device__ void of_part(int64_t, int64_t, int64_t, double *) const
{
}
__device__ void put(int64_t ch, const double *v) const
{
    real b = (real)v[0], w = (real)(v[1] * (double)g.k.invstd.load(ch));
    dw.store(ch, &w);
    db.store(ch, &b);
}
}
;

template <typename X, enum gate GATE>
struct through {
    typedef typename X::real real; typedef typename passed<X, GATE>::raw raw;
    static constexpr int width = X::width, batch = GATE == BY_Y ? 3 : 4, blocks = 2;
    passed<X, GATE> g; X dx; cuda_any<real> dw, db;
    real n;                         /* of rows; 0: the statistics are constants */
    real even[width], slope[width]; /* of dx by all dy, over w invstd */

    __device__ void begin(int64_t, int64_t column){
        real invstd[width]; g.a.begin(g.k, column); cuda_load_columns(g.k.invstd, column, invstd);
        cuda_load_columns(dw, column, slope); cuda_load_columns(db, column, even);
        for (int i = 0; i < width; i++){even[i] = n > 0 ? even[i] / n : 0;
                                        slope[i] = n > 0 ? slope[i] * invstd[i] / n : 0;}
}
__device__ raw load(int64_t at, int64_t) const
{
    return g.template load<true>(at);
}
__device__ void use(const raw &r, int64_t at) const
{
    real d[width], v[width];
    g.open(r, d, v);
    CUDA_UNROLL
    for (int i = 0; i < width; i++)
        d[i] = g.a.scale[i] * (d[i] - even[i] - (v[i] - g.a.mean[i]) * slope[i]);
    dx.store(at, d);
}
}
;

template <typename X, enum gate GATE>
static int pass_through(struct det_stream *s, const struct det_call *c, const passed<X, GATE> &g,
                        struct det_err *err)
{
    typedef cuda_any<typename X::real> any;
    int64_t rows = rows_of(c->in[1]);
    through<X, GATE> f = {g, X::of(c->out[0]), any::of(c->out[1]), any::of(c->out[2])};
    f.n = (typename X::real)(c->a.train ? rows : 0);
    return cuda_tile_each(s, c, rows, c->in[1]->dims[1], f, err);
}

template <typename X, enum gate GATE>
static int backward_by(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    typedef cuda_any<typename X::real> any;
    int64_t rows = rows_of(c->in[1]), channels = c->in[1]->dims[1];
    slopes<X, GATE> sums = {passed_of<X, GATE>(c), X::of(c->out[3]), any::of(c->out[1]),
                            any::of(c->out[2])};
    int rc = cuda_tile_sums(s, c, rows, channels, sums, err);
    if (rc < 0 || !c->out[0])
        return rc;
    if (!c->out[3])
        return pass_through<X, GATE>(s, c, sums.g, err);
    passed<X, OPEN> rest = passed_of<X, OPEN>(c);
    rest.dy = sums.dr; /* what passed is there now; dy may be it */
    return pass_through<X, OPEN>(s, c, rest, err);
}

struct backward {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        if (!c->a.relu)
            return backward_by<X, OPEN>(s, c, err);
        return c->in[6] ? backward_by<X, BY_X>(s, c, err) : backward_by<X, BY_Y>(s, c, err);
    }
};

int cuda_batch_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *y = c->a.relu ? c->in[2] : NULL;
    int packed = cuda_packed({c->in[0], c->in[1], y, c->out[0], c->out[3]}, c->in[1]->dims[1]);
    return cuda_run_packed<backward>(packed, s, c, err);
}

int cuda_batch_norm_bwd_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return backward::run<cuda_any<double>>(s, c, err);
}
