/* Elements of any dtype on the device. */
#ifndef CUDA_DTYPE_CUH
#define CUDA_DTYPE_CUH

#define DTYPE_FN __host__ __device__ static inline
#include "cuda_kernel.cuh"

extern "C" {
#include "dtype.h"
}

/* By the GPU's own instructions, where they are. */
__device__ inline float cuda_f16_to_f32(uint16_t h)
{
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    return det__f16_to_f32(h);
#endif
}

__device__ inline uint16_t cuda_f32_to_f16(float f)
{
#ifdef __CUDA_ARCH__
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return f == f ? h : (uint16_t)(det__f32_bits(f) >> 16 & 0x8000 | 0x7e00); /* the same NaN */
#else
    return det__f32_to_f16(f);
#endif
}

/* 16 bytes that are read and written at once. */
struct alignas(16) cuda_wide {
    uint32_t w[4];
};

/* N elements from p, which begins at 16 bytes as they end. */
template <typename T, int N> __device__ inline void cuda_load_wide(const T *p, T (&v)[N])
{
    static_assert(N * sizeof(T) % 16 == 0, "whole pieces");
#pragma unroll
    for (int j = 0; j < (int)(N * sizeof(T) / 16); j++) {
        cuda_wide w = ((const cuda_wide *)p)[j];
        memcpy((char *)v + 16 * j, &w, 16);
    }
}

template <typename T, int N> __device__ inline void cuda_store_wide(T *p, const T (&v)[N])
{
    static_assert(N * sizeof(T) % 16 == 0, "whole pieces");
#pragma unroll
    for (int j = 0; j < (int)(N * sizeof(T) / 16); j++) {
        cuda_wide w;
        memcpy(&w, (const char *)v + 16 * j, 16);
        ((cuda_wide *)p)[j] = w;
    }
}

/* Element i of p, as T: float, double, or int64_t for whole dtypes. */
template <typename T> __device__ inline T cuda_load(int dtype, const void *p, int64_t i)
{
    switch (dtype) {
    case DET_F32: return (T)((const float *)p)[i];
    case DET_F64: return (T)((const double *)p)[i];
    case DET_BF16: return (T)det__bf16_to_f32(((const uint16_t *)p)[i]);
    case DET_F16: return (T)cuda_f16_to_f32(((const uint16_t *)p)[i]);
    case DET_I64: return (T)((const int64_t *)p)[i];
    case DET_I32: return (T)((const int32_t *)p)[i];
    case DET_I16: return (T)((const int16_t *)p)[i];
    case DET_I8: return (T)((const int8_t *)p)[i];
    case DET_BOOL: return (T)(((const uint8_t *)p)[i] != 0);
    default: return (T)((const uint8_t *)p)[i];
    }
}

/* Element i of p = v. A whole v becomes a narrower one modulo 2^bits. */
__device__ inline void cuda_store(int dtype, void *p, int64_t i, int64_t v)
{
    switch (dtype) {
    case DET_F32: ((float *)p)[i] = (float)v; break;
    case DET_F64: ((double *)p)[i] = (double)v; break;
    case DET_BF16: ((uint16_t *)p)[i] = det__f32_to_bf16((float)v); break;
    case DET_F16: ((uint16_t *)p)[i] = cuda_f32_to_f16((float)v); break;
    case DET_I64: ((int64_t *)p)[i] = v; break;
    case DET_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case DET_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case DET_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    default: ((uint8_t *)p)[i] = (uint8_t)v;
    }
}

template <typename T> __device__ inline void cuda_store(int dtype, void *p, int64_t i, T v)
{
    switch (dtype) {
    case DET_F32: ((float *)p)[i] = (float)v; break;
    case DET_F64: ((double *)p)[i] = (double)v; break;
    case DET_BF16: ((uint16_t *)p)[i] = det__f32_to_bf16((float)v); break;
    case DET_F16: ((uint16_t *)p)[i] = cuda_f32_to_f16((float)v); break;
    case DET_I64: ((int64_t *)p)[i] = det__whole(v, -0x1p63, 0x1p63); break;
    case DET_I32: ((int32_t *)p)[i] = (int32_t)det__whole(v, -0x1p31, 0x1p31 - 1); break;
    case DET_I16: ((int16_t *)p)[i] = (int16_t)det__whole(v, -0x1p15, 0x1p15 - 1); break;
    case DET_I8: ((int8_t *)p)[i] = (int8_t)det__whole(v, -128, 127); break;
    case DET_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    default: ((uint8_t *)p)[i] = (uint8_t)det__whole(v, 0, 255);
    }
}

/* Element i of y = element j of x, of the same size, whatever it is: 1, 2, 4, 8 or 16 bytes. */
__device__ inline void cuda_move(size_t size, void *y, int64_t i, const void *x, int64_t j)
{
    switch (size) {
    case 16: ((cuda_wide *)y)[i] = ((const cuda_wide *)x)[j]; break;
    case 8: ((uint64_t *)y)[i] = ((const uint64_t *)x)[j]; break;
    case 4: ((uint32_t *)y)[i] = ((const uint32_t *)x)[j]; break;
    case 2: ((uint16_t *)y)[i] = ((const uint16_t *)x)[j]; break;
    default: ((uint8_t *)y)[i] = ((const uint8_t *)x)[j];
    }
}

#endif
