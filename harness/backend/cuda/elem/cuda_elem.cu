/* The functions of elem.h, in f32, in double for f64, in int64 for whole numbers. */
#include "cuda_pack.cuh"
#include "cuda_walk.cuh"
#include "cuda_warp.cuh"

#define ELEM_T T

template <typename T> __device__ T unary_value(int fn, T x, T p, T q)
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

template <typename T> __device__ T unary_slope(int fn, T dy, T x, T y, T p, T q)
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

template <typename T> __device__ T binary_value(int fn, T a, T b)
{
    switch (fn) {
#define X(NAME, value, slope_a, slope_b)                                                           \
    case DET_BINARY_##NAME: return value;
        DET_BINARY(X)
#undef X
    }
    return a;
}

template <typename T> __device__ T binary_slope(int fn, bool side, T dy, T a, T b)
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

template <typename T> __device__ bool truth(int fn, T a, T b)
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

/* (1 + GELU's tanh) / 2, as 1 / (1 + exp(-2 u)): tanh() costs more than the memory does. */
__device__ static float gelu_gate(float x)
{
    float u = x * (0.7978845608028654f + 0.035677408136300125f * x * x);
    float d = 1 + cuda_exp2(-2.8853900817779268f * u);
#ifdef __CUDA_ARCH__
    return __fdividef(1.0f, d);
#else
    return 1 / d;
#endif
}

template <int FN> struct own_unary {
    float p, q;
    __device__ float operator()(float x) const
    {
        if constexpr (FN == DET_UNARY_GELU_TANH)
            return x * gelu_gate(x);
        else
            return unary_value<float>(FN, x, p, q);
    }
};

template <int FN> struct own_unary_bwd {
    float p, q;
    __device__ float operator()(float dy, float x, float y) const
    {
        if constexpr (FN == DET_UNARY_GELU_TANH) {
            float s = gelu_gate(x), up = 0.7978845608028654f + 0.1070322244089004f * x * x;
            return dy * (s + 2 * x * s * (1 - s) * up);
        } else {
            return unary_slope<float>(FN, dy, x, y, p, q);
        }
    }
};

template <int FN> struct own_binary {
    __device__ float operator()(float a, float b) const { return binary_value<float>(FN, a, b); }
};

/* ---- bf16 and f16 that lie alike: two packs a thread, all loaded before the first is used ---- */

template <int N> struct halves {
    const cuda_quad *in[N];
    cuda_quad *out;
    int64_t n; /* packs; 0: the tensors do not lie so */
    bool bf16;
};

template <int N> static struct halves<N> halves_of(const struct det_call *c) {
    struct cuda_walk k = cuda_walk_of(c, N + 1);
    struct halves<N> h = {
    };
    bool alike = k.w.ndim == 1 && k.w.numel % CUDA_PACK == 0;
    for (int t = 0; t <= N; t++) {
        alike = alike && k.dtype[t] == k.dtype[0] && k.w.strides[t][0] == 1 &&
                (uintptr_t)k.p[t] % sizeof(cuda_quad) == 0;
        if (t > 0)
            h.in[t - 1] = (const cuda_quad *)k.p[t];
    }
    h.out = (cuda_quad *)k.p[0];
    h.bf16 = k.dtype[0] == DET_BF16;
    h.n = alike && (h.bf16 || k.dtype[0] == DET_F16) ? k.w.numel / CUDA_PACK : 0;
    return h;
}

template <typename E, int N, typename F>
__device__ static cuda_quad halves_apply(const cuda_quad (&in)[N], F f)
{
    cuda_quad out;
    CUDA_UNROLL
    for (int w = 0; w < 4; w++) {
        float v[N][2], y[2];
        CUDA_UNROLL
        for (int t = 0; t < N; t++)
            cuda_open_pair(E(), in[t].w[w], v[t]);
        y[0] = cuda_apply<N>(v, 0, f);
        y[1] = cuda_apply<N>(v, 1, f);
        out.w[w] = cuda_close_pair(E(), y);
    }
    return out;
}

template <int N, typename F>
static int map_halves(struct det_stream *s, const struct det_call *c, const struct halves<N> &h,
                      F f, struct det_err *err)
{
    int64_t step = (h.n + 1) / 2;
    return cuda_each(
        s, c, step,
        DEVICE(int64_t i) {
            cuda_quad in[2][N];
            CUDA_UNROLL
            for (int u = 0; u < 2; u++)
                CUDA_UNROLL
            for (int t = 0; t < N; t++)
                if (i + u * step < h.n)
                    in[u][t] = h.in[t][i + u * step];
            CUDA_UNROLL
            for (int u = 0; u < 2; u++)
                if (i + u * step < h.n)
                    h.out[i + u * step] = h.bf16 ? halves_apply<cuda_bf16>(in[u], f)
                                                 : halves_apply<cuda_f16>(in[u], f);
        },
        err);
}

template <int N, typename F>
static int map_own(struct det_stream *s, const struct det_call *c, F f, struct det_err *err)
{
    struct halves<N> h = halves_of<N>(c);
    return h.n > 0 ? map_halves<N>(s, c, h, f, err) : cuda_map_packs<N>(s, c, f, err);
}

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
    return cuda_map<T, 1>(
        s, c, DEVICE(T x) { return unary_value<T>(fn, x, p, q); }, err);
}

static int own_or_any_unary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    float p = (float)c->a.lo, q = (float)c->a.hi;
    switch (in_packs(c, 2) ? c->a.fn : -1) {
#define X(NAME)                                                                                    \
    case DET_UNARY_##NAME: return map_own<1>(s, c, own_unary<DET_UNARY_##NAME>{p, q}, err);
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
    case DET_UNARY_##NAME: return map_own<3>(s, c, own_unary_bwd<DET_UNARY_##NAME>{p, q}, err);
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
    return cuda_map<T, 2>(
        s, c, DEVICE(T a, T b) { return binary_value<T>(fn, a, b); }, err);
}

static int own_or_any_binary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    switch (in_packs(c, 3) ? c->a.fn : -1) {
#define X(NAME)                                                                                    \
    case DET_BINARY_##NAME: return map_own<2>(s, c, own_binary<DET_BINARY_##NAME>{}, err);
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
    return map_own<2>(s, &two, own_product{}, err);
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
    return cuda_map<T, 2>(
        s, c, DEVICE(T a, T b) { return (int64_t)truth<T>(fn, a, b); }, err);
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
