/* Which calls of attention are computed in tiles, and what their tensors are. */
#ifndef CUDA_FLASH_CALL_H
#define CUDA_FLASH_CALL_H

#ifdef __cplusplus
extern "C" {
#endif

#include "backend.h"

#define CUDA_FLASH_WIDTH 128 /* of a head: the widest */

/* The tensors of an ATTENTION or ATTENTION_BWD; k and v are NULL where q holds all three. y and lse
 * are its outputs, or those of the call that it goes back. */
struct cuda_flash_operands {
    bool backward;
    const struct det_tensor *q, *k, *v, *mask, *lse, *y, *dy;
};
struct cuda_flash_operands cuda_flash_operands_of(const struct det_call *c);

/* True where the tiled kernels take a call: all tensors but lse of one dtype that is not f64, none
 * empty. */
bool cuda_flash_takes(const struct det_call *c);

#ifdef __cplusplus
}
#endif
#endif
