/* Shape rules of everything but images. */
#include "op_shape.h"

#include "dtype.h"

#include <inttypes.h>
#include <string.h>

struct op_out op_like(const struct det_tensor *t)
{
    struct op_out o = {.dtype = t->dtype, .ndim = t->ndim};
    memcpy(o.dims, t->dims, sizeof o.dims);
    return o;
}

int op_need_float(const struct op_call *c, int i, struct det_err *err)
{
    const struct det_tensor *first = c->in[0], *t = c->in[i];
    if (t && !det__is_float(t->dtype))
        return det_fail(err, DET_EINVAL,
                        "input %d is %s and must be of a floating dtype: use det_cast()", i + 1,
                        det_dtype_name(t->dtype));
    if (t && t->dtype != first->dtype)
        return det_fail(err, DET_EINVAL, "input %d is %s and must be %s: use det_cast()", i + 1,
                        det_dtype_name(t->dtype), det_dtype_name(first->dtype));
    return 0;
}

int op_all_float(const struct op_call *c, struct det_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < op_table[c->op].inputs_max; i++)
        rc = op_need_float(c, i, err);
    return rc;
}

enum det_dtype op_wide(const struct det_tensor *x)
{
    return x->dtype == DET_F64 ? DET_F64 : DET_F32;
}

int op_numbers(const struct op_call *c, struct det_err *err)
{
    enum det_dtype dtype = c->in[0]->dtype;
    if (!det__is_float(dtype) && dtype != DET_I64)
        return det_fail(err, DET_EINVAL,
                        "the input is %s and must be floating or int64: use det_cast()",
                        det_dtype_name(dtype));
    return 0;
}

int shape_number_rows(struct op_call *c, struct det_err *err)
{
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    return op_numbers(c, err);
}

static void set_scalar(struct op_call *c, enum det_dtype dtype)
{
    c->spec[0] = (struct op_out){.dtype = dtype};
    c->outs = 1;
}

int shape_scalar(struct op_call *c, struct det_err *err)
{
    if (c->in[0]->numel == 0)
        return det_fail(err, DET_EINVAL, "the input has no elements");
    set_scalar(c, c->in[0]->dtype);
    return op_all_float(c, err);
}

int shape_cast(struct op_call *c, struct det_err *err)
{
    (void)err;
    c->spec[0] = op_like(c->in[0]);
    c->spec[0].dtype = c->dtype;
    c->outs = 1;
    return 0;
}

int shape_layout(struct op_call *c, struct det_err *err)
{
    (void)err;
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    return 0;
}

int shape_dropout(struct op_call *c, struct det_err *err)
{
    if (!(c->a.p >= 0 && c->a.p <= 1))
        return det_fail(err, DET_EINVAL, "p is %g and must be in 0..1", c->a.p);
    c->a.scale = c->a.p < 1 ? 1 / (1 - c->a.p) : 0;
    c->spec[0] = op_like(c->in[0]);
    c->spec[1] = (struct op_out){.dtype = DET_U8, .ndim = 1, .dims = {(int64_t)c->in[0]->numel}};
    c->outs = 2;
    return op_all_float(c, err);
}

int shape_linear(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
    if (x->ndim != 2 || w->ndim != 2)
        return det_fail(err, DET_EINVAL, "the input and the weight must have 2 dimensions");
    if (x->dims[1] != w->dims[1])
        return det_fail(err, DET_EINVAL,
                        "the layer takes %" PRId64 " features, the input has %" PRId64
                        ": make the layer that size, or use det_flatten(e, x, 1) before it",
                        w->dims[1], x->dims[1]);
    if (b && (b->ndim != 1 || b->dims[0] != w->dims[0]))
        return det_fail(err, DET_EINVAL, "the bias must be [%" PRId64 "]", w->dims[0]);
    if (x->numel == 0)
        return det_fail(err, DET_EINVAL, "the batch is empty");
    c->spec[0] = (struct op_out){.dtype = x->dtype, .ndim = 2, .dims = {x->dims[0], w->dims[0]}};
    c->outs = 1;
    return op_all_float(c, err);
}

static int check_rows(const struct op_call *c, struct det_err *err)
{
    if (c->in[0]->ndim != 2 || c->in[0]->numel == 0)
        return det_fail(err, DET_EINVAL,
                        "the input must be [rows, classes], with at least one of each");
    return op_need_float(c, 0, err);
}

int shape_rows(struct op_call *c, struct det_err *err)
{
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    return check_rows(c, err);
}

int shape_nll(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *target = c->in[1];
    int rc = check_rows(c, err);
    if (rc < 0)
        return rc;
    if (target->ndim != 1 || target->dtype != DET_I64 || target->dims[0] != c->in[0]->dims[0])
        return det_fail(err, DET_EINVAL,
                        "the target must be int64[%" PRId64 "], one class for each row",
                        c->in[0]->dims[0]);
    set_scalar(c, c->in[0]->dtype);
    return 0;
}

int shape_mse(struct op_call *c, struct det_err *err)
{
    int rc = op_all_float(c, err);
    if (rc == 0 && !det__same_shape(c->in[0], c->in[1]))
        return det_fail(err, DET_EINVAL, "the shapes must be equal (use det_reshape())");
    if (rc == 0 && c->in[0]->numel == 0)
        return det_fail(err, DET_EINVAL, "the input has no elements");
    set_scalar(c, c->in[0]->dtype);
    return rc;
}

int shape_argmax(struct op_call *c, struct det_err *err)
{
    c->spec[0] = (struct op_out){.dtype = DET_I64, .ndim = 1, .dims = {c->in[0]->dims[0]}};
    c->outs = 1;
    return check_rows(c, err);
}

int shape_eq(struct op_call *c, struct det_err *err)
{
    if (!det__same_shape(c->in[0], c->in[1]) || c->in[0]->dtype != c->in[1]->dtype)
        return det_fail(err, DET_EINVAL, "the shapes and dtypes must be equal");
    set_scalar(c, DET_F32);
    return 0;
}
