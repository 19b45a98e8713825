/* Reductions to one number, over rows, and over the middle dimension of [A, N, B]. */
#include "cuda_total.cuh"

/* What all totals of x have. */
template <typename X, typename T, typename OP> struct map_of_x {
    typedef typename X::raw raw;
    typedef T total;
    typedef OP op;
    static constexpr int width = X::width;
    X x;

    static double scale(const struct det_call *) { return 1; }
    __device__ raw load(int64_t i) const { return x.load(i); }
};

template <typename X> struct values : map_of_x<X, double, cuda_plus> {
    static values of(const struct det_call *c) { return {{X::of(c->in[0])}}; }
    static double scale(const struct det_call *c) { return c->a.scale; }
    __device__ void open(const typename X::raw &r, double *v) const
    {
        typename X::real x[X::width];
        X::open(r, x);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            v[i] = x[i];
    }
};
CUDA_TOTAL(sum, values)

template <typename T>
static int sum_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *dy = in_real<T>(c, 0);
    T *dx = out_real<T>(c, 0), scale = (T)c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel, DEVICE(int64_t i) { dx[i] = scale * *dy; }, err);
}
CUDA_REAL(sum_bwd)

template <typename X> struct squares : map_of_x<X, double, cuda_plus> {
    static squares of(const struct det_call *c) { return {{X::of(c->in[0])}}; }
    __device__ void open(const typename X::raw &r, double *v) const
    {
        typename X::real x[X::width];
        X::open(r, x);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            v[i] = (double)x[i] * x[i];
    }
};
CUDA_TOTAL(sqnorm, squares)

struct greater_or_nan {
    template <typename T> __device__ T operator()(T a, T b) const
    {
        return b <= a || a != a ? a : b;
    }
};

template <typename X> struct sizes : map_of_x<X, typename X::real, greater_or_nan> {
    static sizes of(const struct det_call *c) { return {{X::of(c->in[0])}}; }
    __device__ void open(const typename X::raw &r, typename X::real *v) const
    {
        X::open(r, v);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            v[i] = fabs(v[i]);
    }
};
CUDA_TOTAL(absmax, sizes)

/* By their bits, as the other backends. */
template <typename T>
static int eq_count(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *x = (const T *)c->in[0]->data, *y = (const T *)c->in[1]->data;
    return cuda_sum_of(
        s, c, (int64_t)c->in[0]->numel, DEVICE(int64_t i) { return x[i] == y[i] ? 1.0 : 0.0; }, 1,
        out_real<float>(c, 0), err);
}

int cuda_eq_count(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (det_dtype_size(c->in[0]->dtype)) {
    case 8: return eq_count<uint64_t>(s, c, err);
    case 4: return eq_count<uint32_t>(s, c, err);
    case 2: return eq_count<uint16_t>(s, c, err);
    default: return eq_count<uint8_t>(s, c, err);
    }
}

/* The greatest or least v so far and where; the first of equals. `nans`: a NaN is greater than
 * all; else it is never chosen but as the first element. */
template <typename T> struct extreme {
    T v;
    int64_t at;
};
template <typename T> struct better {
    bool least;
    bool nans;
    __device__ extreme<T> operator()(extreme<T> a, extreme<T> b) const
    {
        bool nan_a = a.v != a.v, nan_b = b.v != b.v, equal = a.v == b.v || (nan_a && nan_b);
        if (a.at < 0 || b.at < 0)
            return a.at < 0 ? b : a;
        if (equal)
            return b.at < a.at ? b : a;
        if (nan_a || nan_b)
            return nan_b == nans ? b : a;
        return (least ? b.v < a.v : b.v > a.v) ? b : a;
    }
};

/* One column of [A, N, B]: its first element, the distance between elements. */
struct column {
    int64_t first, step;
};

__device__ static struct column column_of(int64_t i, int64_t n, int64_t b)
{
    int64_t a = cuda_div(i, b);
    return {a * n * b + (i - a * b), b};
}

/* Floating numbers are summed in double, whole ones modulo 2^64. */
template <typename T> struct sum_of {
    typedef double type;
};
template <> struct sum_of<int64_t> {
    typedef uint64_t type;
};

template <typename A> struct plus_of {
    __device__ A operator()(A a, A b) const { return a + b; }
};
template <typename A> struct times_of {
    __device__ A operator()(A a, A b) const { return a * b; }
};

/* put(i, all of column i combined by op, its place) for the columns of x, [A, N, B]: value(v, j) is
 * what element j counts as, of value v; `zero`: of none. */
template <typename T, typename A, typename VALUE, typename OP, typename PUT>
static int combine_columns(struct det_stream *s, const struct det_call *c, int64_t columns,
                           int64_t n, int64_t b, A zero, VALUE value, OP op, PUT put,
                           struct det_err *err)
{
    const T *x = (const T *)c->in[0]->data;
    return cuda_columns(
        s, c, columns, n,
        [=] __device__(int64_t i, auto team) {
            struct column k = column_of(i, n, b);
            A total = zero;
            for (int64_t j = team.first(); j < n; j += team.step())
                total = op(total, value(x[k.first + j * k.step], j));
            total = team.combine(total, op);
            if (team.leader())
                put(i, total);
        },
        err);
}

template <typename T, typename A, typename OP>
static int fold(struct det_stream *s, const struct det_call *c, A zero, OP op, A scale,
                struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    T *y = (T *)c->out[0]->data;
    return combine_columns<T>(
        s, c, (int64_t)c->out[0]->numel, x->dims[1], x->dims[2], zero,
        DEVICE(T v, int64_t) { return (A)v; }, op,
        DEVICE(int64_t i, A total) { y[i] = (T)(scale * total); }, err);
}

template <typename T>
static int extremes(struct det_stream *s, const struct det_call *c, better<T> op,
                    struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    int64_t *index = out_i64(c, 1);
    T *y = (T *)c->out[0]->data;
    return combine_columns<T>(
        s, c, (int64_t)c->out[0]->numel, x->dims[1], x->dims[2], extreme<T>{0, -1},
        DEVICE(T v, int64_t j) {
            return extreme<T>{v, j};
        },
        op,
        DEVICE(int64_t i, extreme<T> best) {
            y[i] = best.v;
            index[i] = best.at;
        },
        err);
}

template <typename T>
static int argmax(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], *y = out_i64(c, 0);
    const T *x = in_real<T>(c, 0);
    return combine_columns<T>(
        s, c, m, n, 1, extreme<T>{0, -1},
        DEVICE(T v, int64_t j) {
            return extreme<T>{v, j};
        },
        better<T>{false, false},
        DEVICE(int64_t i, extreme<T> best) { y[i] = x[i * n] != x[i * n] ? 0 : best.at; }, err);
}
CUDA_REAL(argmax)

template <typename T>
static int reduce(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    typedef typename sum_of<T>::type A;
    const struct det_tensor *x = c->in[0];
    bool rows = x->dims[0] == 1 && x->dims[2] > 1 && det__is_float(x->dtype);
    if (rows && c->a.mode == DET_REDUCE_DIM_SUM)
        return cuda_sum_columns(s, c, x, c->out[0], c->a.scale, err);
    switch (c->a.mode) {
    case DET_REDUCE_DIM_SUM: return fold<T, A>(s, c, 0, plus_of<A>(), (A)c->a.scale, err);
    case DET_REDUCE_DIM_PROD: return fold<T, A>(s, c, 1, times_of<A>(), 1, err);
    case DET_REDUCE_DIM_MAX: return extremes<T>(s, c, {false, true}, err);
    default: return extremes<T>(s, c, {true, true}, err);
    }
}

int cuda_reduce(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (c->in[0]->dtype) {
    case DET_F32: return reduce<float>(s, c, err);
    case DET_F64: return reduce<double>(s, c, err);
    default: return reduce<int64_t>(s, c, err);
    }
}

/* dy times the product of the others: those before from the left, those after from the right. */
template <typename T>
static int product_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->out[0]->dims[1], b = c->out[0]->dims[2];
    const T *dy = (const T *)c->in[0]->data, *x = (const T *)c->in[1]->data;
    T *dx = (T *)c->out[0]->data;
    return cuda_each(
        s, c, (int64_t)c->in[0]->numel,
        DEVICE(int64_t i) {
            struct column k = column_of(i, n, b);
            double before = 1, after = 1;
            for (int64_t j = 0; j < n; j++) {
                dx[k.first + j * k.step] = (T)before;
                before *= x[k.first + j * k.step];
            }
            for (int64_t j = n - 1; j >= 0; j--) {
                int64_t at = k.first + j * k.step;
                dx[at] = (T)(dx[at] * after * dy[i]);
                after *= x[at];
            }
        },
        err);
}

template <typename T>
static int reduce_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->out[0]->dims[1], b = c->out[0]->dims[2];
    const T *dy = (const T *)c->in[0]->data;
    T *dx = (T *)c->out[0]->data, scale = (T)c->a.scale;
    if (c->a.mode == DET_REDUCE_DIM_PROD)
        return product_bwd<T>(s, c, err);
    const int64_t *index = c->a.mode == DET_REDUCE_DIM_SUM ? NULL : in_i64(c, 2);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, b), a = cuda_div(row, n), at = a * b + (i - row * b);
            dx[i] = !index ? scale * dy[at] : index[at] == row - a * n ? dy[at] : 0;
        },
        err);
}

int cuda_reduce_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return c->in[0]->dtype == DET_F64 ? reduce_bwd<double>(s, c, err)
                                      : reduce_bwd<float>(s, c, err);
}

template <typename T>
static int cumsum(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    typedef typename sum_of<T>::type A;
    int64_t n = c->in[0]->dims[1], b = c->in[0]->dims[2];
    const T *x = (const T *)c->in[0]->data;
    T *y = (T *)c->out[0]->data;
    bool reverse = c->a.reverse;
    return cuda_each(
        s, c, c->in[0]->dims[0] * b,
        DEVICE(int64_t i) {
            struct column k = column_of(i, n, b);
            A total = 0;
            for (int64_t j = 0; j < n; j++) {
                int64_t at = k.first + (reverse ? n - 1 - j : j) * k.step;
                total += (A)x[at];
                y[at] = (T)total;
            }
        },
        err);
}

int cuda_cumsum(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (c->in[0]->dtype) {
    case DET_F32: return cumsum<float>(s, c, err);
    case DET_F64: return cumsum<double>(s, c, err);
    default: return cumsum<int64_t>(s, c, err);
    }
}
