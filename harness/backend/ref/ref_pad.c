/* Padding of any dimensions in any order of memory, and its gradient. */
#include "ref_real.h"

#include <string.h>

#include "mem.h"

/* For each dimension, where its output places come from: elements of x, or -1 outside. */
struct pad {
    int ndim;
    int order[DET_DIMS_MAX]; /* the dimensions as they lie in memory, the densest last */
    int64_t size[DET_DIMS_MAX];
    int64_t *from[DET_DIMS_MAX];
    int64_t *all;
};

static int64_t source_of(int64_t at, int64_t n, int mode)
{
    if (at >= 0 && at < n)
        return at;
    switch (mode) {
    case DET_PAD_REFLECT: return at < 0 ? -at : 2 * (n - 1) - at;
    case DET_PAD_REPLICATE: return at < 0 ? 0 : n - 1;
    case DET_PAD_CIRCULAR: return at < 0 ? at + n : at - n;
    default: return -1;
    }
}

static void memory_order(struct pad *p, const struct det_tensor *x)
{
    static const int nhwc[] = {0, 2, 3, 1};
    for (int i = 0; i < p->ndim; i++)
        p->order[i] = x->layout == DET_LAYOUT_NHWC ? nhwc[i] : i;
}

/* `x` is the smaller tensor (or its gradient), `y` the larger one. */
static int pad_init(struct pad *p, const struct det_call *c, const struct det_tensor *x,
                    const struct det_tensor *y, struct det_err *err)
{
    size_t total = 1;
    *p = (struct pad){.ndim = x->ndim};
    for (int i = 0; i < x->ndim; i++)
        total += (size_t)y->dims[i];
    p->all = det_try_alloc(total * sizeof *p->all);
    if (!p->all)
        return det_fail(err, DET_ENOMEM, "no memory for a table of %zu places", total);
    memory_order(p, x);
    int64_t *at = p->all, stride = 1;
    for (int k = p->ndim - 1; k >= 0; k--) {
        int d = p->order[k];
        p->size[k] = y->dims[d];
        p->from[k] = at;
        for (int64_t i = 0; i < y->dims[d]; i++) {
            int64_t s = source_of(i - c->a.before[d], x->dims[d], c->a.pad_mode);
            *at++ = s < 0 ? -1 : s * stride;
        }
        stride *= x->dims[d];
    }
    return 0;
}

static void pad_finish(struct pad *p)
{
    free(p->all);
}

/* The element of x where the row of y numbered `row` begins, -1 outside; a row is one run along the
 * densest dimension. */
static int64_t row_source(const struct pad *p, int64_t row)
{
    int64_t from = 0;
    for (int k = p->ndim - 2; k >= 0; k--) {
        int64_t s = p->from[k][row % p->size[k]];
        if (s < 0)
            return -1;
        from += s;
        row /= p->size[k];
    }
    return from;
}

static int64_t row_count(const struct pad *p)
{
    int64_t rows = 1;
    for (int k = 0; k < p->ndim - 1; k++)
        rows *= p->size[k];
    return rows;
}

REF_KERNEL(pad)
{
    (void)s;
    det_cleanup(pad_finish) struct pad p;
    int rc = pad_init(&p, c, c->in[0], c->out[0], err);
    if (rc < 0)
        return rc;
    int64_t n = p.size[p.ndim - 1], rows = row_count(&p);
    const int64_t *from = p.from[p.ndim - 1];
    for (int64_t r = 0; r < rows; r++) {
        int64_t base = row_source(&p, r);
        real *y = out_real(c, 0) + r * n;
        for (int64_t i = 0; i < n; i++)
            y[i] = base < 0 || from[i] < 0 ? (real)c->a.scale : in_real(c, 0)[base + from[i]];
    }
    return 0;
}

REF_KERNEL(pad_bwd)
{
    (void)s;
    det_cleanup(pad_finish) struct pad p;
    int rc = pad_init(&p, c, c->out[0], c->in[0], err);
    if (rc < 0)
        return rc;
    int64_t n = p.size[p.ndim - 1], rows = row_count(&p);
    const int64_t *from = p.from[p.ndim - 1];
    memset(c->out[0]->data, 0, c->out[0]->numel * sizeof(real));
    for (int64_t r = 0; r < rows; r++) {
        int64_t base = row_source(&p, r);
        const real *dy = in_real(c, 0) + r * n;
        for (int64_t i = 0; base >= 0 && i < n; i++)
            if (from[i] >= 0)
                out_real(c, 0)[base + from[i]] += dy[i];
    }
    return 0;
}
