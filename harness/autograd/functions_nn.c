/* The public functions behind layers. */
#include <string.h>

#include "functions.h"

/* Calls of 2-D operations on (..., last): as rows there and back. */
static struct det_tensor *as_rows(struct det_engine *e, struct det_tensor *x)
{
    if (!x || x->ndim == 2 || x->ndim == 0)
        return x;
    return det_reshape(e, x, 2, (int64_t[]){-1, x->dims[x->ndim - 1]});
}

static struct det_tensor *from_rows(struct det_engine *e, struct det_tensor *y,
                                    const struct det_tensor *x, bool keep_last)
{
    int64_t dims[DET_DIMS_MAX];
    if (!y || x->ndim == 2 || x->ndim == 0)
        return y;
    memcpy(dims, x->dims, sizeof dims);
    if (keep_last)
        dims[x->ndim - 1] = y->dims[1];
    return det_reshape(e, y, keep_last ? x->ndim : x->ndim - 1, dims);
}

struct det_tensor *det_linear(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias)
{
    struct op_call c = {.op = OP_LINEAR, .in = {as_rows(e, x), weight, bias}};
    return from_rows(e, op_apply(e, &c), x, true);
}

struct det_tensor *det_log_softmax(struct det_engine *e, struct det_tensor *x)
{
    struct op_call c = {.op = OP_LOG_SOFTMAX, .in = {as_rows(e, x)}};
    return from_rows(e, op_apply(e, &c), x, true);
}

struct det_tensor *det_softmax(struct det_engine *e, struct det_tensor *x)
{
    struct op_call c = {.op = OP_SOFTMAX, .in = {as_rows(e, x)}};
    return from_rows(e, op_apply(e, &c), x, true);
}

struct det_tensor *det_argmax(struct det_engine *e, struct det_tensor *x)
{
    struct op_call c = {.op = OP_ARGMAX, .in = {as_rows(e, x)}};
    return from_rows(e, op_apply(e, &c), x, false);
}

struct det_tensor *det_conv2d(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias, const struct det_conv2d_options *options)
{
    static const struct det_conv2d_options none;
    const struct det_conv2d_options *o = options ? options : &none;
    struct op_call c = {.op = OP_CONV2D, .in = {x, weight, bias}};
    if (o->dilation > 1 || o->groups > 1) {
        det_engine_fail(e, DET_EUNIMPL, "conv2d: dilation %d, groups %d: only 1 is supported",
                        o->dilation, o->groups);
        return NULL;
    }
    c.a.stride = o->stride ? o->stride : 1;
    c.a.padding = o->padding;
    c.a.relu = o->relu;
    return op_apply(e, &c);
}

static struct det_tensor *pool(struct det_engine *e, enum op_id op, struct det_tensor *x,
                               int kernel, int stride, int padding)
{
    struct op_call c = {.op = op, .in = {x}};
    c.a.kernel_h = c.a.kernel_w = kernel;
    c.a.stride = stride ? stride : kernel;
    c.a.padding = padding;
    return op_apply(e, &c);
}

struct det_tensor *det_max_pool2d(struct det_engine *e, struct det_tensor *x, int kernel,
                                  int stride, int padding)
{
    return pool(e, OP_MAX_POOL2D, x, kernel, stride, padding);
}

struct det_tensor *det_avg_pool2d(struct det_engine *e, struct det_tensor *x, int kernel,
                                  int stride, int padding)
{
    return pool(e, OP_AVG_POOL2D, x, kernel, stride, padding);
}

struct det_tensor *det_global_avg_pool2d(struct det_engine *e, struct det_tensor *x)
{
    struct op_call c = {.op = OP_AVG_POOL2D, .in = {x}, .a.stride = 1};
    if (x && x->ndim == 4) {
        c.a.kernel_h = (int)x->dims[2];
        c.a.kernel_w = (int)x->dims[3];
    }
    return op_apply(e, &c);
}

struct det_tensor *det__batch_norm(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *const params[4],
                                   const struct batch_norm_attrs *a)
{
    struct op_call c = {.op = OP_BATCH_NORM, .in = {x, params[0], params[1], params[2], params[3]}};
    c.a = (struct det_attrs){
        .eps = a->eps, .momentum = a->momentum, .relu = a->relu, .train = a->train};
    return op_apply(e, &c);
}
