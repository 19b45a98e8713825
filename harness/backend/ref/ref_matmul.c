/* Batched matrix products with broadcast batches. Sums are in double. */
#include "ref_real.h"

/* Element (i, j) of a matrix: step i * rows + j * columns from its start. */
struct matrix {
    const real *p;
    int64_t rows, columns;
};

static struct matrix matrix_of(const struct det_tensor *t, bool transposed, int64_t offset)
{
    int64_t width = t->dims[t->ndim - 1];
    const real *p = (const real *)(const void *)t->data + offset;
    return transposed ? (struct matrix){p, 1, width} : (struct matrix){p, width, 1};
}

static void multiply_matrices(struct matrix a, struct matrix b, const struct det_tensor *y,
                              int64_t k, real *out)
{
    int64_t m = y->dims[y->ndim - 2], n = y->dims[y->ndim - 1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = out[i * n + j];
            for (int64_t l = 0; l < k; l++)
                sum += (double)a.p[i * a.rows + l * a.columns] * b.p[l * b.rows + j * b.columns];
            out[i * n + j] = (real)sum;
        }
}

REF_KERNEL(matmul)
{
    (void)s, (void)err;
    const struct det_tensor *a = c->in[0], *b = c->in[1], *y = c->out[0];
    int64_t dims[DET_DIMS_MAX], at[DET_DIMS_MAX] = {0}, count = ref_batch_dims(c, dims);
    int64_t k = a->dims[c->a.trans_a ? a->ndim - 2 : a->ndim - 1];
    for (size_t i = 0; i < y->numel; i++)
        out_real(c, 0)[i] = 0;
    for (int64_t i = 0; i < count; i++) {
        ref_batch_at(i, y->ndim - 2, dims, at);
        multiply_matrices(matrix_of(a, c->a.trans_a, ref_batch_offset(a, at)),
                          matrix_of(b, c->a.trans_b, ref_batch_offset(b, at)), y, k,
                          out_real(c, 0) + ref_batch_offset(y, at));
    }
    return 0;
}
