/*
 * Kernels on the host, for tests only: a launch runs its blocks one after the other, in an order
 * that differs from launch to launch, as does that of their threads: results that depend on it are
 * not the same bits twice. Threads that never meet are a plain loop; the others are fibers that
 * change at __syncthreads(). A block has 4 threads instead of 256: kernels depend on blockDim
 * alone, and small cases then have full blocks, several blocks and remainders; likewise
 * CUDA_ROWS_BYTES, so that convolutions take several rounds, and CUDA_PITCH_MAX. With
 * EMULATED_SIZES=device in the environment all three are as on a GPU. A block's shared memory
 * begins as NaN, as it begins with anything on a GPU.
 */
#ifndef EMULATED_CUDA_RUNTIME_H
#define EMULATED_CUDA_RUNTIME_H

#include <functional>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__

struct emulated_index {
    unsigned x;
};
extern struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

#define EMULATED_BLOCK_MAX 256

void __syncthreads(void);
unsigned emulated_block(void);
/* Spoils a block's shared array when the first of its threads comes to it. */
void emulated_shared(void *p, size_t bytes, unsigned long *of);
void emulated_launch(unsigned blocks, unsigned threads, bool meet, cudaStream_t stream,
                     const std::function<void()> &kernel);

#define CUDA_BLOCK      ((int64_t)emulated_block())
#define CUDA_BLOCK_MAX  EMULATED_BLOCK_MAX
#define CUDA_ROWS_BYTES (emulated_is_full_size() ? (int64_t)256 << 20 : 2048)
#define CUDA_PITCH_MAX  emulated_pitch_max()
#define CUDA_SHARED(type, name, n)                                                                 \
    static type name[n];                                                                           \
    static unsigned long name##_of;                                                                \
    emulated_shared((void *)name, sizeof name, &name##_of)
#define CUDA_LAUNCH(kernel, blocks, s, ...)                                                        \
    emulated_launch(blocks, emulated_block(), true, s, [&] { kernel(__VA_ARGS__); })
#define CUDA_LAUNCH_APART(kernel, blocks, s, ...)                                                  \
    emulated_launch(blocks, emulated_block(), false, s, [&] { kernel(__VA_ARGS__); })

#endif
