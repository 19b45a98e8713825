/* Attention in tiles of bf16. */
#include "cuda_flash_half.cuh"

CUDA_FLASH(bf16, flash_half<true>)
