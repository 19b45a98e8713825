/* One number from a whole tensor: parts of fixed size, then the parts. */
#ifndef CUDA_TOTAL_CUH
#define CUDA_TOTAL_CUH

#include "cuda_kernel.cuh"

#define CUDA_PARTS_MAX 256

/* put(total of f(i) for i in 0..n-1, combined by `op` from `zero`), called by one thread. */
template <typename T, typename F, typename OP, typename PUT>
int cuda_total(struct det_stream *s, const struct det_call *c, int64_t n, F f, T zero, OP op,
               PUT put, struct det_err *err)
{
    int64_t parts = (n + 4 * CUDA_BLOCK - 1) / (4 * CUDA_BLOCK);
    void *work = NULL;
    parts = parts < 1 ? 1 : parts > CUDA_PARTS_MAX ? CUDA_PARTS_MAX : parts;
    int rc = cuda_workspace(s->device, CUDA_PARTS_MAX * sizeof(T), &work, err);
    T *part = (T *)work;
    if (rc < 0)
        return rc;
    rc = cuda_blocks(
        s, c, parts,
        DEVICE(int64_t b) {
            T sum = zero;
            for (int64_t i = b * blockDim.x + threadIdx.x; i < n; i += parts * blockDim.x)
                sum = op(sum, f(i));
            sum = cuda_combine(sum, op);
            if (threadIdx.x == 0)
                part[b] = sum;
        },
        err);
    if (rc < 0)
        return rc;
    return cuda_blocks(
        s, c, 1,
        DEVICE(int64_t) {
            T sum = zero;
            for (int64_t i = threadIdx.x; i < parts; i += blockDim.x)
                sum = op(sum, part[i]);
            sum = cuda_combine(sum, op);
            if (threadIdx.x == 0)
                put(sum);
        },
        err);
}

/* *y = scale * the sum of f(i). */
template <typename T, typename F>
int cuda_sum_of(struct det_stream *s, const struct det_call *c, int64_t n, F f, double scale,
                T *y, struct det_err *err)
{
    return cuda_total(
        s, c, n, f, 0.0, cuda_plus(), DEVICE(double sum) { *y = (T)(scale * sum); }, err);
}

#endif
