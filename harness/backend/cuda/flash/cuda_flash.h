/* Attention in tiles (cuda_flash.cuh): one call of it. */
#ifndef CUDA_FLASH_H
#define CUDA_FLASH_H

#include "cuda_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a tensor's rows are: row i of head (b, h) is b batch + h head + i row elements after p. */
struct cuda_flash_rows {
    void *p;
    int64_t batch, head, row;
};

struct cuda_flash {
    int64_t batch, heads;
    int time, keys, width;
    bool causal;
    bool aligned;        /* 16 bytes at once may be read of every row */
    float scale, scale2; /* of the scores; scale2: the same for powers of 2 */
    float before, after; /* the kernel's: scale2 is the one or the other, of products or scores */
    float p, kept, left; /* dropout, the factor of what it leaves, and 1 over it */
    uint64_t seed, call; /* of its draws */
    struct cuda_flash_rows q, k, v, y, dy, dq, dk, dv;
    const void *mask; /* [B or 1, H or 1, T, S], or NULL */
    int64_t mask_b, mask_h;
    float *lse;  /* [2, B, H, T], for powers of 2 */
    float *sums; /* [B, H, T, 2]: what flash_deltas() makes of a query */
};

/* Of a call that cuda_flash_takes(). DET_EUNIMPL where the device's shared memory is too small. */
DET_MUST int cuda_flash_forward(struct det_stream *s, const struct det_call *c,
                                struct det_err *err);
DET_MUST int cuda_flash_backward(struct det_stream *s, const struct det_call *c,
                                 struct det_err *err);

/* The kernels, by what elements are. */
typedef int cuda_flash_fn(struct det_stream *s, const struct det_call *c,
                          const struct cuda_flash *f, struct det_err *err);
cuda_flash_fn cuda_flash_f32, cuda_flash_bwd_f32, cuda_flash_bf16, cuda_flash_bwd_bf16,
    cuda_flash_f16, cuda_flash_bwd_f16;

#ifdef __cplusplus
}
#endif
#endif
