/*
 * exp and what follows from it, written so that loops over them become vector instructions.
 *
 * exp: x = n ln 2 + r with the two-part ln 2 of Cody & Waite (1980), a polynomial for e^r (Cephes'
 * coefficients), and n added to the exponent. At most 2 ulp over the whole range; below -87.3 it
 * is 0, above 88.7 it is inf, NaN stays.
 */
#ifndef CPU_VMATH_H
#define CPU_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) float vm_scale(float y, int32_t n)
{
    int32_t bits = (n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

static inline __attribute__((always_inline)) float vm_exp(float x)
{
    float in = x > 88.72283f ? 88.72283f : x;
    in = in < -87.33654f ? -87.33654f : in;
    float n = floorf(in * 1.44269504f + 0.5f);
    float r = in - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    int32_t whole = (int32_t)n, half = whole / 2; /* 2^128 is no float: in two steps */
    float y = vm_scale(vm_scale(p * r * r + r + 1, half), whole - half);
    y = x < -87.33654f ? 0 : y;
    y = x > 88.72283f ? INFINITY : y;
    return x != x ? x : y;
}

static inline __attribute__((always_inline)) float vm_sigmoid(float x)
{
    return 1 / (1 + vm_exp(-x));
}

/* Near 0 the quotient loses digits, the polynomial does not (Cephes' tanhf). */
static inline __attribute__((always_inline)) float vm_tanh(float x)
{
    float z = x * x, p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = p * z * x + x, far = 1 - 2 / (vm_exp(2 * x) + 1);
    return fabsf(x) < 0.625f ? near : far;
}

#endif
