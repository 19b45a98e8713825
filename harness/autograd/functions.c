/* The public functions that are not layers: arithmetic, reductions, shapes. */
#include <inttypes.h>
#include <string.h>

#include "op.h"
#include "tape.h"

struct det_tensor *det_add(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_apply(e, &(struct op_call){.op = OP_ADD, .in = {a, b}});
}

struct det_tensor *det_sub(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_apply(e, &(struct op_call){.op = OP_SUB, .in = {a, b}});
}

struct det_tensor *det_mul(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_apply(e, &(struct op_call){.op = OP_MUL, .in = {a, b}});
}

struct det_tensor *det_affine(struct det_engine *e, struct det_tensor *x, double factor,
                              double offset)
{
    struct op_call c = {.op = OP_AFFINE, .in = {x}, .a = {.scale = factor, .offset = offset}};
    return op_apply(e, &c);
}

struct det_tensor *det_scale(struct det_engine *e, struct det_tensor *x, double factor)
{
    return det_affine(e, x, factor, 0);
}

struct det_tensor *det_sum(struct det_engine *e, struct det_tensor *x)
{
    return op_apply(e, &(struct op_call){.op = OP_SUM, .in = {x}, .a.scale = 1});
}

struct det_tensor *det_mean(struct det_engine *e, struct det_tensor *x)
{
    double share = x && x->numel > 0 ? 1.0 / (double)x->numel : 0;
    return op_apply(e, &(struct op_call){.op = OP_SUM, .in = {x}, .a.scale = share});
}

struct det_tensor *det_cast(struct det_engine *e, struct det_tensor *x, enum det_dtype dtype)
{
    if (x && x->dtype == dtype)
        return x;
    return op_apply(e, &(struct op_call){.op = OP_CAST, .in = {x}, .dtype = dtype});
}

struct det_tensor *det_relu(struct det_engine *e, struct det_tensor *x)
{
    return op_apply(e, &(struct op_call){.op = OP_RELU, .in = {x}});
}

struct det_tensor *det_dropout(struct det_engine *e, struct det_tensor *x, double p, bool training)
{
    struct op_call c = {.op = OP_DROPOUT, .in = {x}, .a.p = p};
    if (x && (!training || p == 0))
        return x;
    det__draw(e, &c.a);
    return op_apply(e, &c);
}

/* Copies dims to `full`, and puts the number that makes the product right at the one -1. */
static int complete(const struct det_tensor *x, int ndim, const int64_t *dims,
                    int64_t full[DET_DIMS_MAX], struct det_err *err)
{
    int hole = -1;
    int64_t known = 1;
    if (ndim < 0 || ndim > DET_DIMS_MAX)
        return det_fail(err, DET_EINVAL, "%d dimensions, at most %d", ndim, DET_DIMS_MAX);
    for (int i = 0; i < ndim; i++) {
        full[i] = dims[i];
        if (dims[i] == -1 && hole < 0)
            hole = i;
        else if (dims[i] < 0 || (dims[i] > 0 && known > DET__BYTES_MAX / dims[i]))
            return det_fail(err, DET_EINVAL, "dimension %d is %" PRId64, i, dims[i]);
        else
            known *= dims[i];
    }
    if (hole >= 0 && known > 0 && (int64_t)x->numel % known == 0)
        full[hole] = (int64_t)x->numel / known;
    else if (hole >= 0 || known != (int64_t)x->numel)
        return det_fail(err, DET_EINVAL, "%zu elements do not fit into the new shape", x->numel);
    return 0;
}

/* x in C order on the device; the caller owns a reference. */
static struct det_tensor *plain(struct det_engine *e, struct det_tensor *x)
{
    if (x->layout == DET_LAYOUT_PLAIN)
        return det_to_device(e, x);
    return op_apply(e, &(struct op_call){.op = OP_LAYOUT, .in = {x}, .layout = DET_LAYOUT_PLAIN});
}

static struct det_tensor *view(struct det_engine *e, struct det_tensor *x, int ndim,
                               const int64_t *dims, bool record)
{
    struct det_tensor *from = plain(e, x);
    if (!from)
        return NULL;
    struct det_tensor *y = det__keep(e, det__tensor_view(from, ndim, dims));
    if (record && e->no_grad == 0 && op_wants_grad(from))
        tape_record(e->tape, &(struct op_call){.op = OP_RESHAPE, .in = {from}, .out = {y}});
    return y;
}

static struct det_tensor *missing(struct det_engine *e, const char *what)
{
    if (e->err.code == 0)
        det_engine_fail(e, DET_EINVAL, "%s: the input is NULL", what);
    return NULL;
}

struct det_tensor *det_reshape(struct det_engine *e, struct det_tensor *x, int ndim,
                               const int64_t *dims)
{
    int64_t full[DET_DIMS_MAX];
    char text[160];
    struct det_err err;
    if (!x || e->err.code < 0)
        return missing(e, "reshape");
    int rc = complete(x, ndim, dims, full, &err);
    if (rc < 0) {
        det_wrap(&err, rc, "reshape(%s)", det__tensor_text(x, text, sizeof text));
        det__keep_error(e, &err);
        return NULL;
    }
    return view(e, x, ndim, full, true);
}

struct det_tensor *det_flatten(struct det_engine *e, struct det_tensor *x, int start_dim)
{
    int64_t dims[DET_DIMS_MAX];
    if (!x || e->err.code < 0)
        return missing(e, "flatten");
    if (start_dim < 0 || start_dim >= x->ndim) {
        det_engine_fail(e, DET_EINVAL, "flatten: start_dim %d, the input has %d dimensions",
                        start_dim, x->ndim);
        return NULL;
    }
    memcpy(dims, x->dims, sizeof dims);
    for (int i = start_dim + 1; i < x->ndim; i++)
        dims[start_dim] *= x->dims[i];
    return view(e, x, start_dim + 1, dims, true);
}

struct det_tensor *det_detach(struct det_engine *e, struct det_tensor *x)
{
    if (!x || e->err.code < 0)
        return missing(e, "detach");
    det_no_grad_begin(e);
    struct det_tensor *y = view(e, x, x->ndim, x->dims, false);
    det_no_grad_end(e);
    return y;
}
