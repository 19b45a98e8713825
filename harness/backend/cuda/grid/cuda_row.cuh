/* What a team (cuda_kernel.cuh) does with a row of packs (cuda_pack.cuh): a warp with a short one,
 * a block with a long one. Every pass but the first finds the row in the cache. */
#ifndef CUDA_ROW_CUH
#define CUDA_ROW_CUH

#include "cuda_span.cuh"
#include "cuda_warp.cuh"

/* Rows of up to so many elements are a warp's. */
template <typename X> static inline int64_t cuda_row_most(void)
{
    return (int64_t)CUDA_LANES * X::width * 8;
}

/* Two sums at once. */
template <typename T> struct cuda_two {
    T a, b;
};
struct cuda_plus_two {
    template <typename T> __device__ cuda_two<T> operator()(cuda_two<T> x, cuda_two<T> y) const
    {
        return {x.a + y.a, x.b + y.b};
    }
};

/* e^x, in f32 by way of 2^x: good to 2^-22 of it near 0, to |x| 2^-23 of it far from 0. */
__device__ inline float cuda_exp(float x)
{
    return cuda_exp2(x * 1.44269504f);
}
__device__ inline double cuda_exp(double x)
{
    return exp(x);
}

/* Of numbers: the greatest, and the sum of exp(v - top). */
template <typename T> struct cuda_exps {
    T top = -INFINITY, sum = 0;

    __device__ void grow(T higher)
    {
        if (higher > top) {
            sum *= cuda_exp(top - higher); /* top may be -inf: then the sum is 0, or NaN */
            top = higher;
        }
    }
    /* N numbers more. */
    template <int N> __device__ void operator()(const T (&v)[N])
    {
        T most = v[0], more = 0;
        CUDA_UNROLL
        for (int i = 1; i < N; i++)
            most = v[i] > most ? v[i] : most;
        grow(most);
        T base = top == -(T)INFINITY ? 0 : top; /* of nothing but -inf: e^-inf, not NaN */
        CUDA_UNROLL
        for (int i = 0; i < N; i++)
            more += cuda_exp(v[i] - base);
        sum += more;
    }
};
struct cuda_plus_exps {
    template <typename T> __device__ cuda_exps<T> operator()(cuda_exps<T> a, cuda_exps<T> b) const
    {
        a.grow(b.top);
        b.grow(a.top);
        a.sum += b.sum;
        return a;
    }
};

/* Those of a row, in one pass. */
template <typename X, typename TEAM>
__device__ inline cuda_exps<typename X::real> cuda_row_exps(const cuda_span<X> &x, TEAM team)
{
    cuda_exps<typename X::real> r;
    cuda_span_each(x, team, r);
    return team.combine(r, cuda_plus_exps());
}

#endif
