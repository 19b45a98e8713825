/* Batched matrix products with broadcast batches. Sums are in double. */
#include "ref.h"

/* Element (i, j) of a matrix: step i * rows + j * columns from its start. */
struct matrix {
    const float *p;
    int64_t rows, columns;
};

static struct matrix matrix(const struct det_tensor *t, bool transposed, int64_t offset)
{
    int64_t width = t->dims[t->ndim - 1];
    const float *p = (const float *)(const void *)t->data + offset;
    return transposed ? (struct matrix){p, 1, width} : (struct matrix){p, width, 1};
}

int64_t ref_batch_offset(const struct det_tensor *t, const int64_t *at)
{
    int64_t offset = 0, step = t->dims[t->ndim - 1] * t->dims[t->ndim - 2];
    for (int i = t->ndim - 3; i >= 0; i--) {
        offset += t->dims[i] > 1 ? at[i] * step : 0;
        step *= t->dims[i];
    }
    return offset;
}

int64_t ref_batch_dims(const struct det_call *c, int64_t dims[DET_DIMS_MAX])
{
    int64_t n = 1;
    for (int i = 0; i < c->out[0]->ndim - 2; i++) {
        int64_t a = c->in[0]->dims[i], b = c->in[1]->dims[i];
        dims[i] = a == 1 ? b : a;
        n *= dims[i];
    }
    return n;
}

void ref_batch_at(int64_t i, int n, const int64_t *dims, int64_t *at)
{
    for (int d = n - 1; d >= 0; i /= dims[d], d--)
        at[d] = i % dims[d];
}

static void multiply(struct matrix a, struct matrix b, const struct det_tensor *y, int64_t k,
                     float *out)
{
    int64_t m = y->dims[y->ndim - 2], n = y->dims[y->ndim - 1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = out[i * n + j];
            for (int64_t l = 0; l < k; l++)
                sum += (double)a.p[i * a.rows + l * a.columns] * b.p[l * b.rows + j * b.columns];
            out[i * n + j] = (float)sum;
        }
}

int ref_matmul(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const struct det_tensor *a = c->in[0], *b = c->in[1], *y = c->out[0];
    int64_t dims[DET_DIMS_MAX], at[DET_DIMS_MAX] = {0}, count = ref_batch_dims(c, dims);
    int64_t k = a->dims[c->a.trans_a ? a->ndim - 2 : a->ndim - 1];
    for (size_t i = 0; i < y->numel; i++)
        out_f32(c, 0)[i] = 0;
    for (int64_t i = 0; i < count; i++) {
        ref_batch_at(i, y->ndim - 2, dims, at);
        multiply(matrix(a, c->a.trans_a, ref_batch_offset(a, at)),
                 matrix(b, c->a.trans_b, ref_batch_offset(b, at)), y, k,
                 out_f32(c, 0) + ref_batch_offset(y, at));
    }
    return 0;
}
