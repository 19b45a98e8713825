/* Sums of columns, in tiles. */
#include "cuda_tile.cuh"

/* SUM: what a thread's rows are added up in; the parts are added in double. */
template <typename X, typename SUM> struct column_sums {
    typedef SUM real;
    typedef typename X::raw raw;
    static constexpr int width = X::width, batch = 8, blocks = 3, sums = 1;
    X x;
    void *y;
    int to;
    double scale;
    real sum[sums][width];

    __device__ void begin(int64_t, int64_t) {}
    __device__ raw load(int64_t at, int64_t) const { return x.load(at); }
    __device__ void use(const raw &r, int64_t)
    {
        typename X::real v[width];
        X::open(r, v);
        CUDA_UNROLL
        for (int i = 0; i < width; i++)
            sum[0][i] += (real)v[i];
    }
    __device__ void of_part(int64_t, int64_t, int64_t, double *) const {}
    __device__ void put(int64_t column, const double *v) const
    {
        cuda_store(to, y, column, v[0] * scale);
    }
};

/* in[0] and out[0] of the call; a.scale. */
template <typename SUM> struct by_columns {
    template <typename X>
    static int run(struct det_stream *s, const struct det_call *c, struct det_err *err)
    {
        const struct det_tensor *x = c->in[0];
        int64_t n = (int64_t)c->out[0]->numel;
        column_sums<X, SUM> f = {X::of(x), c->out[0]->data, c->out[0]->dtype, c->a.scale};
        return cuda_tile_sums(s, c, n > 0 ? (int64_t)x->numel / n : 0, n, f, err);
    }
};

int cuda_sum_columns(struct det_stream *s, const struct det_call *c, const struct det_tensor *x,
                     struct det_tensor *y, double scale, struct det_err *err)
{
    struct det_call call = {.kernel = c->kernel, .in = {x}, .out = {y}};
    call.a.scale = scale;
    if (x->dtype == DET_F64)
        return by_columns<double>::run<cuda_any<double>>(s, &call, err);
    int packed = cuda_packed({x}, (int64_t)y->numel);
    if (c->kernel == DET_KERNEL_REDUCE)
        return cuda_run_packed<by_columns<double>>(packed, s, &call, err);
    return cuda_run_packed<by_columns<float>>(packed, s, &call, err);
}
