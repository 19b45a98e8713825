/*
 * Rows that begin at any element: packs (cuda_pack.cuh) at multiples of 16 bytes, and single
 * elements before the first and behind the last of them. Which elements share a pack depends on the
 * row's address modulo 16, so of tensors that are written by packs only those that lie alike
 * (cuda_alike()) can be gone through together.
 */
#ifndef CUDA_SPAN_CUH
#define CUDA_SPAN_CUH

#include "cuda_pack.cuh"

__device__ constexpr int cuda_dtype_of(float)
{
    return DET_F32;
}
__device__ constexpr int cuda_dtype_of(cuda_bf16)
{
    return DET_BF16;
}
__device__ constexpr int cuda_dtype_of(cuda_f16)
{
    return DET_F16;
}

/* One element, wherever it lies. */
template <typename E> __device__ inline float cuda_one(const cuda_packs<E> &x, int64_t i)
{
    return cuda_load<float>(cuda_dtype_of(E()), x.p, i);
}
template <typename T> __device__ inline T cuda_one(const cuda_any<T> &x, int64_t i)
{
    return x.load(i);
}
template <typename E>
__device__ inline void cuda_put_one(const cuda_packs<E> &x, int64_t i, float v)
{
    cuda_store(cuda_dtype_of(E()), x.p, i, v);
}
template <typename T> __device__ inline void cuda_put_one(const cuda_any<T> &x, int64_t i, T v)
{
    x.store(i, &v);
}

/* The row of n elements from element `at` on. */
template <typename X> struct cuda_span {
    typedef typename X::real real;
    X x;
    int64_t at, head = 0, packs, singles;

    __device__ cuda_span(X from, int64_t first, int64_t n) : x(from), at(first)
    {
        if constexpr (X::width > 1) {
            int past = (int)((uintptr_t)(x.p + at) % sizeof(cuda_quad) / sizeof(*x.p));
            head = past ? X::width - past : 0;
            head = head < n ? head : n;
        }
        packs = (n - head) / X::width;
        singles = n - packs * X::width;
    }
    /* Numbers in the row: of the first element of a pack, and of a single one. */
    __device__ int64_t pack(int64_t q) const { return head + q * X::width; }
    __device__ int64_t single(int64_t i) const { return i < head ? i : i + packs * X::width; }
    __device__ typename X::raw load(int64_t q) const { return x.load(at + pack(q)); }
};

/* f(v) with arrays v of all elements, of two packs at a time while there are as many. */
template <typename X, typename TEAM, typename F>
__device__ inline void cuda_span_each(const cuda_span<X> &x, TEAM team, F &f)
{
    typename X::real two[2 * X::width], one[X::width], single[1];
    int64_t q = team.first(), step = team.step();
    for (; q + step < x.packs; q += 2 * step) {
        typename X::raw a = x.load(q), b = x.load(q + step);
        X::open(a, two);
        X::open(b, two + X::width);
        f(two);
    }
    if (q < x.packs) {
        X::open(x.load(q), one);
        f(one);
    }
    for (int64_t i = team.first(); i < x.singles; i += step) {
        single[0] = cuda_one(x.x, x.at + x.single(i));
        f(single);
    }
}

/* f(v, j) changes the row's elements v from j on, which then go to y, whose rows lie as x's do. */
template <typename X, typename TEAM, typename F>
__device__ inline void cuda_span_map(const cuda_span<X> &x, X y, TEAM team, const F &f)
{
    typename X::real v[X::width], w[X::width], single[1];
    int64_t q = team.first(), step = team.step();
    for (; q + step < x.packs; q += 2 * step) {
        typename X::raw a = x.load(q), b = x.load(q + step);
        X::open(a, v);
        f(v, x.pack(q));
        y.store(x.at + x.pack(q), v);
        X::open(b, w);
        f(w, x.pack(q + step));
        y.store(x.at + x.pack(q + step), w);
    }
    if (q < x.packs) {
        X::open(x.load(q), v);
        f(v, x.pack(q));
        y.store(x.at + x.pack(q), v);
    }
    for (int64_t i = team.first(); i < x.singles; i += step) {
        int64_t j = x.single(i);
        single[0] = cuda_one(x.x, x.at + j);
        f(single, j);
        cuda_put_one(y, x.at + j, single[0]);
    }
}

/* The dtype of both, if it is one that packs are of and each element lies alike in both modulo
 * 16 bytes; else -1. */
static inline int cuda_alike(const struct det_tensor *x, const struct det_tensor *y)
{
    bool known = x->dtype == DET_F32 || x->dtype == DET_BF16 || x->dtype == DET_F16;
    uintptr_t apart = (uintptr_t)x->data - (uintptr_t)y->data;
    bool whole = (uintptr_t)x->data % det_dtype_size(x->dtype) == 0;
    return known && whole && x->dtype == y->dtype && apart % sizeof(cuda_quad) == 0 ? x->dtype : -1;
}

#endif
