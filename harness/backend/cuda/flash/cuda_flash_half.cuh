/* Attention in tiles of bf16 or f16 by the tensor cores; sums are of f32. */
#ifndef CUDA_FLASH_HALF_CUH
#define CUDA_FLASH_HALF_CUH

#include "cuda_flash_kernels.cuh"
#include "cuda_mma.cuh"

template <bool BF16> struct flash_half_elements {
    typedef uint16_t element;

    __device__ static float number(uint16_t x)
    {
        return BF16 ? det__bf16_to_f32(x) : det__f16_to_f32(x);
    }
    __device__ static uint16_t element_of(float x) { return (uint16_t)cuda_pair<BF16>(x, 0); }
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
    __device__ static int column(int n, int t) { return 8 * n + 2 * t; }
};

/* How much of a product is where: what the registers are enough for. */
struct flash_half_sizes {
    template <int INNER> static constexpr int scratch = 0;
    template <int D> static constexpr int rows_of = 2;
    template <int D> static constexpr int key_rows_of = D > 64 ? 1 : 2;
    template <int D, enum flash_kind KIND>
    struct blocks {
        static constexpr int forward = D == 64 && KIND == FLASH_PLAIN ? 3 : 2;
        static constexpr int queries = forward, keys = 2;
    };
    static constexpr int part = 32;
    static constexpr bool has_kinds = true;
};

template <bool BF16> struct flash_half : flash_half_elements<BF16>, flash_half_sizes {
    /* c += a b^T of 16 M rows and 8 N others, of `width` elements. */
    template <int M, int N, int D, int PITCH>
    __device__ __forceinline__ static void rows(float (*c)[N][4], const uint16_t *a,
                                                const uint16_t *b, int width)
    {
        CUDA_UNROLL
        for (int k = 0; k < D; k += 16) {
            uint32_t x[M][4];
            if (k >= width)
                break;
            CUDA_UNROLL
            for (int m = 0; m < M; m++)
                cuda_matrices(x[m], a + 16 * m * PITCH + k, PITCH);
            CUDA_UNROLL
            for (int n = 0; n < N; n += 4) {
                uint32_t y[4][2];
                CUDA_UNROLL
                for (int i = 0; i < 4; i += 2) {
                    uint32_t r[4];
                    cuda_matrices_across(r, b + 8 * (n + i) * PITCH + k, PITCH);
                    y[i][0] = r[0], y[i][1] = r[1], y[i + 1][0] = r[2], y[i + 1][1] = r[3];
                }
                CUDA_UNROLL
                for (int m = 0; m < M; m++)
                    cuda_mma<BF16>(c[m] + n, x[m], y);
            }
        }
    }

    /* o += s v: what a product left in registers is as the next one wants it. */
    template <int M, int N, int D, int PITCH>
    __device__ __forceinline__ static void weighted(float (*o)[D / 8][4], const float (*s)[N][4],
                                                    const uint16_t *v, int width, uint16_t *)
    {
        CUDA_UNROLL
        for (int k = 0; k < N / 2; k++) {
            uint32_t x[M][4];
            CUDA_UNROLL
            for (int i = 0; i < 4 * M; i++) {
                const float *pair = s[i / 4][2 * k + i % 4 / 2] + i % 2 * 2;
                x[i / 4][i % 4] = cuda_pair<BF16>(pair[0], pair[1]);
            }
            CUDA_UNROLL
            for (int n = 0; n < D / 8; n += 4) {
                uint32_t y[4][2];
                if (8 * n >= width)
                    break;
                CUDA_UNROLL
                for (int i = 0; i < 4; i += 2) {
                    uint32_t r[4];
                    cuda_matrices_turned(r, v + 16 * k * PITCH + 8 * (n + i), PITCH);
                    y[i][0] = r[0], y[i][1] = r[1], y[i + 1][0] = r[2], y[i + 1][1] = r[3];
                }
                CUDA_UNROLL
                for (int m = 0; m < M; m++)
                    cuda_mma<BF16>(o[m] + n, x[m], y);
            }
        }
    }
};

#endif
