/* Products of matrices of double, which oneDNN has none for. */
#ifndef CPU_DGEMM_H
#define CPU_DGEMM_H

#include <stdint.h>

/*
 * y [m, n] = alpha op(a) op(b) + beta y, row-major, as dnnl_sgemm: trans 'T' or 'N', a beta of 0
 * does not read y. On all threads, within a parallel loop on one; the bits do not depend on how
 * many there are.
 */
void cpu_dgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, double alpha,
               const double *a, int64_t lda, const double *b, int64_t ldb, double beta, double *y,
               int64_t ldy);

#endif
