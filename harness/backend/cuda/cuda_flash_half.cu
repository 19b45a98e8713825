/* Attention in tiles of bf16 or f16 by the tensor cores; sums are of f32. */
#include "cuda_flash_kernels.cuh"
#include "cuda_mma.cuh"

template <bool BF16> struct flash_half_elements {
    typedef uint16_t element;

    __device__ static float number(uint16_t x)
    {
        return BF16 ? det__bf16_to_f32(x) : det__f16_to_f32(x);
    }
    __device__ static uint16_t element_of(float x)
    {
        return (uint16_t)cuda_pair<BF16>(x, 0);
    }
    __device__ static void store_two(uint16_t *p, float x, float y)
    {
        *(uint32_t *)(void *)p = cuda_pair<BF16>(x, y);
    }
    __device__ static float add_pair(float sum, float a, float b)
    {
        uint32_t x = det__f32_bits(a), y = det__f32_bits(b);
        sum += number((uint16_t)x) * number((uint16_t)y);
        return sum + number((uint16_t)(x >> 16)) * number((uint16_t)(y >> 16));
    }
    /* sum + a . b of 16 bytes each. */
    __device__ static float add_products(float sum, float4 a, float4 b)
    {
        sum = add_pair(add_pair(sum, a.x, b.x), a.y, b.y);
        return add_pair(add_pair(sum, a.z, b.z), a.w, b.w);
    }
    /* The first of the two columns that a thread has in tile n. */
    __device__ static int column(int n, int t)
    {
        return 8 * n + 2 * t;
    }
};

template <bool BF16> struct flash_half : flash_half_elements<BF16> {
    template <int INNER> static constexpr int scratch = 0;

    /* c += a b^T of the warp's 16 rows and INNER others, of `depth` elements. */
    template <int INNER, int PITCH>
    __device__ __forceinline__ static void rows(float (*c)[4], const uint16_t *a, const uint16_t *b,
                                                int depth)
    {
        for (int k = 0; k < depth; k += 16) {
            uint32_t x[4];
            cuda_matrices(x, a + k, PITCH);
            CUDA_UNROLL
            for (int n = 0; n < INNER / 8; n += 4) {
                uint32_t y[4][2];
                CUDA_UNROLL
                for (int m = 0; m < 4; m += 2) {
                    uint32_t r[4];
                    cuda_matrices(r, b + 8 * (n + m) * PITCH + k, PITCH);
                    y[m][0] = r[0], y[m][1] = r[2], y[m + 1][0] = r[1], y[m + 1][1] = r[3];
                }
                cuda_mma<BF16>(c + n, x, y);
            }
        }
    }

    /* o += s v: what a product left in registers is as the next one wants it. */
    template <int INNER, int D, int PITCH>
    __device__ __forceinline__ static void weighted(float (*o)[4], const float (*s)[4],
                                                    const uint16_t *v, int width, uint16_t *)
    {
        CUDA_UNROLL
        for (int k = 0; k < INNER / 16; k++) {
            const float *low = s[2 * k], *high = s[2 * k + 1];
            uint32_t x[4] = {cuda_pair<BF16>(low[0], low[1]), cuda_pair<BF16>(low[2], low[3]),
                             cuda_pair<BF16>(high[0], high[1]), cuda_pair<BF16>(high[2], high[3])};
            CUDA_UNROLL
            for (int n = 0; n < D / 8; n += 4) {
                uint32_t y[4][2];
                if (8 * n >= width)
                    break;
                CUDA_UNROLL
                for (int m = 0; m < 4; m += 2) {
                    uint32_t r[4];
                    cuda_matrices_turned(r, v + 16 * k * PITCH + 8 * (n + m), PITCH);
                    y[m][0] = r[0], y[m][1] = r[1], y[m + 1][0] = r[2], y[m + 1][1] = r[3];
                }
                cuda_mma<BF16>(o + n, x, y);
            }
        }
    }
};
CUDA_FLASH(bf16, flash_half<true>)
CUDA_FLASH(f16, flash_half<false>)
