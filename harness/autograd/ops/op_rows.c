/* Shape and gradient rules of reductions over a dimension, joining, ordering and marking; of
 * [A, N, B], to which the public functions bring all shapes. */
#include <inttypes.h>

#include "op_grad.h"
#include "op_shape.h"

int shape_reduce(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    bool empty = x->dims[1] == 0 && x->dims[0] * x->dims[2] > 0;
    c->spec[0] = (struct op_out){.dtype = x->dtype, .ndim = 2, .dims = {x->dims[0], x->dims[2]}};
    c->outs = 1;
    if (empty && (c->a.mode == DET_REDUCE_DIM_MAX || c->a.mode == DET_REDUCE_DIM_MIN))
        return det_fail(err, DET_EINVAL, "the dimension is empty");
    return op_numbers(c, err);
}

int grad_reduce(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {
        .kernel = DET_KERNEL_REDUCE_BWD, .in = {dy, n->in[0], n->out[1]}, .a = n->a};
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}

int grad_cumsum(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {.kernel = DET_KERNEL_CUMSUM, .in = {dy}, .a = n->a};
    c.a.reverse = !c.a.reverse;
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}

int shape_cat(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    int64_t rows = 0;
    for (int i = 0; i < DET_CALL_IN_MAX && c->in[i]; i++) {
        const struct det_tensor *t = c->in[i];
        if (t->dtype != x->dtype || t->ndim != 3 || t->dims[0] != x->dims[0] ||
            t->dims[2] != x->dims[2])
            return det_fail(
                err, DET_EINVAL,
                "input %d: all must have one dtype, and equal dimensions but the joined "
                "one",
                i + 1);
        rows += t->dims[1];
    }
    c->spec[0] = op_like(x);
    c->spec[0].dims[1] = rows;
    c->outs = 1;
    return 0;
}

int grad_cat(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_CUT, .in = {dy}};
    int rc = 0;
    for (int i = 0; rc == 0 && i < DET_CALL_IN_MAX && n->in[i]; i++) {
        const struct grad_outputs o = {1, {i}, 0};
        if (op_wants_grad(n->in[i]))
            rc = grad_run(e, n, &c, &o, err);
        c.a.skip += n->in[i]->dims[1];
        c.out[0] = NULL;
    }
    return rc;
}

int grad_sort(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {.kernel = DET_KERNEL_SCATTER_ADD, .in = {NULL, n->out[1], dy}};
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}

int grad_triangle(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                  struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {.kernel = DET_KERNEL_TRIANGLE, .in = {dy}, .a = n->a};
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}

int shape_one_hot(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    c->spec[0] =
        (struct op_out){.dtype = DET_I64, .ndim = 2, .dims = {(int64_t)x->numel, c->a.skip}};
    c->outs = 1;
    if (x->dtype != DET_I64 || c->a.skip < 1)
        return det_fail(err, DET_EINVAL, "the input must be int64, with at least one class");
    return 0;
}

int shape_point_loss(struct op_call *c, struct det_err *err)
{
    for (int i = 1; i < 3; i++)
        if (c->in[i] && !det__same_shape(c->in[0], c->in[i]))
            return det_fail(err, DET_EINVAL,
                            "the input and the %s must have equal shapes (use det_expand())",
                            i == 1 ? "target" : "weight");
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    return op_all_float(c, err);
}

/* A loss of the difference alone is that of the exchanged arguments for the target. */
int grad_point_loss(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                    struct det_err *err)
{
    static const struct grad_outputs first = {1, {0}, 0}, second = {1, {1}, 0};
    struct det_call x = {
        .kernel = DET_KERNEL_POINT_LOSS_BWD, .in = {dy, n->in[0], n->in[1], n->in[2]}, .a = n->a};
    struct det_call t = {
        .kernel = DET_KERNEL_POINT_LOSS_BWD, .in = {dy, n->in[1], n->in[0]}, .a = n->a};
    int rc = op_wants_grad(n->in[0]) ? grad_run(e, n, &x, &first, err) : 0;
    if (rc < 0 || !op_wants_grad(n->in[1]))
        return rc;
    if (n->a.mode > DET_POINT_HUBER)
        return det_fail(err, DET_EUNIMPL, "no gradient flows to this target: det_detach() it");
    return grad_run(e, n, &t, &second, err);
}
