/* What a block does with a row. */
#ifndef CUDA_ROW_CUH
#define CUDA_ROW_CUH

#include "cuda_kernel.cuh"

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
