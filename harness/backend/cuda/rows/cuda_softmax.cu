/* Softmax over rows; the row's maximum is subtracted first (Goodfellow et al. 2016, 4.1). */
#include "cuda_row.cuh"

template <typename X>
static int forward(struct det_stream *s, const struct det_call *c, bool log, struct det_err *err)
{
    typedef typename X::real real;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    X x = X::of(c->in[0]), y = X::of(c->out[0]);
    return cuda_teams(
        s, c, n > 0 ? m : 0, n, cuda_row_most<X>(),
        [=] __device__(int64_t row, auto team) {
            cuda_exps<real> r = cuda_row_exps(cuda_span<X>(x, row * n, n), team);
            real log_sum = (real)::log(r.sum);
            if (team.more)
                return;
            for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
                real v[X::width];
                X::open(x.load(row * n + j), v);
                CUDA_UNROLL
                for (int i = 0; i < X::width; i++) {
                    v[i] = v[i] - r.top - log_sum; /* top + log_sum would lose digits */
                    v[i] = log ? v[i] : exp(v[i]);
                }
                y.store(row * n + j, v);
            }
        },
        err);
}

template <typename X>
static int backward(struct det_stream *s, const struct det_call *c, bool log, struct det_err *err)
{
    typedef typename X::real real;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    X dy = X::of(c->in[0]), y = X::of(c->in[1]), dx = X::of(c->out[0]);
    return cuda_teams(
        s, c, n > 0 ? m : 0, n, cuda_row_most<X>(),
        [=] __device__(int64_t row, auto team) {
            real sum = 0, d[X::width], v[X::width];
            for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
                X::open(dy.load(row * n + j), d);
                X::open(y.load(row * n + j), v);
                CUDA_UNROLL
                for (int i = 0; i < X::width; i++)
                    sum += log ? d[i] : d[i] * v[i];
            }
            sum = (real)team.combine(sum, cuda_plus());
            if (team.more)
                return;
            for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
                X::open(dy.load(row * n + j), d);
                X::open(y.load(row * n + j), v);
                CUDA_UNROLL
                for (int i = 0; i < X::width; i++)
                    d[i] = log ? d[i] - exp(v[i]) * sum : v[i] * (d[i] - sum);
                dx.store(row * n + j, d);
            }
        },
        err);
}

template <bool LOG> struct softmax_of {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        return forward<X>(s, c, LOG, err);
    }
};

template <bool LOG> struct softmax_back {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        return backward<X>(s, c, LOG, err);
    }
};

static int packed(const struct det_call *c)
{
    return cuda_packed({c->in[0], c->in[1], c->out[0]}, c->in[0]->dims[1]);
}

#define ROWS(name, kernel)                                                                         \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        return cuda_run_packed<kernel>(packed(c), s, c, err);                                      \
    }                                                                                              \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return kernel::run<cuda_any<double>>(s, c, err);                                           \
    }
ROWS(softmax, softmax_of<false>)
ROWS(log_softmax, softmax_of<true>)
ROWS(softmax_bwd, softmax_back<false>)
ROWS(log_softmax_bwd, softmax_back<true>)
