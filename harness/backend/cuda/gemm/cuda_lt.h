/*
 * Products that do something to their result, or with an operand, on the way: by cuBLASLt, which
 * saves a pass over memory. Which algorithm takes a product is asked for once a shape and kept with
 * the device; it depends on the shape and on how pointers are aligned, never on what memory is
 * free. Sums that are cut in parts along k are added up in f32 in an order of their own, so equal
 * inputs give equal bits.
 */
#ifndef CUDA_LT_H
#define CUDA_LT_H

#include "cuda_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_lt_extra {
    CUDA_LT_BIAS, /* vector [n] of C's dtype is added to each row of C */
    CUDA_LT_SUMS  /* vector [m] of C's dtype becomes the sums over k of op(A) */
};

/* One product (g->count and g->beta are 0). *ret_done: false where cuBLASLt has nothing for it and
 * nothing was done. */
DET_MUST int cuda_lt(struct det_stream *s, const struct cuda_gemm *g, enum cuda_lt_extra extra,
                     void *vector, bool *ret_done, struct det_err *err);
/* All of a device's; it is about to close. */
void cuda_lt_finish(struct det_device *d);

#ifdef __cplusplus
}
#endif
#endif
