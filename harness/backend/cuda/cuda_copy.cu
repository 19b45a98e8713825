/* Filling, copying and converting between any strides and dtypes, choosing, sums of what a
 * broadcast repeated. */
#include "cuda_walk.cuh"

int cuda_fill(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    void *y = c->out[0]->data;
    int dtype = c->out[0]->dtype;
    int64_t n = (int64_t)c->out[0]->numel;
    double v = c->a.scale;
    if (v == 0)
        return cuda_check(cudaMemsetAsync(y, 0, det_tensor_bytes(c->out[0]), s->native), "fill",
                          err);
    return cuda_each(s, c, n, DEVICE(int64_t i) { cuda_store(dtype, y, i, v); }, err);
}

/* Between f32 and narrower floating dtypes: no double is needed. */
static bool both_narrow(const struct det_tensor *x, const struct det_tensor *y)
{
    auto narrow = [](enum det_dtype t) { return t == DET_F32 || t == DET_BF16 || t == DET_F16; };
    return narrow(x->dtype) && narrow(y->dtype);
}

template <typename T>
static int convert(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return cuda_map<T, 1>(s, c, DEVICE(T x) { return x; }, err);
}

/* The bits as they are. */
static int move(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, 2);
    size_t size = det_dtype_size(c->out[0]->dtype);
    return cuda_each(
        s, c, k.w.numel,
        DEVICE(int64_t i) {
            struct cuda_place at = cuda_place_of(k.w, i);
            cuda_move(size, k.p[0], at.at[0], k.p[1], at.at[1]);
        },
        err);
}

int cuda_copy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    if (x->dtype == y->dtype)
        return move(s, c, err);
    if (both_narrow(x, y))
        return convert<float>(s, c, err);
    return det__is_float(x->dtype) ? convert<double>(s, c, err) : convert<int64_t>(s, c, err);
}

int cuda_where(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, 4);
    size_t size = det_dtype_size(c->out[0]->dtype);
    return cuda_each(
        s, c, k.w.numel,
        DEVICE(int64_t i) {
            struct cuda_place at = cuda_place_of(k.w, i);
            int from = cuda_get<int64_t>(k, at, 1) ? 2 : 3;
            cuda_move(size, k.p[0], at.at[0], k.p[from], at.at[from]);
        },
        err);
}

/* x's dimensions, apart: those that y has (0), those that are summed (1). */
struct sums {
    struct det__walk w[2];
};

static struct sums split(const struct det_tensor *x, const struct det_tensor *y)
{
    struct det_tensor wide;
    struct det__walk all;
    struct sums r = {};
    det__broadcast(y, x->ndim, x->dims, &wide);
    const struct det_tensor *t[] = {x, &wide};
    det__walk_init(&all, 2, t);
    for (int i = 0; i < 2; i++)
        r.w[i].tensors = 2, r.w[i].numel = 1;
    for (int d = 0; d < all.ndim; d++) {
        struct det__walk *w = &r.w[all.strides[1][d] == 0];
        w->dims[w->ndim] = all.dims[d];
        w->strides[0][w->ndim] = all.strides[0][d];
        w->strides[1][w->ndim++] = all.strides[1][d];
        w->numel *= all.dims[d];
    }
    return r;
}

int cuda_sum_to(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct sums k = split(c->in[0], c->out[0]);
    int from = c->in[0]->dtype, to = c->out[0]->dtype;
    const void *x = c->in[0]->data;
    void *y = c->out[0]->data;
    if (c->in[0]->numel == 0) {
        struct det_call fill = {};
        fill.out[0] = c->out[0];
        return cuda_fill(s, &fill, err);
    }
    return cuda_columns(
        s, c, k.w[0].numel, k.w[1].numel,
        [=] __device__(int64_t i, auto team) {
            struct cuda_place at = cuda_place_of(k.w[0], i);
            double total = 0;
            for (int64_t j = team.first(); j < k.w[1].numel; j += team.step())
                total += cuda_load<double>(from, x, at.at[0] + cuda_place_of(k.w[1], j).at[0]);
            total = team.combine(total, cuda_plus());
            if (team.leader())
                cuda_store(to, y, at.at[1], total);
        },
        err);
}
