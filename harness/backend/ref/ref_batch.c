/* The batches of a matrix product: see ref.h. */
#include "ref.h"

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
