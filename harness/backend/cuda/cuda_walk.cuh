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

/* Where element i of the walk lies in each tensor. */
struct cuda_place {
    int64_t at[DET__WALK_MAX];
};

__device__ inline struct cuda_place cuda_place_of(const struct det__walk &w, int64_t i)
{
    struct cuda_place r = {};
    for (int d = w.ndim - 1; d >= 0; d--) {
        int64_t rest = d > 0 ? cuda_div(i, w.dims[d]) : 0, index = i - rest * w.dims[d];
        for (int k = 0; k < w.tensors; k++)
            r.at[k] += index * w.strides[k][d];
        i = rest;
    }
    return r;
}

template <typename T>
__device__ inline T cuda_get(const struct cuda_walk &k, const struct cuda_place &at, int which)
{
    return cuda_load<T>(k.dtype[which], k.p[which], at.at[which]);
}

template <typename T>
__device__ inline void cuda_put(const struct cuda_walk &k, const struct cuda_place &at, T v)
{
    cuda_store(k.dtype[0], k.p[0], at.at[0], v);
}

/* f of the first N inputs' elements, read as T. */
template <typename T, int N, typename F>
__device__ inline auto cuda_apply(const struct cuda_walk &k, const struct cuda_place &at, F f)
{
    T a = cuda_get<T>(k, at, 1);
    if constexpr (N == 1)
        return f(a);
    else if constexpr (N == 2)
        return f(a, cuda_get<T>(k, at, 2));
    else
        return f(a, cuda_get<T>(k, at, 2), cuda_get<T>(k, at, 3));
}

/* out[0] = f of the first N inputs, element by element. */
template <typename T, int N, typename F>
int cuda_map(struct det_stream *s, const struct det_call *c, F f, struct det_err *err)
{
    struct cuda_walk k = cuda_walk_of(c, N + 1);
    return cuda_each(
        s, c, k.w.numel,
        DEVICE(int64_t i) {
            struct cuda_place at = cuda_place_of(k.w, i);
            cuda_put(k, at, cuda_apply<T, N>(k, at, f));
        },
        err);
}

#endif
