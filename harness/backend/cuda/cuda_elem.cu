/* The functions of elem.h, in f32, in double for f64, in int64 for whole numbers. */
#include "cuda_walk.cuh"

#define ELEM_T T

template <typename T>
__device__ T unary_value(int fn, T x, T p, T q)
{
    (void)p, (void)q;
    switch (fn) {
#define X(NAME, value, slope)                                                                      \
    case DET_UNARY_##NAME: return value;
        DET_UNARY(X)
#undef X
    }
    return x;
}

template <typename T>
__device__ T unary_slope(int fn, T dy, T x, T y, T p, T q)
{
    (void)x, (void)y, (void)p, (void)q;
    switch (fn) {
#define X(NAME, value, slope)                                                                      \
    case DET_UNARY_##NAME: return slope;
        DET_UNARY(X)
#undef X
    }
    return dy;
}

template <typename T>
__device__ T binary_value(int fn, T a, T b)
{
    switch (fn) {
#define X(NAME, value, slope_a, slope_b)                                                           \
    case DET_BINARY_##NAME: return value;
        DET_BINARY(X)
#undef X
    }
    return a;
}

template <typename T>
__device__ T binary_slope(int fn, bool side, T dy, T a, T b)
{
    (void)a, (void)b;
    switch (fn) {
#define X(NAME, value, slope_a, slope_b)                                                           \
    case DET_BINARY_##NAME: return side ? (T)(slope_b) : (T)(slope_a);
        DET_BINARY(X)
#undef X
    }
    return dy;
}

__device__ static int64_t whole_value(int fn, int64_t a, int64_t b)
{
    switch (fn) {
#define X(NAME, value)                                                                             \
    case DET_BINARY_##NAME: return value;
        DET_BINARY_WHOLE(X)
#undef X
    }
    return a;
}

template <typename T>
__device__ bool truth(int fn, T a, T b)
{
    switch (fn) {
#define X(NAME, value)                                                                             \
    case DET_COMPARE_##NAME: return value;
        DET_COMPARE(X)
#undef X
    }
    return false;
}

/* Functions that networks are full of have code of their own, for f32, f16 and bf16 in packs. */
#define OWN_UNARY(X)                                                                               \
    X(AFFINE) X(RELU) X(EXP) X(TANH) X(SIGMOID) X(GELU) X(GELU_TANH) X(SILU) X(LEAKY_RELU) X(CLAMP)
#define OWN_UNARY_BWD(X) X(RELU) X(TANH) X(SIGMOID) X(GELU) X(GELU_TANH) X(SILU) X(LEAKY_RELU)
#define OWN_BINARY(X)    X(ADD) X(SUB) X(MUL) X(DIV) X(RELU_BWD)

template <int FN>
struct own_unary {
    float p, q;
    __device__ float operator()(float x) const { return unary_value<float>(FN, x, p, q); }
};

template <int FN>
struct own_unary_bwd {
    float p, q;
    __device__ float operator()(float dy, float x, float y) const
    {
        return unary_slope<float>(FN, dy, x, y, p, q);
    }
};

template <int FN>
struct own_binary {
    __device__ float operator()(float a, float b) const { return binary_value<float>(FN, a, b); }
};

static bool in_packs(const struct det_call *c, int tensors)
{
    struct cuda_walk k = cuda_walk_of(c, tensors);
    struct det__walk packs;
    int64_t rest;
    return cuda_packs_of(&k, &packs, &rest);
}

template <typename T>
static int unary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int fn = c->a.fn;
    T p = (T)c->a.lo, q = (T)c->a.hi;
    return cuda_map<T, 1>(s, c, DEVICE(T x) { return unary_value<T>(fn, x, p, q); }, err);
}

static int own_or_any_unary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    float p = (float)c->a.lo, q = (float)c->a.hi;
    switch (in_packs(c, 2) ? c->a.fn : -1) {
#define X(NAME)                                                                                    \
    case DET_UNARY_##NAME:                                                                         \
        return cuda_map_packs<1>(s, c, own_unary<DET_UNARY_##NAME>{p, q}, err);
        OWN_UNARY(X)
#undef X
    }
    return unary<float>(s, c, err);
}

int cuda_unary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return c->out[0]->dtype == DET_F64 ? unary<double>(s, c, err) : own_or_any_unary(s, c, err);
}

template <typename T>
static int unary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int fn = c->a.fn;
    T p = (T)c->a.lo, q = (T)c->a.hi;
    return cuda_map<T, 3>(
        s, c, DEVICE(T dy, T x, T y) { return unary_slope<T>(fn, dy, x, y, p, q); }, err);
}

static int own_or_any_unary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    float p = (float)c->a.lo, q = (float)c->a.hi;
    switch (in_packs(c, 4) ? c->a.fn : -1) {
#define X(NAME)                                                                                    \
    case DET_UNARY_##NAME:                                                                         \
        return cuda_map_packs<3>(s, c, own_unary_bwd<DET_UNARY_##NAME>{p, q}, err);
        OWN_UNARY_BWD(X)
#undef X
    }
    return unary_bwd<float>(s, c, err);
}

int cuda_unary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return c->out[0]->dtype == DET_F64 ? unary_bwd<double>(s, c, err)
                                       : own_or_any_unary_bwd(s, c, err);
}

template <typename T>
static int binary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int fn = c->a.fn;
    return cuda_map<T, 2>(s, c, DEVICE(T a, T b) { return binary_value<T>(fn, a, b); }, err);
}

static int own_or_any_binary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (in_packs(c, 3) ? c->a.fn : -1) {
#define X(NAME)                                                                                    \
    case DET_BINARY_##NAME:                                                                        \
        return cuda_map_packs<2>(s, c, own_binary<DET_BINARY_##NAME>{}, err);
        OWN_BINARY(X)
#undef X
    }
    return binary<float>(s, c, err);
}

static int whole(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int fn = c->a.fn;
    return cuda_map<int64_t, 2>(
        s, c, DEVICE(int64_t a, int64_t b) { return whole_value(fn, a, b); }, err);
}

int cuda_binary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    enum det_dtype dtype = c->out[0]->dtype;
    if (!det__is_float(dtype))
        return whole(s, c, err);
    return dtype == DET_F64 ? binary<double>(s, c, err) : own_or_any_binary(s, c, err);
}

struct own_product {
    __device__ float operator()(float dy, float other) const { return dy * other; }
};

/* The slope of a product, the only one that is met often, reads two of three. */
static int product_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct det_call two = *c;
    two.in[1] = c->in[c->a.side ? 1 : 2];
    return cuda_map_packs<2>(s, &two, own_product{}, err);
}

template <typename T>
static int binary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int fn = c->a.fn;
    bool side = c->a.side;
    return cuda_map<T, 3>(
        s, c, DEVICE(T dy, T a, T b) { return binary_slope<T>(fn, side, dy, a, b); }, err);
}

int cuda_binary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    if (c->out[0]->dtype == DET_F64)
        return binary_bwd<double>(s, c, err);
    return c->a.fn == DET_BINARY_MUL ? product_bwd(s, c, err) : binary_bwd<float>(s, c, err);
}

template <typename T>
static int compare(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int fn = c->a.fn;
    return cuda_map<T, 2>(s, c, DEVICE(T a, T b) { return (int64_t)truth<T>(fn, a, b); }, err);
}

int cuda_compare(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    enum det_dtype dtype = c->in[0]->dtype;
    if (!det__is_float(dtype))
        return compare<int64_t>(s, c, err);
    return dtype == DET_F64 ? compare<double>(s, c, err) : compare<float>(s, c, err);
}

/* Kernels of their own that are one of the functions. */
#define AS(kernel, of, FN)                                                                         \
    int kernel(struct det_stream *s, const struct det_call *c, struct det_err *err)                \
    {                                                                                              \
        struct det_call as = *c;                                                                   \
        as.a.fn = FN;                                                                              \
        return of(s, &as, err);                                                                    \
    }
AS(cuda_add, cuda_binary, DET_BINARY_ADD)
AS(cuda_sub, cuda_binary, DET_BINARY_SUB)
AS(cuda_mul, cuda_binary, DET_BINARY_MUL)
AS(cuda_relu, cuda_unary, DET_UNARY_RELU)
AS(cuda_relu_bwd, cuda_binary, DET_BINARY_RELU_BWD)
AS(cuda_clamp, cuda_unary, DET_UNARY_CLAMP)

int cuda_affine(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct det_call as = *c;
    as.a.fn = DET_UNARY_AFFINE;
    as.a.lo = c->a.scale;
    as.a.hi = c->a.offset;
    return cuda_unary(s, &as, err);
}
