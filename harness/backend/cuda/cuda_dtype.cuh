/* Elements of any dtype on the device; the conversions are those of tensor/dtype.h, bit for bit. */
#ifndef CUDA_DTYPE_CUH
#define CUDA_DTYPE_CUH

#include "cuda_kernel.cuh"

__device__ inline float cuda_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

__device__ inline uint32_t cuda_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

__device__ inline float cuda_from_bf16(uint16_t h)
{
    return cuda_bits_f32((uint32_t)h << 16);
}

__device__ inline uint16_t cuda_to_bf16(float f)
{
    uint32_t u = cuda_f32_bits(f);
    return f != f ? 0x7fc0 : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

__device__ inline float cuda_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exp = h >> 10 & 31, frac = h & 1023;
    if (exp == 31)
        return cuda_bits_f32(sign | 0x7f800000u | frac << 13);
    if (exp > 0)
        return cuda_bits_f32(sign | (exp + 112) << 23 | frac << 13);
    float tiny = (float)frac * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -tiny : tiny;
}

__device__ inline uint16_t cuda_to_f16(float f)
{
    uint32_t u = cuda_f32_bits(f), mag = u & 0x7fffffffu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00);
    if (mag >= 0x477ff000u) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (mag < 0x38800000u) /* below 2^-14: adding 0.5 lets the unit round to counts of 2^-24 */
        return (uint16_t)(sign | (cuda_f32_bits(cuda_bits_f32(mag) + 0.5f) - 0x3f000000u));
    return (uint16_t)(sign | (((mag + 0xfff + (mag >> 13 & 1)) >> 13) - (112 << 10)));
}

/* Cut off, the nearest end where out of range, NaN 0. */
__device__ inline int64_t cuda_whole(double v, double lo, double hi)
{
    if (v != v)
        return 0;
    if (v >= hi)
        return hi >= 9223372036854775808.0 ? INT64_MAX : (int64_t)hi;
    return v <= lo ? (int64_t)lo : (int64_t)v;
}

__device__ inline bool cuda_is_float(int dtype)
{
    return dtype == DET_F32 || dtype == DET_F64 || dtype == DET_BF16 || dtype == DET_F16;
}

/* Element i of p, as T: float, double, or int64_t for whole dtypes. */
template <typename T>
__device__ inline T cuda_load(int dtype, const void *p, int64_t i)
{
    switch (dtype) {
    case DET_F32: return (T)((const float *)p)[i];
    case DET_F64: return (T)((const double *)p)[i];
    case DET_BF16: return (T)cuda_from_bf16(((const uint16_t *)p)[i]);
    case DET_F16: return (T)cuda_from_f16(((const uint16_t *)p)[i]);
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
    case DET_BF16: ((uint16_t *)p)[i] = cuda_to_bf16((float)v); break;
    case DET_F16: ((uint16_t *)p)[i] = cuda_to_f16((float)v); break;
    case DET_I64: ((int64_t *)p)[i] = v; break;
    case DET_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case DET_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case DET_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    default: ((uint8_t *)p)[i] = (uint8_t)v;
    }
}

template <typename T>
__device__ inline void cuda_store(int dtype, void *p, int64_t i, T v)
{
    switch (dtype) {
    case DET_F32: ((float *)p)[i] = (float)v; break;
    case DET_F64: ((double *)p)[i] = (double)v; break;
    case DET_BF16: ((uint16_t *)p)[i] = cuda_to_bf16((float)v); break;
    case DET_F16: ((uint16_t *)p)[i] = cuda_to_f16((float)v); break;
    case DET_I64: ((int64_t *)p)[i] = cuda_whole(v, -0x1p63, 0x1p63); break;
    case DET_I32: ((int32_t *)p)[i] = (int32_t)cuda_whole(v, -0x1p31, 0x1p31 - 1); break;
    case DET_I16: ((int16_t *)p)[i] = (int16_t)cuda_whole(v, -0x1p15, 0x1p15 - 1); break;
    case DET_I8: ((int8_t *)p)[i] = (int8_t)cuda_whole(v, -128, 127); break;
    case DET_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    default: ((uint8_t *)p)[i] = (uint8_t)cuda_whole(v, 0, 255);
    }
}

/* Element i of y = element j of x, of the same size, whatever it is. */
__device__ inline void cuda_move(size_t size, void *y, int64_t i, const void *x, int64_t j)
{
    switch (size) {
    case 8: ((uint64_t *)y)[i] = ((const uint64_t *)x)[j]; break;
    case 4: ((uint32_t *)y)[i] = ((const uint32_t *)x)[j]; break;
    case 2: ((uint16_t *)y)[i] = ((const uint16_t *)x)[j]; break;
    default: ((uint8_t *)y)[i] = ((const uint8_t *)x)[j];
    }
}

#endif
