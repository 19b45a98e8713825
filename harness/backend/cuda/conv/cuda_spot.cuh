/* Where an element lies in a batch of images, which are NHWC. */
#ifndef CUDA_SPOT_CUH
#define CUDA_SPOT_CUH

#include "cuda_kernel.cuh"

/* Element i of images of h x w pixels. */
struct cuda_spot {
    int64_t n, h, w, channel;
};

__device__ inline struct cuda_spot cuda_spot_of(int64_t i, int64_t h, int64_t w, int64_t channels)
{
    int64_t pixel = cuda_div(i, channels), row = cuda_div(pixel, w), n = cuda_div(row, h);
    return {n, row - n * h, pixel - row * w, i - pixel * channels};
}

#endif
