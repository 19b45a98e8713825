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
    auto loss = DEVICE(int64_t i)
    {
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

template <typename X> struct squares_apart {
    struct raw {
        typename X::raw x, t;
    };
    typedef double total;
    typedef cuda_plus op;
    static constexpr int width = X::width;
    X x, t;

    static squares_apart of(const struct det_call *c) { return {X::of(c->in[0]), X::of(c->in[1])}; }
    static double scale(const struct det_call *c) { return 1 / (double)c->in[0]->numel; }
    __device__ raw load(int64_t i) const { return {x.load(i), t.load(i)}; }
    __device__ void open(const raw &r, double *v) const
    {
        typename X::real a[X::width], b[X::width];
        X::open(r.x, a);
        X::open(r.t, b);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            v[i] = ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
};
CUDA_TOTAL(mse, squares_apart)

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
template <typename X> struct cross {
    typedef typename X::real real;
    X x;
    int64_t n, step, skip; /* rows are `step` elements apart */
    double smoothing;
    bool log_probs;
    cuda_any<real> w;
    const int64_t *target;
    int *bad;
};

template <typename X>
static cross<X> cross_of(struct det_stream *s, const struct det_call *c, int first)
{
    return {X::of(c->in[first]),
            c->in[first]->dims[1],
            cuda_ld(c->in[first]),
            c->a.skip,
            c->a.smoothing,
            c->a.log_probs,
            cuda_any<typename X::real>::of(c->in[first + 2]),
            in_i64(c, first + 1),
            s->bad};
}

/* The row's class, or -1 where it is left out. */
template <typename X> __device__ static int64_t class_of(const cross<X> &k, int64_t row)
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
template <typename T> __device__ static double surprise(T x, T top, double log_sum)
{
    return log_sum - (double)(x - top); /* top + log_sum first would lose digits */
}

/* The sum of the surprise of all elements that it is given. */
template <typename T> struct surprises {
    T top, log_sum;
    double all;

    template <int N> __device__ void operator()(const T (&v)[N])
    {
        T some = 0;
        CUDA_UNROLL
        for (int i = 0; i < N; i++)
            some += log_sum - (v[i] - top);
        all += some;
    }
};

/* The sum of w times their surprise over classes, by the whole team; 0: nothing is smoothed. */
template <typename X, typename TEAM>
__device__ static double smoothed(const cross<X> &k, int64_t row, typename X::real top,
                                  typename X::real log_sum, TEAM team)
{
    surprises<typename X::real> sum = {top, log_sum, 0};
    if (k.smoothing == 0)
        return 0;
    if (!k.w.p)
        cuda_span_each(cuda_span<X>(k.x, row * k.step, k.n), team, sum);
    else
        for (int64_t j = team.first(); j < k.n; j += team.step())
            sum.all +=
                (double)k.w.load(j) * surprise(cuda_one(k.x, row * k.step + j), top, log_sum);
    return team.combine(sum.all, cuda_plus());
}

/* Where the rows' results go: losses to rows[0..m), what they count to rows[m..2m). */
template <typename T> struct kept {
    double *rows;
    int64_t m;
    T *sums; /* the greatest of each row; behind them the logarithms */
    cuda_any<T> each;
    bool gives_each;
};

template <typename X>
__device__ static void keep_row(const cross<X> &k, const kept<typename X::real> &to, int64_t row,
                                typename X::real top, typename X::real log_sum, double all)
{
    typedef typename X::real real;
    int64_t t = class_of(k, row);
    double w = t < 0 ? 0 : (double)k.w.at(t, 1), loss = 0;
    if (t >= 0)
        loss = (1 - k.smoothing) * w * surprise(cuda_one(k.x, row * k.step + t), top, log_sum) +
               k.smoothing / (double)k.n * all;
    to.rows[row] = loss;
    to.rows[to.m + row] = w;
    to.sums[row] = top;
    to.sums[to.m + row] = log_sum;
    real y = (real)loss;
    if (to.gives_each)
        to.each.store(row, &y);
}

template <typename X>
static int row_losses(struct det_stream *s, const struct det_call *c,
                      const kept<typename X::real> &to, struct det_err *err)
{
    typedef typename X::real real;
    cross<X> k = cross_of<X>(s, c, 0);
    return cuda_teams(
        s, c, to.m, k.n, cuda_row_most<X>(),
        [=] __device__(int64_t row, auto team) {
            cuda_exps<real> e = {0, 1};
            if (!k.log_probs)
                e = cuda_row_exps(cuda_span<X>(k.x, row * k.step, k.n), team);
            real log_sum = log(e.sum);
            double all = smoothed(k, row, e.top, log_sum, team);
            if (team.leader())
                keep_row(k, to, row, e.top, log_sum, all);
        },
        err);
}

/* The losses of all rows as one. */
template <typename T>
static int whole_loss(struct det_stream *s, const struct det_call *c, const kept<T> &k,
                      struct det_err *err)
{
    cuda_any<T> y = k.each, count = cuda_any<T>::of(c->out[2]);
    int64_t m = k.m;
    const double *rows = k.rows;
    bool is_mean = c->a.mode == DET_REDUCE_MEAN, is_one = !k.gives_each;
    return cuda_blocks(
        s, c, 1,
        DEVICE(int64_t) {
            cuda_two<double> sum = {0, 0};
            for (int64_t i = threadIdx.x; i < m; i += blockDim.x)
                sum = {sum.a + rows[i], sum.b + rows[m + i]};
            sum = cuda_combine(sum, cuda_plus_two());
            T total = (T)(is_mean ? sum.a / sum.b : sum.a), counted = (T)sum.b;
            if (threadIdx.x != 0)
                return;
            count.store(0, &counted);
            if (is_one)
                y.store(0, &total);
        },
        err);
}

struct cross_entropy {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        int64_t m = c->in[0]->dims[0];
        void *work = NULL;
        int rc = cuda_workspace(s->device, 2 * (size_t)m * sizeof(double) + 8, &work, err);
        kept<real> to = {(double *)work, m, out_real<real>(c, 1), cuda_any<real>::of(c->out[0]),
                         c->a.mode == DET_REDUCE_NONE};
        if (rc == 0)
            rc = row_losses<X>(s, c, to, err);
        return rc < 0 ? rc : whole_loss(s, c, to, err);
    }
};

/* d loss / dx_j = dy (p_j whole - smooth w_j - [j = t] hit). */
template <typename T> struct slopes {
    cuda_any<T> w;
    int64_t t; /* -1: the row is left out */
    T top, log_sum, dy, whole, smooth, hit;
    bool log_probs;

    template <int N> __device__ void operator()(T (&v)[N], int64_t j) const
    {
        CUDA_UNROLL
        for (int i = 0; i < N; i++)
            v[i] = log_probs ? 0 : cuda_exp(v[i] - top - log_sum) * whole;
        if (smooth > 0)
            CUDA_UNROLL
        for (int i = 0; i < N; i++)
            v[i] -= smooth * w.at(j + i, 1);
        if ((uint64_t)(t - j) < N)
            CUDA_UNROLL
        for (int i = 0; i < N; i++)
            v[i] -= j + i == t ? hit : 0;
        CUDA_UNROLL
        for (int i = 0; i < N; i++)
            v[i] = t < 0 ? 0 : v[i] * dy;
    }
};

/* The sum of the weights, by the whole team. */
template <typename X, typename TEAM>
__device__ static double sum_of_weights(const cross<X> &k, TEAM team)
{
    double sum = 0;
    if (!k.w.p || k.smoothing == 0)
        return (double)k.n;
    for (int64_t j = team.first(); j < k.n; j += team.step())
        sum += k.w.load(j);
    return team.combine(sum, cuda_plus());
}

/* What forward kept, and the gradient of its result. */
template <typename T> struct known {
    cuda_any<T> dy, count;
    const T *sums;
    int64_t m;
    int mode;
};

template <typename X, typename TEAM>
__device__ static slopes<typename X::real>
slopes_of(const cross<X> &k, const known<typename X::real> &f, int64_t row, TEAM team)
{
    typedef typename X::real real;
    int64_t t = class_of(k, row);
    double smooth = k.smoothing / (double)k.n, sum_w = sum_of_weights(k, team);
    double hit = t < 0 ? 0 : (1 - k.smoothing) * (double)k.w.at(t, 1);
    double dy = f.dy.load(f.mode == DET_REDUCE_NONE ? row : 0);
    dy = f.mode == DET_REDUCE_MEAN ? dy / f.count.load(0) : dy;
    return {k.w,          t,
            f.sums[row],  f.sums[f.m + row],
            (real)dy,     (real)(hit + smooth * sum_w),
            (real)smooth, (real)hit,
            k.log_probs};
}

struct cross_entropy_bwd {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        cross<X> k = cross_of<X>(s, c, 1);
        X dx = X::of(c->out[0]);
        int64_t m = c->in[1]->dims[0];
        known<real> f = {cuda_any<real>::of(c->in[0]), cuda_any<real>::of(c->in[5]),
                         in_real<real>(c, 4), m, c->a.mode};
        return cuda_teams(
            s, c, m, k.n, cuda_row_most<X>(),
            [=] __device__(int64_t row, auto team) {
                slopes<real> g = slopes_of(k, f, row, team);
                if (!team.more)
                    cuda_span_map(cuda_span<X>(k.x, row * k.step, k.n), dx, team, g);
            },
            err);
    }
};

#define ROWS(name, x, dx)                                                                          \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        return cuda_run_packed<name>(cuda_alike(x, dx), s, c, err);                                \
    }                                                                                              \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return name::run<cuda_any<double>>(s, c, err);                                             \
    }
ROWS(cross_entropy, c->in[0], c->in[0])
ROWS(cross_entropy_bwd, c->in[1], c->out[0])
