/*
 * The machine under the element-wise kernels: any dtype and any strides are brought to rows of f32,
 * f64 or i64, which is what the functions themselves (cpu_elem_rows.h) are compiled for. Tensors
 * that have such a dtype are read and written in place; others (f16, bf16, narrow integers) go
 * through small buffers.
 */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include "cpu.h"

/* y[i] = f(x[0][i * step[0]], x[1][i * step[1]], ...), i in 0..n-1. */
typedef void cpu_row_fn(const struct det_attrs *a, int64_t n, const void *const *x,
                        const int64_t *step, void *y);

/* The functions of elem.h for one floating dtype. */
struct cpu_elem {
    cpu_row_fn *unary[DET_UNARY_COUNT], *unary_bwd[DET_UNARY_COUNT];
    cpu_row_fn *binary[DET_BINARY_COUNT], *binary_bwd[2 * DET_BINARY_COUNT];
    cpu_row_fn *compare[DET_COMPARE_COUNT];
};
extern const struct cpu_elem cpu_elem_f32, cpu_elem_f64;
/* And for i64; NULL where whole numbers lack it. */
extern cpu_row_fn *const cpu_whole[DET_BINARY_COUNT], *const cpu_whole_compare[DET_COMPARE_COUNT];

/* Runs the function of in[0]'s dtype over all elements, on all threads. An output of bool is
 * written by the function itself. */
struct cpu_row_fns {
    cpu_row_fn *f32, *f64, *i64;
};
int cpu_rows(struct det_stream *s, const struct det_call *c, int inputs,
             const struct cpu_row_fns *fns);

/* dst[i] = src[i * step], converted (tensor/dtype.h). */
void cpu_convert(enum det_dtype from, const void *src, int64_t step, enum det_dtype to, void *dst,
                 int64_t n);

#endif
