/*
 * The sums of a matrix' columns: the gradient of a bias. Blocks of rows are summed in float, four
 * rows at once, and joined in double and in order, so the bits do not depend on the thread count.
 */
#include "cpu_real.h"

#include <string.h>

#include "mem.h"

#define BLOCK 256 /* rows */

struct columns {
    const real *x;
    int64_t rows, n, blocks;
    real *parts; /* [blocks, n] */
};

CPU_CLONES static void sum_blocks(const void *arg, int64_t from, int64_t to)
{
    const struct columns *v = arg;
    int64_t n = v->n;
    for (int64_t b = from; b < to; b++) {
        real *restrict sum = v->parts + b * n;
        int64_t p = b * BLOCK, end = p + BLOCK < v->rows ? p + BLOCK : v->rows;
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (; p + 4 <= end; p += 4) {
            const real *restrict x = v->x + p * n;
            for (int64_t i = 0; i < n; i++)
                sum[i] += (x[i] + x[n + i]) + (x[2 * n + i] + x[3 * n + i]);
        }
        for (; p < end; p++)
            for (int64_t i = 0; i < n; i++)
                sum[i] += v->x[p * n + i];
    }
}

int CPU(column_sums)(int threads, const real *x, int64_t rows, int64_t n, real *y,
                     struct det_err *err)
{
    struct columns v = {x, rows, n, (rows + BLOCK - 1) / BLOCK, NULL};
    det_cleanup(freep) real *parts = det_try_alloc((size_t)(v.blocks * n) * sizeof *parts + 1);
    v.parts = parts;
    if (!parts)
        return det_fail(err, DET_ENOMEM, "no memory for the sums of %lld columns", (long long)n);
    cpu_parallel(threads, v.blocks, 1 + CPU_GRAIN / (BLOCK * (n > 0 ? n : 1)), sum_blocks, &v);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t b = 0; b < v.blocks; b++)
            sum += parts[b * n + i];
        y[i] = (real)sum;
    }
    return 0;
}
