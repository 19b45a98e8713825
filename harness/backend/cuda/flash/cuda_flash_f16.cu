/* Attention in tiles of f16. */
#include "cuda_flash_half.cuh"

CUDA_FLASH(f16, flash_half<false>)
