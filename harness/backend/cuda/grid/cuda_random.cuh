/* Philox4x32-10 of base/text/rng.h: the draws equal those of the other backends bit for bit. */
#ifndef CUDA_RANDOM_CUH
#define CUDA_RANDOM_CUH

#include "cuda_kernel.cuh"

struct cuda_stream_of_draws {
    uint64_t key, call;
};

/* A word as a float in [0, 1) with 24 bits. */
__device__ inline float cuda_draw_of(uint32_t word)
{
    return (float)(word >> 8) * 5.9604644775390625e-8f; /* 2^-24 */
}

/* Draws 4 block to 4 block + 3, as words. */
__device__ inline void cuda_draw_four(struct cuda_stream_of_draws d, uint64_t block,
                                      uint32_t ret[4])
{
    uint32_t k0 = (uint32_t)d.key, k1 = (uint32_t)(d.key >> 32);
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)d.call,
                     (uint32_t)(d.call >> 32)};
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        c[0] = n0;
        c[2] = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; i++)
        ret[i] = c[i];
}

/* The four draws of a block. */
__device__ inline void cuda_draw_block(struct cuda_stream_of_draws d, uint64_t block, float (&u)[4])
{
    uint32_t c[4];
    cuda_draw_four(d, block, c);
    for (int j = 0; j < 4; j++)
        u[j] = cuda_draw_of(c[j]);
}

/* Draw i: word i % 4 of block i / 4. */
__device__ inline float cuda_draw(struct cuda_stream_of_draws d, uint64_t i)
{
    uint32_t c[4];
    cuda_draw_four(d, i / 4, c);
    uint32_t low = i & 1 ? c[1] : c[0], high = i & 1 ? c[3] : c[2]; /* no index: registers */
    return cuda_draw_of(i & 2 ? high : low);
}

#endif
