/*
 * What the kernels over one floating dtype are written in, as in ref_real.h: `real`, in_real(),
 * out_real(). Their files are compiled twice, for float, and with REF_F64 for double; CPU(softmax)
 * is cpu_softmax() or cpu_softmax_f64(). sqrt and log are those of the type.
 */
#ifndef CPU_REAL_H
#define CPU_REAL_H

#include <tgmath.h>

#include "cpu.h"
#include "ref_real.h"

#ifdef REF_F64
#include "cpu_vmath_f64.h"
#define CPU(name) cpu_##name##_f64
#else
#include "cpu_vmath.h"
#define CPU(name) cpu_##name
#endif

/* y[j] = the sum of x[i, j] over the rows i; x [rows, n]. DET_ENOMEM. */
DET_MUST int CPU(column_sums)(int threads, const real *x, int64_t rows, int64_t n, real *y,
                              struct det_err *err);

/* log(sum(exp(x))) of a row of at least one element. */
real CPU(row_log_sum)(const real *x, int64_t n, real *ret_max);

#endif
