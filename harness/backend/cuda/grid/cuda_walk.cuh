/* The tensors of an element-wise call on the device, with any strides and dtypes. */
#ifndef CUDA_WALK_CUH
#define CUDA_WALK_CUH

#include "cuda_dtype.cuh"

extern "C" {
#include "walk.h"
}

/* out[0], then the inputs. */
struct cuda_walk {
    struct det__walk w;
    void *p[DET__WALK_MAX];
    int dtype[DET__WALK_MAX];
};

static inline struct cuda_walk cuda_walk_of(const struct det_call *c, int tensors)
{
    const struct det_tensor *t[DET__WALK_MAX];
    struct cuda_walk k;
    for (int i = 0; i < tensors; i++) {
        t[i] = i == 0 ? c->out[0] : c->in[i - 1];
        k.p[i] = t[i]->data;
        k.dtype[i] = t[i]->dtype;
    }
    det__walk_init(&k.w, tensors, t);
    return k;
}

/* Where element i of the walk lies in each of its N tensors. */
template <int N> struct cuda_place {
    int64_t at[N];
};

template <int N> __device__ inline cuda_place<N> cuda_place_of(const struct det__walk &w, int64_t i)
{
    cuda_place<N> r = {};
    for (int d = w.ndim - 1; d >= 0; d--) {
        int64_t rest = d > 0 ? cuda_div(i, w.dims[d]) : 0, index = i - rest * w.dims[d];
#pragma unroll
        for (int k = 0; k < N; k++)
            r.at[k] += index * w.strides[k][d];
        i = rest;
    }
    return r;
}

/* f of elements j of N inputs. */
template <int N, typename T, int WIDE, typename F>
__device__ inline auto cuda_apply(const T (&in)[N][WIDE], int j, F f)
{
    if constexpr (N == 1)
        return f(in[0][j]);
    else if constexpr (N == 2)
        return f(in[0][j], in[1][j]);
    else
        return f(in[0][j], in[1][j], in[2][j]);
}

/* Element i of the walk: out[0] = f of the N inputs there, read as T. */
template <typename T, int N, typename F>
__device__ inline void cuda_map_one(const struct cuda_walk &k, int64_t i, F f)
{
    cuda_place<N + 1> at = cuda_place_of<N + 1>(k.w, i);
    T in[N][1];
#pragma unroll
    for (int t = 0; t < N; t++)
        in[t][0] = cuda_load<T>(k.dtype[t + 1], k.p[t + 1], at.at[t + 1]);
    cuda_store(k.dtype[0], k.p[0], at.at[0], cuda_apply<N>(in, 0, f));
}

/* out[0] = f of the first N inputs, element by element. */
template <typename T, int N, typename F>
int cuda_map(struct det_stream *s, const struct det_call *c, F f, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, N + 1);
    return cuda_each(
        s, c, k.w.numel, DEVICE(int64_t i) { cuda_map_one<T, N>(k, i, f); }, err);
}

/* ---- packs: 8 elements of a row at a time, in pieces of 16 bytes ---- */

#define CUDA_PACK 8

static inline bool cuda_is_narrow(int dtype)
{
    return dtype == DET_F32 || dtype == DET_BF16 || dtype == DET_F16;
}

/* Whether tensor t's packs begin at 16 bytes, or its rows are one number each. */
static inline bool cuda_has_packs(const struct cuda_walk *k, int t)
{
    int row = k->w.ndim - 1;
    if (t > 0 && k->w.strides[t][row] == 0)
        return true;
    bool even = k->w.strides[t][row] == 1 && (uintptr_t)k->p[t] % 16 == 0;
    for (int d = 0; d < row; d++)
        even = even && k->w.strides[t][d] % CUDA_PACK == 0;
    return even;
}

/* A walk over packs instead of elements, of f32, f16 and bf16; the `rest` last elements of a
 * single row are left. False where the tensors do not lie so. */
static inline bool cuda_packs_of(const struct cuda_walk *k, struct det__walk *packs, int64_t *rest)
{
    int row = k->w.ndim - 1;
    *packs = k->w;
    *rest = k->w.dims[row] % CUDA_PACK;
    if (row > 0 && *rest > 0)
        return false;
    for (int t = 0; t < k->w.tensors; t++) {
        if (!cuda_is_narrow(k->dtype[t]) || !cuda_has_packs(k, t))
            return false;
        packs->strides[t][row] *= CUDA_PACK;
    }
    packs->dims[row] /= CUDA_PACK;
    packs->numel = k->w.numel / CUDA_PACK;
    return true;
}

/* The pack at element `at`, or that element 8 times. */
__device__ inline void cuda_load_pack(int dtype, const void *p, int64_t at, bool one,
                                      float (&v)[CUDA_PACK])
{
    if (one) {
        float x = cuda_load<float>(dtype, p, at);
#pragma unroll
        for (int j = 0; j < CUDA_PACK; j++)
            v[j] = x;
    } else if (dtype == DET_F32) {
        cuda_load_wide((const float *)p + at, v);
    } else {
        uint16_t h[CUDA_PACK];
        cuda_load_wide((const uint16_t *)p + at, h);
#pragma unroll
        for (int j = 0; j < CUDA_PACK; j++)
            v[j] = dtype == DET_BF16 ? det__bf16_to_f32(h[j]) : cuda_f16_to_f32(h[j]);
    }
}

__device__ inline void cuda_store_pack(int dtype, void *p, int64_t at, const float (&v)[CUDA_PACK])
{
    if (dtype == DET_F32) {
        cuda_store_wide((float *)p + at, v);
    } else {
        uint16_t h[CUDA_PACK];
#pragma unroll
        for (int j = 0; j < CUDA_PACK; j++)
            h[j] = dtype == DET_BF16 ? det__f32_to_bf16(v[j]) : cuda_f32_to_f16(v[j]);
        cuda_store_wide((uint16_t *)p + at, h);
    }
}

/* Pack i of `packs`. */
template <int N, typename F>
__device__ inline void cuda_map_pack(const struct cuda_walk &k, const struct det__walk &packs,
                                     int64_t i, F f)
{
    cuda_place<N + 1> at = cuda_place_of<N + 1>(packs, i);
    float in[N][CUDA_PACK], out[CUDA_PACK];
#pragma unroll
    for (int t = 0; t < N; t++)
        cuda_load_pack(k.dtype[t + 1], k.p[t + 1], at.at[t + 1],
                       packs.strides[t + 1][packs.ndim - 1] == 0, in[t]);
#pragma unroll
    for (int j = 0; j < CUDA_PACK; j++)
        out[j] = cuda_apply<N>(in, j, f);
    cuda_store_pack(k.dtype[0], k.p[0], at.at[0], out);
}

/* As cuda_map() in f32, for tensors that lie in packs; each f is code of its own. */
template <int N, typename F>
int cuda_map_packs(struct det_stream *s, const struct det_call *c, F f, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, N + 1);
    struct det__walk packs;
    int64_t rest;
    if (!cuda_packs_of(&k, &packs, &rest))
        return cuda_map<float, N>(s, c, f, err);
    int64_t first = k.w.numel - rest, n = packs.numel;
    return cuda_each(
        s, c, n + rest,
        DEVICE(int64_t i) {
            if (i < n)
                cuda_map_pack<N>(k, packs, i, f);
            else
                cuda_map_one<float, N>(k, first + (i - n), f);
        },
        err);
}

#endif
