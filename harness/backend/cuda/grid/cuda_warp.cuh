/*
 * What the 32 threads of a warp do together, and kernels over tiles in shared memory. A lane is
 * 4 g + t: g, 0..7, is its row or column of a matrix of the tensor cores, t, 0..3, its place in the
 * quad that shares a row. All threads of a warp must come to each of these functions alike: the
 * host's versions (tests/cuda) meet there.
 */
#ifndef CUDA_WARP_CUH
#define CUDA_WARP_CUH

#include "cuda_dtype.cuh"

#define CUDA_WARP 32

#ifndef CUDA_EMULATED
#define CUDA_UNROLL             _Pragma("unroll")
#define CUDA_ROLLED             _Pragma("unroll 1")
#define CUDA_SHARED_BYTES(name) extern __shared__ __align__(16) unsigned char name[]
#define CUDA_LAUNCH_TILES(kernel, blocks, threads, bytes, s, ...)                                  \
    kernel<<<blocks, threads, bytes, s>>>(__VA_ARGS__)

/* 2^x, good to 2^-22 of it. */
__device__ __forceinline__ float cuda_exp2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ float cuda_quad_sum(float v)
{
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    return v + __shfl_xor_sync(0xffffffffu, v, 2);
}

__device__ __forceinline__ float cuda_quad_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

/* The bits of this lane and of that whose number differs in `bit`. */
__device__ __forceinline__ uint32_t cuda_join_bits(uint32_t v, int bit)
{
    return v | __shfl_xor_sync(0xffffffffu, v, bit);
}

/* 16 bytes from global to shared memory, both so aligned; there once the thread has waited. Zeros
 * instead where not `inside`: nothing is read then. */
__device__ __forceinline__ void cuda_copy16(void *to, const void *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

/* The same by way of the SM's own cache, for what is read again. */
__device__ __forceinline__ void cuda_copy16_near(void *to, const void *from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

/* The same of 8 bytes. */
__device__ __forceinline__ void cuda_copy8(void *to, const void *from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(inside ? 8 : 0)
                 : "memory");
}

__device__ __forceinline__ void cuda_copies_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif

/* A kernel over tiles: `threads` a block and so many bytes of shared memory, DET_EUNIMPL where the
 * device has less. */
template <typename K, typename... A>
static inline int cuda_tiles(struct det_stream *s, const struct det_call *c, K kernel,
                             int64_t blocks, unsigned threads, size_t bytes, struct det_err *err,
                             A... args)
{
    int rc = cuda_use(s->device, err);
    if (rc < 0 || blocks <= 0)
        return rc;
    cudaError_t more =
        bytes > 48 << 10
            ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes)
            : cudaSuccess;
    if (more != cudaSuccess)
        (void)cudaGetLastError();
    if (more == cudaErrorInvalidValue)
        return det_fail(err, DET_EUNIMPL, "a tile needs %zu bytes of shared memory", bytes);
    if ((rc = cuda_check(more, "cudaFuncSetAttribute", err)) < 0)
        return rc;
    CUDA_LAUNCH_TILES(kernel, (unsigned)(blocks < CUDA_GRID_MAX ? blocks : CUDA_GRID_MAX), threads,
                      bytes, s->native, args...);
    return cuda_launched(s, c, err);
}

#endif
