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

static inline uint32_t det__f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float det__bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float det__bf16_to_f32(uint16_t h)
{
    return det__bits_f32((uint32_t)h << 16);
}

static inline uint16_t det__f32_to_bf16(float f)
{
    uint32_t u = det__f32_bits(f);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)(f != f ? 0x7fc0 : rounded);
}

float det__f16_to_f32(uint16_t h);
uint16_t det__f32_to_f16(float f);

static inline bool det__is_float(enum det_dtype dtype)
{
    return dtype == DET_F32 || dtype == DET_F64 || dtype == DET_BF16 || dtype == DET_F16;
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
