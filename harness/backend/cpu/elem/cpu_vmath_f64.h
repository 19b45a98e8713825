/*
 * cpu_vmath.h for double: the same ways with Cephes' coefficients for it. exp is off by at most 2
 * ulp; below -708.3 it is 0, above 709.7 it is inf, NaN stays.
 */
#ifndef CPU_VMATH_F64_H
#define CPU_VMATH_F64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) double vm_scale(double y, int32_t n)
{
    uint64_t bits = (uint64_t)(uint32_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

static inline __attribute__((always_inline)) double vm_exp(double x)
{
    double in = x > 709.78 ? 709.78 : x;
    in = in < -708.39 ? -708.39 : in;
    double n = floor(in * 1.4426950408889634 + 0.5);
    double r = in - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6, z = r * r;
    double p = 1.26177193074810590878e-4;
    p = p * z + 3.02994407707441961300e-2;
    p = r * (p * z + 9.99999999999999999910e-1);
    double q = 3.00198505138664455042e-6;
    q = q * z + 2.52448340349684104192e-3;
    q = q * z + 2.27265548208155028766e-1;
    q = q * z + 2;
    int32_t whole = (int32_t)n, half = whole / 2; /* 2^1024 is no double: in two steps */
    double y = vm_scale(vm_scale(1 + 2 * (p / (q - p)), half), whole - half);
    y = x < -708.39 ? 0 : y;
    y = x > 709.78 ? INFINITY : y;
    return x != x ? x : y;
}

static inline __attribute__((always_inline)) double vm_sigmoid(double x)
{
    return 1 / (1 + vm_exp(-x));
}

/* Near 0 a quotient of polynomials loses no digits. */
static inline __attribute__((always_inline)) double vm_tanh(double x)
{
    double z = x * x, p = -9.64399179425052238628e-1, q = z + 1.12811678491632931402e2;
    p = p * z - 9.92877231001918586564e1;
    p = p * z - 1.61468768441708447952e3;
    q = q * z + 2.23548839060100448583e3;
    q = q * z + 4.84406305325125486048e3;
    double near = p / q * z * x + x, far = 1 - 2 / (vm_exp(2 * x) + 1);
    return fabs(x) < 0.625 ? near : far;
}

#endif
