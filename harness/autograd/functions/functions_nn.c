/* The public functions behind layers. */
#include <string.h>

#include "dtype.h"
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

/* No rows: a product of matrices and a sum take that, and give the weight a gradient of zeros. */
static struct det_tensor *linear_of_nothing(struct det_engine *e, struct det_tensor *x,
                                            struct det_tensor *weight, struct det_tensor *bias)
{
    struct det_tensor *y = det_matmul(e, x, det_transpose(e, weight, 0, 1));
    return bias ? det_add(e, y, bias) : y;
}

struct det_tensor *det_linear(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias)
{
    if (x && weight && x->numel == 0 && x->ndim > 1 && weight->ndim == 2 &&
        x->dims[x->ndim - 1] == weight->dims[1])
        return linear_of_nothing(e, x, weight, bias);
    struct op_call c = {.op = OP_LINEAR, .in = {as_rows(e, x), weight, bias}};
    return from_rows(e, op_apply(e, &c), x, true);
}

static bool is_number(const struct det_tensor *x)
{
    return x && x->ndim == 0;
}

/* Nothing, as the result of a function of each row, which is nothing too. */
static bool is_nothing(const struct det_tensor *x)
{
    return x && x->numel == 0 && det__is_float(x->dtype);
}

struct det_tensor *det_log_softmax(struct det_engine *e, struct det_tensor *x)
{
    if (is_nothing(x))
        return det_scale(e, x, 1);
    if (is_number(x))
        return det_reshape(e, det_log_softmax(e, det_reshape(e, x, 1, (int64_t[]){1})), 0, NULL);
    struct op_call c = {.op = OP_LOG_SOFTMAX, .in = {as_rows(e, x)}};
    return from_rows(e, op_apply(e, &c), x, true);
}

struct det_tensor *det_softmax(struct det_engine *e, struct det_tensor *x)
{
    if (is_nothing(x))
        return det_scale(e, x, 1);
    if (is_number(x))
        return det_reshape(e, det_softmax(e, det_reshape(e, x, 1, (int64_t[]){1})), 0, NULL);
    struct op_call c = {.op = OP_SOFTMAX, .in = {as_rows(e, x)}};
    return from_rows(e, op_apply(e, &c), x, true);
}

struct det_tensor *det_argmax(struct det_engine *e, struct det_tensor *x)
{
    if (x && !det__is_float(x->dtype))
        return det_argmax_over(e, x, -1, false);
    struct op_call c = {.op = OP_ARGMAX, .in = {as_rows(e, x)}};
    return from_rows(e, op_apply(e, &c), x, false);
}

static struct det_tensor *batch_norm(struct det_engine *e, struct op_call *c,
                                     const struct batch_norm_attrs *a)
{
    c->op = OP_BATCH_NORM;
    c->a = (struct det_attrs){
        .eps = a->eps, .momentum = a->momentum, .relu = a->relu, .train = a->train};
    return op_apply(e, c);
}

struct det_tensor *det__batch_norm(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *const params[4],
                                   const struct batch_norm_attrs *a)
{
    struct op_call c = {.in = {x, params[0], params[1], params[2], params[3]}};
    return batch_norm(e, &c, a);
}

struct det_tensor *det__batch_norm_add(struct det_engine *e, struct det_tensor *x,
                                       struct det_tensor *const params[4],
                                       struct det_tensor *residual,
                                       const struct batch_norm_attrs *a)
{
    struct op_call c = {.in = {x, params[0], params[1], params[2], params[3], residual}};
    return residual ? batch_norm(e, &c, a) : NULL;
}
