/* What a team (cuda_kernel.cuh) does with a row of packs (cuda_pack.cuh): a warp with a short one,
 * a block with a long one. Every pass but the first finds the row in the cache. */
#ifndef CUDA_ROW_CUH
#define CUDA_ROW_CUH

#include "cuda_pack.cuh"

/* Rows of up to so many elements are a warp's. */
template <typename X>
static inline int64_t cuda_row_most(void)
{
    return (int64_t)CUDA_LANES * X::width * 8;
}

/* Two sums at once. */
template <typename T>
struct cuda_two {
    T a, b;
};
struct cuda_plus_two {
    template <typename T>
    __device__ cuda_two<T> operator()(cuda_two<T> x, cuda_two<T> y) const
    {
        return {x.a + y.a, x.b + y.b};
    }
};

/* Of numbers: the greatest, and the sum of exp(v - top). */
template <typename T>
struct cuda_exps {
    T top = -INFINITY, sum = 0;

    __device__ void grow(T higher)
    {
        if (higher > top) {
            sum *= exp(top - higher); /* top may be -inf: then the sum is 0, or NaN */
            top = higher;
        }
    }
    __device__ void add(T v) { sum += v == -(T)INFINITY ? 0 : exp(v - top); }
};
struct cuda_plus_exps {
    template <typename T>
    __device__ cuda_exps<T> operator()(cuda_exps<T> a, cuda_exps<T> b) const
    {
        a.grow(b.top);
        b.grow(a.top);
        a.sum += b.sum;
        return a;
    }
};

/* Those of the row of n elements from element `at` on, in one pass. */
template <typename X, typename TEAM>
__device__ inline cuda_exps<typename X::real> cuda_row_exps(X x, int64_t at, int64_t n, TEAM team)
{
    cuda_exps<typename X::real> r;
    for (int64_t j = team.first() * X::width; j < n; j += team.step() * X::width) {
        typename X::real v[X::width], most;
        X::open(x.load(at + j), v);
        most = v[0];
        CUDA_UNROLL
        for (int i = 1; i < X::width; i++)
            most = v[i] > most ? v[i] : most;
        r.grow(most);
        CUDA_UNROLL
        for (int i = 0; i < X::width; i++)
            r.add(v[i]);
    }
    return team.combine(r, cuda_plus_exps());
}

/* ---- by a whole block, of elements ---- */

/* The greatest of x[j], j in 0..n-1, known to all threads of the block. */
template <typename T>
__device__ inline T cuda_row_max(const T *x, int64_t n)
{
    T top = -INFINITY;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
        top = x[j] > top ? x[j] : top;
    return cuda_combine(top, cuda_greater());
}

/* log(sum of exp(x[j] - top)), likewise. */
template <typename T>
__device__ inline double cuda_row_log_sum(const T *x, int64_t n, T top)
{
    double sum = 0;
    for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
        sum += exp(x[j] - top);
    return log(cuda_combine(sum, cuda_plus()));
}

#endif
