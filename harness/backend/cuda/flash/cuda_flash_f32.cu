/* Attention in tiles of f32, multiplied and added in f32. */
#include "cuda_flash_kernels.cuh"

struct flash_f32_elements {
    typedef float element;

    __device__ static float number(float x) { return x; }
    __device__ static float element_of(float x) { return x; }
    __device__ static void store_two(float *p, float x, float y) { *(float2 *)p = {x, y}; }
    /* sum + a . b of 16 bytes each. */
    __device__ static float add_products(float sum, float4 a, float4 b)
    {
        return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    /* The first of the two columns of a result that a thread has in tile n: two tiles together are
     * four neighbours. */
    __device__ static int column(int n, int t) { return n / 2 * 16 + 4 * t + 2 * (n & 1); }
};

struct flash_f32 : flash_f32_elements {
    template <int INNER> static constexpr int scratch = 16 * (INNER + 4); /* a warp's weights */
    template <int D> static constexpr int rows_of = 1;
    template <int D> static constexpr int key_rows_of = 1;
    template <int D, enum flash_kind KIND>
    struct blocks {
        static constexpr int forward = 1, queries = 1, keys = 1;
    };
    static constexpr int part = 64;
    static constexpr bool has_kinds = false;

    /* c += a b^T of the warp's 16 rows and 8 N others, of `width` elements. */
    template <int M, int N, int D, int PITCH>
    __device__ __forceinline__ static void rows(float (*all)[N][4], const float *a, const float *b,
                                                int width)
    {
        float(*c)[4] = all[0];
        int lane = (int)threadIdx.x % CUDA_WARP, g = lane >> 2, t = lane & 3;
        a += g * PITCH;
        b += 2 * t * PITCH;
        CUDA_ROLLED
        for (int k = 0; k < width; k += 4) {
            float4 x0 = *(const float4 *)(a + k), x1 = *(const float4 *)(a + 8 * PITCH + k);
            CUDA_UNROLL
            for (int n = 0; n < N; n++) {
                CUDA_UNROLL
                for (int e = 0; e < 2; e++) {
                    float4 y = *(const float4 *)(b + (8 * n + e) * PITCH + k);
                    c[n][e] += x0.x * y.x + x0.y * y.y + x0.z * y.z + x0.w * y.w;
                    c[n][2 + e] += x1.x * y.x + x1.y * y.y + x1.z * y.z + x1.w * y.w;
                }
            }
        }
    }

    /* o += s v. The weights go through shared memory: a thread needs its whole rows of them. */
    template <int M, int N, int D, int PITCH>
    __device__ __forceinline__ static void weighted(float (*sums)[D / 8][4],
                                                    const float (*weights)[N][4], const float *v,
                                                    int width, float *own)
    {
        constexpr int P = 8 * N + 4;
        float(*o)[4] = sums[0];
        const float(*s)[4] = weights[0];
        int lane = (int)threadIdx.x % CUDA_WARP, g = lane >> 2, t = lane & 3;
        CUDA_UNROLL
        for (int n = 0; n < N; n++) {
            *(float2 *)(own + g * P + 8 * n + 2 * t) = {s[n][0], s[n][1]};
            *(float2 *)(own + (g + 8) * P + 8 * n + 2 * t) = {s[n][2], s[n][3]};
        }
        __syncwarp();
        for (int k = 0; k < 8 * N; k++) {
            float x0 = own[g * P + k], x1 = own[(g + 8) * P + k];
            CUDA_UNROLL
            for (int m = 0; m < D / 16; m++) {
                if (16 * m >= width)
                    break;
                float4 y = *(const float4 *)(v + k * PITCH + 16 * m + 4 * t);
                o[2 * m][0] += x0 * y.x, o[2 * m][1] += x0 * y.y;
                o[2 * m + 1][0] += x0 * y.z, o[2 * m + 1][1] += x0 * y.w;
                o[2 * m][2] += x1 * y.x, o[2 * m][3] += x1 * y.y;
                o[2 * m + 1][2] += x1 * y.z, o[2 * m + 1][3] += x1 * y.w;
            }
        }
        __syncwarp();
    }
};
CUDA_FLASH(f32, flash_f32)
