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
    uint32_t bits = (uint32_t)(n + 127) << 23;
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

/* a polynomial in t, coefficients from the highest power on */
static inline __attribute__((always_inline)) float vm_poly(const float *a, int n, float t)
{
    float p = a[0];
    for (int i = 1; i < n; i++)
        p = p * t + a[i];
    return p;
}

/* Cephes' erff and erfcf: a polynomial in x^2 up to 1, above it 1 - e^(-x^2) / x times one of two
 * in 1 / x^2. Off by at most 1.7e-7 of the value. */
static inline __attribute__((always_inline)) float vm_erf(float x)
{
    static const float near[] = {7.853861353e-5f,  -8.010193625e-4f, 5.188327686e-3f,
                                 -2.685381194e-2f, 1.128358515e-1f,  -3.761262582e-1f,
                                 1.128379166f};
    static const float middle[] = {2.326819970e-2f,  -1.387039389e-1f, 3.687424675e-1f,
                                   -5.824733027e-1f, 6.210004622e-1f,  -4.944515323e-1f,
                                   3.404879938e-1f,  -2.741127028e-1f, 5.638259427e-1f};
    static const float far[] = {-1.047766400e+1f, 1.297719955e+1f, -7.495518718f,
                                2.921019019f,     -1.015265279f,   4.218463358e-1f,
                                -2.820767440e-1f, 5.641895068e-1f};
    float a = fabsf(x), b = a < 1 ? 1 : a, q = 1 / b, t = q * q;
    float p = a < 2 ? vm_poly(middle, 9, t) : vm_poly(far, 8, t);
    float rest = 1 - vm_exp(-b * b) * q * p;
    return a < 1 ? x * vm_poly(near, 7, x * x) : x < 0 ? -rest : x != x ? x : rest;
}

/* Cephes' logf, for finite x of at least 1. */
static inline __attribute__((always_inline)) float vm_log_from_1(float x)
{
    static const float a[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                              -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                              2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
    int32_t bits, whole;
    float m;
    memcpy(&bits, &x, sizeof bits);
    whole = (bits >> 23) - 127;
    bits = (bits & 0x007fffff) | 0x3f800000; /* 1 <= m < 2 */
    memcpy(&m, &bits, sizeof m);
    whole += m > 1.41421356f ? 1 : 0;
    m = m > 1.41421356f ? m * 0.5f : m;
    float r = m - 1, z = r * r, e = (float)whole;
    float y = vm_poly(a, 9, r) * r * z - 2.12194440e-4f * e - 0.5f * z;
    return r + y + 0.693359375f * e;
}

/* log(1 + z), z >= 0, by Kahan's correction for what 1 + z loses. */
static inline __attribute__((always_inline)) float vm_log1p(float z)
{
    float u = 1 + z, y = vm_log_from_1(u) * (z / (u - 1));
    y = u == 1 ? z : y;
    return z < INFINITY ? y : z;
}

#endif
