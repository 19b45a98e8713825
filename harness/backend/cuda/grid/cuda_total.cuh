/* One number from a whole tensor: parts of fixed size, then the parts. */
#ifndef CUDA_TOTAL_CUH
#define CUDA_TOTAL_CUH

#include "cuda_pack.cuh"

#define CUDA_PARTS_MAX 1024 /* about as many blocks as a device runs at once */
#define CUDA_AT_ONCE   4    /* loads of a thread before the first is used */

/* What is combined, WIDTH elements of it at a time: load() as they lie, open() as what counts. */
template <typename T, typename F> struct cuda_values {
    typedef T raw;
    static constexpr int width = 1;
    F f;
    __device__ T load(int64_t i) const { return f(i); }
    __device__ void open(const T &r, T *v) const { *v = r; }
};

/* sum and the values from i on, i, i + step and so on, CUDA_AT_ONCE of them. */
template <typename T, typename V, typename OP>
__device__ inline T cuda_add_some(T sum, const V &f, int64_t i, int64_t step, OP op)
{
    typename V::raw r[CUDA_AT_ONCE];
    T v[V::width];
    CUDA_UNROLL
    for (int k = 0; k < CUDA_AT_ONCE; k++)
        r[k] = f.load(i + k * step);
    CUDA_UNROLL
    for (int k = 0; k < CUDA_AT_ONCE; k++) {
        f.open(r[k], v);
        CUDA_UNROLL
        for (int e = 0; e < V::width; e++)
            sum = op(sum, v[e]);
    }
    return sum;
}

/* The part of thread `first` of `threads`, of n values. */
template <typename T, typename V, typename OP>
__device__ inline T cuda_part(const V &f, int64_t n, int64_t first, int64_t threads, T zero, OP op)
{
    T sum = zero, v[V::width];
    int64_t i = first * V::width, step = threads * V::width, whole = n / V::width * V::width;
    for (; i + (CUDA_AT_ONCE - 1) * step < whole; i += CUDA_AT_ONCE * step)
        sum = cuda_add_some(sum, f, i, step, op);
    for (; i < whole; i += step) {
        f.open(f.load(i), v);
        CUDA_UNROLL
        for (int e = 0; e < V::width; e++)
            sum = op(sum, v[e]);
    }
    return sum;
}

/* put(all of part[0..parts), combined by `op` from `zero`), called by one thread. */
template <typename T, typename OP, typename PUT>
int cuda_total_parts(struct det_stream *s, const struct det_call *c, const T *part, int64_t parts,
                     T zero, OP op, PUT put, struct det_err *err)
{
    auto value = DEVICE(int64_t i)
    {
        return part[i];
    };
    cuda_values<T, decltype(value)> values = {value};
    return cuda_blocks(
        s, c, 1,
        DEVICE(int64_t) {
            T sum = cuda_part(values, parts, threadIdx.x, blockDim.x, zero, op);
            sum = cuda_combine(sum, op);
            if (threadIdx.x == 0)
                put(sum);
        },
        err);
}

/* put(total of the n elements that f and rest both have), rest by single ones. */
template <typename T, typename V, typename R, typename OP, typename PUT>
int cuda_total_of(struct det_stream *s, const struct det_call *c, int64_t n, V f, R rest, T zero,
                  OP op, PUT put, struct det_err *err)
{
    int64_t most = CUDA_AT_ONCE * CUDA_BLOCK * V::width, parts = (n + most - 1) / most;
    void *work = NULL;
    parts = parts < 1 ? 1 : parts > CUDA_PARTS_MAX ? CUDA_PARTS_MAX : parts;
    int rc = cuda_workspace(s->device, CUDA_PARTS_MAX * sizeof(T), &work, err);
    T *part = (T *)work;
    if (rc < 0)
        return rc;
    rc = cuda_blocks(
        s, c, parts,
        DEVICE(int64_t b) {
            T sum = cuda_part(f, n, b * blockDim.x + threadIdx.x, parts * blockDim.x, zero, op), v;
            int64_t whole = n / V::width * V::width;
            for (int64_t i = whole + threadIdx.x; b == 0 && i < n; i += blockDim.x) {
                rest.open(rest.load(i), &v);
                sum = op(sum, v);
            }
            sum = cuda_combine(sum, op);
            if (threadIdx.x == 0)
                part[b] = sum;
        },
        err);
    return rc < 0 ? rc : cuda_total_parts(s, c, part, parts, zero, op, put, err);
}

/* put(total of f(i) for i in 0..n-1, combined by `op` from `zero`), called by one thread. */
template <typename T, typename F, typename OP, typename PUT>
int cuda_total(struct det_stream *s, const struct det_call *c, int64_t n, F f, T zero, OP op,
               PUT put, struct det_err *err)
{
    cuda_values<T, F> values = {f};
    return cuda_total_of(s, c, n, values, values, zero, op, put, err);
}

/* *y = scale * the sum of f(i). */
template <typename T, typename F>
int cuda_sum_of(struct det_stream *s, const struct det_call *c, int64_t n, F f, double scale, T *y,
                struct det_err *err)
{
    return cuda_total(
        s, c, n, f, 0.0, cuda_plus(), DEVICE(double sum) { *y = (T)(scale * sum); }, err);
}

/*
 * The first output = scale() times the total of all elements of MAP: a template of how tensors are
 * read (cuda_pack.cuh), with what cuda_values has, and of(c), scale(c), the type `total` and the
 * function `op`. cuda_totalled() says what goes by packs.
 */
template <template <typename> class MAP> struct cuda_packed_total {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        typedef typename X::real real;
        cuda_any<real> y = cuda_any<real>::of(c->out[0]);
        double scale = MAP<X>::scale(c);
        typename MAP<X>::total zero = 0;
        return cuda_total_of(
            s, c, (int64_t)c->in[0]->numel, MAP<X>::of(c), MAP<cuda_any<real>>::of(c), zero,
            typename MAP<X>::op(),
            DEVICE(typename MAP<X>::total all) {
                real v = (real)(scale * all);
                y.store(0, &v);
            },
            err);
    }
};

static inline int cuda_totalled(const struct det_call *c)
{
    return cuda_packed({c->in[0], c->in[1]}, sizeof(cuda_quad));
}

/* Defines cuda_<name>() and cuda_<name>_f64() by a MAP. */
#define CUDA_TOTAL(name, map)                                                                      \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        return cuda_run_packed<cuda_packed_total<map>>(cuda_totalled(c), s, c, err);               \
    }                                                                                              \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return cuda_packed_total<map>::run<cuda_any<double>>(s, c, err);                           \
    }

#endif
