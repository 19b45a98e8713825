/*
 * Elements by dtype: conversions that every folder of the engine shares.
 *
 * A conversion to a narrower floating type rounds to nearest, ties to even, by way of f32 (as
 * PyTorch's). A floating number becomes a whole one by cutting off its fraction; what is out of
 * range becomes the nearest end, NaN 0. A whole number becomes a narrower one modulo 2^bits. bool
 * is "not 0".
 */
#ifndef DTYPE_H
#define DTYPE_H

#include "det/tensor.h"

#include <string.h>

#ifndef DTYPE_FN /* the CUDA backend's are for the device too */
#define DTYPE_FN static inline
#endif

DTYPE_FN uint32_t det__f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

DTYPE_FN float det__bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

DTYPE_FN float det__bf16_to_f32(uint16_t h)
{
    return det__bits_f32((uint32_t)h << 16);
}

DTYPE_FN uint16_t det__f32_to_bf16(float f)
{
    uint32_t u = det__f32_bits(f);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)(f != f ? 0x7fc0 : rounded);
}

DTYPE_FN float det__f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exp = h >> 10 & 31, frac = h & 1023;
    if (exp == 31)
        return det__bits_f32(sign | 0x7f800000u | frac << 13);
    if (exp > 0)
        return det__bits_f32(sign | (exp + 112) << 23 | frac << 13);
    float tiny = (float)frac * 0x1p-24f;
    return sign ? -tiny : tiny;
}

DTYPE_FN uint16_t det__f32_to_f16(float f)
{
    uint32_t u = det__f32_bits(f), mag = u & 0x7fffffffu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00);
    if (mag >= 0x477ff000u) /* 65520 and above */
        return (uint16_t)(sign | 0x7c00);
    if (mag < 0x38800000u) { /* below 2^-14: counts of 2^-24; adding 0.5 lets the unit round */
        uint32_t half = det__f32_bits(det__bits_f32(mag) + 0.5f) - 0x3f000000u;
        return (uint16_t)(sign | half);
    }
    return (uint16_t)(sign | (((mag + 0xfff + (mag >> 13 & 1)) >> 13) - (112 << 10)));
}

DTYPE_FN bool det__is_float(enum det_dtype dtype)
{
    return dtype == DET_F32 || dtype == DET_F64 || dtype == DET_BF16 || dtype == DET_F16;
}

/* v cut off, the nearest end where it is out of range; NaN is 0. */
DTYPE_FN int64_t det__whole(double v, double lo, double hi)
{
    if (v != v)
        return 0;
    if (v >= hi)
        return hi >= 0x1p63 ? INT64_MAX : (int64_t)hi;
    return v <= lo ? (int64_t)lo : (int64_t)v;
}

/* One element at p. A floating one is cut off for i64, a whole one rounded for f64. */
double det__load_f64(enum det_dtype dtype, const void *p);
int64_t det__load_i64(enum det_dtype dtype, const void *p);
void det__store_f64(enum det_dtype dtype, void *p, double v);
void det__store_i64(enum det_dtype dtype, void *p, int64_t v);
/* dst[i * dst_stride] = src[i * src_stride] for i in 0..n-1, converted; strides in elements. */
void det__convert(enum det_dtype from, const void *src, int64_t src_stride, enum det_dtype to,
                  void *dst, int64_t dst_stride, int64_t n);

#endif
