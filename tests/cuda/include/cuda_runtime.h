/*
 * Kernels on the host, for tests only: a launch runs its blocks one after the other, in an order
 * that differs from launch to launch, as does that of their threads: results that depend on it are
 * not the same bits twice. Threads that never meet are a plain loop; the others are fibers that
 * change at __syncthreads(). A block has 4 threads instead of 256: kernels depend on blockDim
 * alone, and small cases then have full blocks, several blocks and remainders; likewise
 * CUDA_ROWS_BYTES, so that convolutions take several rounds, and CUDA_PITCH_MAX.
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
#define __shared__ static

struct emulated_index {
    unsigned x;
};
extern struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads(void);
void emulated_launch(unsigned blocks, unsigned threads, bool meet, cudaStream_t stream,
                     const std::function<void()> &kernel);

#define CUDA_BLOCK      4
#define CUDA_ROWS_BYTES 2048
#define CUDA_PITCH_MAX  EMULATED_PITCH_MAX
#define CUDA_LAUNCH(kernel, blocks, s, ...)                                                        \
    emulated_launch(blocks, CUDA_BLOCK, true, s, [&] { kernel(__VA_ARGS__); })
#define CUDA_LAUNCH_APART(kernel, blocks, s, ...)                                                  \
    emulated_launch(blocks, CUDA_BLOCK, false, s, [&] { kernel(__VA_ARGS__); })

#endif
