/* Shape rules of indexing, matrix products and cross-entropy. */
#include <inttypes.h>
#include <string.h>

#include "op_shape.h"

static int need_index(const struct op_call *c, int i, struct det_err *err)
{
    if (c->in[i]->dtype != DET_I64)
        return det_fail(err, DET_EINVAL, "the index is %s and must be int64: use det_cast()",
                        det_dtype_name(c->in[i]->dtype));
    return 0;
}

/* x [A,N,B] or [N,B]; the public functions bring all shapes to this form. */
int shape_index_select(struct op_call *c, struct det_err *err)
{
    c->spec[0] = op_like(c->in[0]);
    c->spec[0].dims[c->in[0]->ndim - 2] = (int64_t)c->in[1]->numel;
    c->outs = 1;
    return need_index(c, 1, err);
}

int shape_gather(struct op_call *c, struct det_err *err)
{
    c->spec[0] = op_like(c->in[1]);
    c->spec[0].dtype = c->in[0]->dtype;
    c->outs = 1;
    return need_index(c, 1, err);
}

int shape_scatter_add(struct op_call *c, struct det_err *err)
{
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    int rc = op_numbers(c, err);
    if (rc == 0 && c->in[2]->dtype != c->in[0]->dtype)
        return det_fail(err, DET_EINVAL, "the source is %s, the input %s: use det_cast()",
                        det_dtype_name(c->in[2]->dtype), det_dtype_name(c->in[0]->dtype));
    if (rc == 0 && !det__same_shape(c->in[1], c->in[2]))
        return det_fail(err, DET_EINVAL, "the source must have the shape of the index");
    return rc < 0 ? rc : need_index(c, 1, err);
}

static int batch_dims(struct op_call *c, struct det_err *err)
{
    for (int i = 0; i < c->in[0]->ndim - 2; i++) {
        int64_t a = c->in[0]->dims[i], b = c->in[1]->dims[i];
        if (a != b && a != 1 && b != 1)
            return det_fail(err, DET_EINVAL,
                            "dimension %d is %" PRId64 " and %" PRId64
                            ": batch dimensions must be equal or 1",
                            i, a, b);
        c->spec[0].dims[i] = a == 1 ? b : a;
    }
    return 0;
}

int shape_matmul(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *a = c->in[0], *b = c->in[1];
    int n = a->ndim;
    int64_t m = a->dims[n - (c->a.trans_a ? 1 : 2)], k = a->dims[n - (c->a.trans_a ? 2 : 1)];
    int64_t depth = b->dims[n - (c->a.trans_b ? 1 : 2)],
            width = b->dims[n - (c->a.trans_b ? 2 : 1)];
    if (k != depth)
        return det_fail(err, DET_EINVAL,
                        "the first matrix has %" PRId64 " columns, the second %" PRId64
                        " rows: they must be equal (use det_transpose())",
                        k, depth);
    c->spec[0] = op_like(a);
    c->spec[0].dims[n - 2] = m;
    c->spec[0].dims[n - 1] = width;
    c->outs = 1;
    int rc = batch_dims(c, err);
    return rc < 0 ? rc : op_all_float(c, err);
}

static int check_classes(const struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *target = c->in[1], *w = c->in[2];
    if (x->ndim != 2 || x->numel == 0)
        return det_fail(err, DET_EINVAL,
                        "the input must be [rows, classes], with at least one of each");
    if (target->ndim != 1 || target->dtype != DET_I64 || target->dims[0] != x->dims[0])
        return det_fail(err, DET_EINVAL,
                        "the target must be int64[%" PRId64 "], one class for each row",
                        x->dims[0]);
    if (w && (w->ndim != 1 || w->dims[0] != x->dims[1]))
        return det_fail(err, DET_EINVAL, "the weight must be [%" PRId64 "], one for each class",
                        x->dims[1]);
    if (!(c->a.smoothing >= 0 && c->a.smoothing <= 1))
        return det_fail(err, DET_EINVAL, "label_smoothing is %g and must be in 0..1",
                        c->a.smoothing);
    return op_need_float(c, 0, err);
}

int shape_cross_entropy(struct op_call *c, struct det_err *err)
{
    int64_t rows = c->in[0]->dims[0];
    bool each = c->a.mode == DET_REDUCE_NONE;
    enum det_dtype wide = op_wide(c->in[0]), dtype = c->wide ? wide : c->in[0]->dtype;
    c->spec[0] = (struct op_out){.dtype = dtype, .ndim = each ? 1 : 0, .dims = {each ? rows : 0}};
    c->spec[1] = (struct op_out){.dtype = wide, .ndim = 2, .dims = {2, rows}};
    c->spec[2] = (struct op_out){.dtype = wide};
    c->outs = 3;
    int rc = check_classes(c, err);
    bool is_wide = c->wide && c->in[2] && c->in[2]->dtype == wide;
    return rc < 0 || is_wide ? rc : op_need_float(c, 2, err);
}
