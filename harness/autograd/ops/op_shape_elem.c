/* Shape rules of element-wise operations: floating dtypes, and PyTorch's broadcasting. */
#include "op.h"

#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "op_shape.h"

int shape_float(struct op_call *c, struct det_err *err)
{
    if (!det__is_float(c->in[0]->dtype))
        return det_fail(err, DET_EINVAL,
                        "the input is %s and must be of a floating dtype: use "
                        "det_cast(e, x, DET_F32)",
                        det_dtype_name(c->in[0]->dtype));
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    return 0;
}

/* Widens spec[0] to take in[i] too, by PyTorch's rule: from the last dimension on, sizes are equal
 * or one of them is 1. */
static int widen_shape(struct op_call *c, int i, struct det_err *err)
{
    struct op_out *y = &c->spec[0];
    const struct det_tensor *x = c->in[i];
    int more = x->ndim - y->ndim;
    if (more > 0) {
        memmove(y->dims + more, y->dims, (size_t)y->ndim * sizeof *y->dims);
        memcpy(y->dims, x->dims, (size_t)more * sizeof *y->dims);
        y->ndim = x->ndim;
    }
    for (int d = 1; d <= x->ndim; d++) {
        int64_t *to = &y->dims[y->ndim - d], size = x->dims[x->ndim - d];
        if (*to != size && *to != 1 && size != 1)
            return det_fail(err, DET_EINVAL,
                            "the sizes %" PRId64 " and %" PRId64 " of dimension -%d do not fit: "
                            "they must be equal, or one of them 1 (use det_reshape() or "
                            "det_unsqueeze())",
                            *to, size, d);
        *to = *to == 1 ? size : *to;
    }
    int64_t numel = det__shape_check(y->dtype, y->ndim, y->dims, err);
    return numel < 0 ? det_wrap(err, (int)numel, "the output") : 0;
}

/* spec[0] = the shape that inputs first .. n-1, of one dtype unless they mix, are repeated to. */
static int broadcast_shapes(struct op_call *c, int first, int n, struct det_err *err)
{
    int rc = 0;
    c->spec[0] = op_like(c->in[first]);
    c->spec[0].dtype = c->mixed ? DET_F32 : c->spec[0].dtype;
    c->outs = 1;
    for (int i = first + 1; rc == 0 && i < n; i++) {
        if (c->in[i]->dtype != c->in[first]->dtype && !c->mixed)
            return det_fail(err, DET_EINVAL, "%s and %s do not mix: use det_cast()",
                            det_dtype_name(c->in[first]->dtype), det_dtype_name(c->in[i]->dtype));
        rc = widen_shape(c, i, err);
    }
    return rc;
}

int shape_numbers(struct op_call *c, struct det_err *err)
{
    if (c->in[0]->dtype == DET_BOOL)
        return det_fail(err, DET_EINVAL,
                        "bool has no arithmetic: use det_cast(), or "
                        "det_logical_and() and the like");
    return broadcast_shapes(c, 0, 2, err);
}

int shape_floats(struct op_call *c, struct det_err *err)
{
    int rc = shape_float(c, err);
    return rc < 0 ? rc : broadcast_shapes(c, 0, 2, err);
}

int shape_compare(struct op_call *c, struct det_err *err)
{
    int rc = broadcast_shapes(c, 0, 2, err);
    c->spec[0].dtype = DET_BOOL;
    return rc;
}

int shape_where(struct op_call *c, struct det_err *err)
{
    if (c->in[0]->dtype != DET_BOOL)
        return det_fail(err, DET_EINVAL,
                        "the condition is %s and must be bool: use a comparison "
                        "or det_cast()",
                        det_dtype_name(c->in[0]->dtype));
    int rc = broadcast_shapes(c, 1, 3, err);
    return rc < 0 ? rc : widen_shape(c, 0, err);
}
