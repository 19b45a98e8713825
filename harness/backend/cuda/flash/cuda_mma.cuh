/*
 * The tensor cores: a warp multiplies 16 x 16 by 16 x 8 numbers of bf16 or f16 and adds in f32
 * (PTX: mma.m16n8k16). Lane 4 g + t has of A the pairs (rows g and g + 8; columns 2 t and 2 t + 8,
 * each with the next), of B the pairs of rows 2 t and 2 t + 8 in column g, of C rows g and g + 8 in
 * columns 2 t and 2 t + 1.
 */
#ifndef CUDA_MMA_CUH
#define CUDA_MMA_CUH

#include "cuda_warp.cuh"

#ifdef CUDA_EMULATED

template <bool BF16> static inline uint32_t cuda_pair(float low, float high)
{
    if (BF16)
        return det__f32_to_bf16(low) | (uint32_t)det__f32_to_bf16(high) << 16;
    return det__f32_to_f16(low) | (uint32_t)det__f32_to_f16(high) << 16;
}

static inline void cuda_matrices(uint32_t ret[4], const uint16_t *at, int pitch)
{
    emulated_matrices(ret, at, pitch, EMULATED_DOWN);
}

static inline void cuda_matrices_across(uint32_t ret[4], const uint16_t *at, int pitch)
{
    emulated_matrices(ret, at, pitch, EMULATED_ACROSS);
}

static inline void cuda_matrices_turned(uint32_t ret[4], const uint16_t *at, int pitch)
{
    emulated_matrices(ret, at, pitch, EMULATED_TURNED);
}

template <bool BF16>
static inline void cuda_mma(float (*c)[4], const uint32_t a[4], const uint32_t (*b)[2])
{
    emulated_mma(c, 4, a, b, BF16 ? det__bf16_to_f32 : det__f16_to_f32);
}

#else

/* Two numbers, rounded to nearest, as they lie in memory. */
template <bool BF16> __device__ __forceinline__ uint32_t cuda_pair(float low, float high)
{
    uint32_t r;
    if (BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* Where the row begins that this lane shows the four matrices' load: of matrix lane / 8. The
 * matrices lie down the columns, or else across. */
__device__ __forceinline__ uint32_t cuda_matrix_row(const uint16_t *at, int pitch, bool down)
{
    int lane = (int)threadIdx.x % CUDA_WARP, upper = lane & 7;
    int second = lane >> 3 & 1,
        third = lane >> 4; /* of the matrix's number, the low bit, the high */
    int row = upper + 8 * (down ? second : third), column = 8 * (down ? third : second);
    return (uint32_t)__cvta_generic_to_shared(at + row * pitch + column);
}

__device__ __forceinline__ void cuda_matrices_at(uint32_t r[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
}

/* Four matrices of 8 x 8 that are 16 x 16 elements in shared memory, rows `pitch` apart: upper
 * left, lower left, upper right, lower right. Each lane has of each the pair at row g, columns 2 t;
 * turned: at column g, rows 2 t. */
__device__ __forceinline__ void cuda_matrices(uint32_t r[4], const uint16_t *at, int pitch)
{
    cuda_matrices_at(r, cuda_matrix_row(at, pitch, true));
}

/* The same in the order upper left, upper right, lower left, lower right: the two matrices of a B
 * then lie in neighbouring registers, as a product wants them. */
__device__ __forceinline__ void cuda_matrices_across(uint32_t r[4], const uint16_t *at, int pitch)
{
    cuda_matrices_at(r, cuda_matrix_row(at, pitch, false));
}

__device__ __forceinline__ void cuda_matrices_turned(uint32_t r[4], const uint16_t *at, int pitch)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(cuda_matrix_row(at, pitch, true)));
}

/* The sum that it adds to is an operand of its own: where it begins as zeros, no register has to.
 */
#define CUDA_MMA_ONE(type)                                                                         \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "           \
        "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                                        \
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),  \
          "f"(c[2]), "f"(c[3]))

template <bool BF16>
__device__ __forceinline__ void cuda_mma_one(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    float d[4];
    if (BF16)
        CUDA_MMA_ONE("bf16");
    else
        CUDA_MMA_ONE("f16");
    CUDA_UNROLL
    for (int e = 0; e < 4; e++)
        c[e] = d[e];
}

/* c[m] += a b[m] for four tiles of 8 columns. */
template <bool BF16>
__device__ __forceinline__ void cuda_mma(float (*c)[4], const uint32_t a[4], const uint32_t (*b)[2])
{
    CUDA_UNROLL
    for (int m = 0; m < 4; m++)
        cuda_mma_one<BF16>(c[m], a, b[m]);
}

#endif
#endif
