/*
 * Kernels on the host, for tests only: a launch runs its blocks one after the other, in an order
 * that differs from launch to launch, as does that of their threads: results that depend on it are
 * not the same bits twice. Threads that never meet are a plain loop; the others are fibers that
 * change at __syncthreads(). A block has 4 threads instead of 256: kernels depend on blockDim
 * alone, and small cases then have full blocks, several blocks and remainders; likewise
 * CUDA_ROWS_BYTES, so that convolutions take several rounds. With EMULATED_SIZES=device in the
 * environment both are as on a GPU. A block's shared memory begins as NaN, as it begins with
 * anything on a GPU. Kernels over tiles are launched with the threads that they are written for;
 * what their warps do together is in emulate_warp.cc.
 */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

#define CUDA_EMULATED
#define CUDA_UNROLL
#define CUDA_ROLLED

struct emulated_index {
    unsigned x;
};
extern struct emulated_index threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(8) int2 {
    int x, y;
};

#define EMULATED_BLOCK_MAX 256

void __syncthreads(void);
/* The threads of a warp meet; other warps need not come. */
void __syncwarp(void);
unsigned emulated_block(void);
/* Spoils a block's shared array when the first of its threads comes to it. */
void emulated_shared(void *p, size_t bytes, unsigned long *of);
/* Has a stream call work(), in its turn. */
void emulated_queue(cudaStream_t s, std::function<void()> work);
struct emulated_size {
    unsigned blocks, threads;
    size_t shared; /* bytes beside the shared arrays; spoilt for each block */
};
void emulated_launch(struct emulated_size size, bool meet, cudaStream_t stream,
                     std::function<void()> kernel);
/* The arguments are what they are now. */
template <typename K, typename... A>
void emulated_call(struct emulated_size size, bool meet, cudaStream_t stream, K kernel, A... args)
{
    emulated_launch(size, meet, stream, [kernel, args...] { kernel(args...); });
}

unsigned char *emulated_dynamic_shared(void);
/* A kernel may be given more than 48 KiB of it where that was asked for. */
cudaError_t emulated_allow_shared(int bytes);

/* ---- what the threads of a warp do together (cuda_warp.cuh) ---- */

static inline float cuda_exp2(float x)
{
    return exp2f(x);
}
float cuda_quad_sum(float v);
float cuda_quad_max(float v);
uint32_t cuda_join_bits(uint32_t v, int bit);
enum emulated_order { EMULATED_DOWN, EMULATED_ACROSS, EMULATED_TURNED };
void emulated_matrices(uint32_t ret[4], const uint16_t *at, int pitch, enum emulated_order order);
void emulated_mma(float (*c)[4], int n, const uint32_t a[4], const uint32_t (*b)[2],
                  float (*number)(uint16_t));
/* Done when the thread waits. */
void cuda_copy16(void *to, const void *from, bool inside);
#define cuda_copy16_near cuda_copy16
void cuda_copy8(void *to, const void *from, bool inside);
void cuda_copies_wait(void);

#define CUDA_BLOCK      ((int64_t)emulated_block())
#define CUDA_BLOCK_MAX  EMULATED_BLOCK_MAX
#define CUDA_ROWS_BYTES (emulated_is_full_size() ? (int64_t)256 << 20 : 2048)
#define CUDA_LANES      (emulated_is_full_size() ? 32 : 2)
#define CUDA_LANES_MIN  2
#define CUDA_SHARED(type, name, n)                                                                 \
    static type name[n];                                                                           \
    static unsigned long name##_of;                                                                \
    emulated_shared((void *)name, sizeof name, &name##_of)
#define EMULATED_CALL(kernel, blocks, threads, bytes, meet, s, ...)                                \
    emulated_call(                                                                                 \
        {(unsigned)(blocks), (unsigned)(threads), (size_t)(bytes)}, meet, s,                       \
        [=](const auto &...of_it) { kernel(of_it...); }, __VA_ARGS__)
#define CUDA_LAUNCH(kernel, blocks, s, ...)                                                        \
    EMULATED_CALL(kernel, blocks, emulated_block(), 0, true, s, __VA_ARGS__)
#define CUDA_LAUNCH_APART(kernel, blocks, s, ...)                                                  \
    EMULATED_CALL(kernel, blocks, emulated_block(), 0, false, s, __VA_ARGS__)
#define CUDA_LAUNCH_TILES(kernel, blocks, threads, bytes, s, ...)                                  \
    EMULATED_CALL(kernel, blocks, threads, bytes, true, s, __VA_ARGS__)
#define CUDA_SHARED_BYTES(name)                   unsigned char *name = emulated_dynamic_shared()
#define cudaFuncSetAttribute(kernel, what, bytes) emulated_allow_shared(bytes)

/* As that of cuda_kernel.cuh. */
template <typename T> T cuda_exchange(T v, int with)
{
    CUDA_SHARED(T, all, EMULATED_BLOCK_MAX);
    all[threadIdx.x] = v;
    __syncthreads();
    v = all[threadIdx.x ^ with];
    __syncthreads();
    return v;
}

#endif
