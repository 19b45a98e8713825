/* Gradient rules of layers, softmax, reductions and losses. */
#include "op_grad.h"

#include "mem.h"
#include "run_cast.h"

int grad_dest(struct det_engine *e, struct det_node *n, int i, struct det_tensor *reuse,
              struct det_tensor **ret, struct det_err *err)
{
    const struct det_tensor *t = n->in[i];
    if (reuse && t->node && reuse->refs == 1 && reuse->storage->refs == 1 &&
        reuse->dtype == t->dtype && reuse->layout == t->layout && det__same_shape(reuse, t)) {
        *ret = det_tensor_ref(reuse);
        return 0;
    }
    return det__grad_dest(e, n->in[i], ret, err);
}

/* Where output k is to be written: not to the same place as an earlier one for the same tensor. */
static int output_dest(struct det_engine *e, struct det_node *n, const struct grad_outputs *o,
                       int k, struct det_tensor **ret, struct det_err *err)
{
    struct det_tensor *t = n->in[o->to[k]];
    if (!op_wants_grad(t))
        return t && (o->must & 1u << k) ? det__tensor_like(e, t, ret, err) : 0;
    for (int i = 0; i < k; i++)
        if (n->in[o->to[i]] == t)
            return det__tensor_like(e, t, ret, err);
    if (op_table[n->op].order == OP_ROWS && det__has_rows(e, t))
        return det__tensor_rows(e, t->dtype, t->ndim, t->dims, det__row_step(t), ret, err);
    return det__grad_dest(e, t, ret, err);
}

int grad_run(struct det_engine *e, struct det_node *n, struct det_call *c,
             const struct grad_outputs *o, struct det_err *err)
{
    const struct det_call given = *c;
    int rc = 0, k = 0;
    for (; rc == 0 && k < o->count; k++)
        rc = given.out[k] ? 0 : output_dest(e, n, o, k, &c->out[k], err);
    if (rc == 0)
        rc = det__run(e, c, err);
    for (int i = 0; i < k; i++) {
        struct det_tensor *t = n->in[o->to[i]];
        if (given.out[i])
            continue;
        if (rc == 0 && op_wants_grad(t))
            rc = det__grad_add(e, t, c->out[i], err);
        else
            det_tensor_unref(c->out[i]);
    }
    return rc;
}

int grad_by_kernel(struct det_engine *e, struct det_node *n, int i, struct det_call *c,
                   struct det_tensor *reuse, struct det_err *err)
{
    TENSOR_OWN dx = NULL;
    if (!op_wants_grad(n->in[i]))
        return 0;
    int rc = grad_dest(e, n, i, reuse, &dx, err);
    if (rc < 0)
        return rc;
    c->out[0] = dx;
    rc = det__run(e, c, err);
    return rc < 0 ? rc : det__grad_add(e, n->in[i], det_take(dx), err);
}

int grad_sum(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_SUM_BWD, .in = {dy}, .a.scale = n->a.scale};
    return grad_by_kernel(e, n, 0, &c, NULL, err);
}

int grad_relu(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_RELU_BWD, .in = {dy, n->out[0]}};
    return grad_by_kernel(e, n, 0, &c, dy, err);
}

int grad_dropout(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                 struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_DROPOUT_BWD, .in = {dy, n->out[1]}, .a = n->a};
    return grad_by_kernel(e, n, 0, &c, dy, err);
}

/* The f32 tensor that t is a copy of in less, if it wants a gradient; else t. Its gradient can be
 * written as the f32 that products are summed in: no rounding, no copy. */
static struct det_tensor *find_uncast(struct det_tensor *t)
{
    struct det_node *n = t ? t->node : NULL;
    bool copy = n && n->op == OP_CAST && !n->done && n->in[0]->dtype == DET_F32 &&
                det_dtype_size(t->dtype) < det_dtype_size(DET_F32);
    return copy && op_wants_grad(n->in[0]) ? n->in[0] : t;
}

static int linear_data(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                       struct det_err *err)
{
    TENSOR_OWN dx = NULL;
    struct det_tensor *to = find_uncast(n->in[0]);
    struct det_call c = {.kernel = DET_KERNEL_LINEAR_BWD_DATA, .in = {dy, n->in[1]}, .out = {to}};
    if (!op_wants_grad(n->in[0]))
        return 0;
    if (!run_as_it_is(e, &c))
        to = n->in[0];
    int rc = det__grad_dest(e, to, &dx, err);
    c.out[0] = dx;
    if (rc == 0)
        rc = det__run(e, &c, err);
    return rc < 0 ? rc : det__grad_add(e, to, det_take(dx), err);
}

/* dw and db come from one kernel, of one dtype; where the weight wants none, its result is
 * dropped. */
static int linear_weight(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                         struct det_err *err)
{
    TENSOR_OWN dw = NULL;
    TENSOR_OWN db = NULL;
    bool weight = op_wants_grad(n->in[1]), bias = op_wants_grad(n->in[2]);
    struct det_tensor *w = find_uncast(n->in[1]), *b = bias ? find_uncast(n->in[2]) : NULL;
    struct det_call c = {
        .kernel = DET_KERNEL_LINEAR_BWD_WEIGHT, .in = {n->in[0], dy}, .out = {w, b}};
    if (!weight && !bias)
        return 0;
    if ((bias && b->dtype != w->dtype) || !run_as_it_is(e, &c))
        w = n->in[1], b = bias ? n->in[2] : NULL;
    int rc = weight ? det__grad_dest(e, w, &dw, err) : det__tensor_like(e, w, &dw, err);
    if (rc == 0 && bias)
        rc = det__grad_dest(e, b, &db, err);
    c.out[0] = dw, c.out[1] = db;
    if (rc == 0)
        rc = det__run(e, &c, err);
    if (rc == 0 && weight)
        rc = det__grad_add(e, w, det_take(dw), err);
    if (rc == 0 && bias)
        rc = det__grad_add(e, b, det_take(db), err);
    return rc;
}

int grad_linear(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    int rc = linear_data(e, n, dy, err);
    return rc < 0 ? rc : linear_weight(e, n, dy, err);
}

int grad_log_softmax(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                     struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_LOG_SOFTMAX_BWD, .in = {dy, n->out[0]}};
    return grad_by_kernel(e, n, 0, &c, NULL, err);
}

int grad_softmax(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                 struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_SOFTMAX_BWD, .in = {dy, n->out[0]}};
    return grad_by_kernel(e, n, 0, &c, NULL, err);
}

int grad_nll(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_NLL_BWD, .in = {dy, n->in[1]}};
    return grad_by_kernel(e, n, 0, &c, NULL, err);
}

int grad_mse(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call x = {.kernel = DET_KERNEL_MSE_BWD, .in = {dy, n->in[0], n->in[1]}};
    struct det_call t = {.kernel = DET_KERNEL_MSE_BWD, .in = {dy, n->in[1], n->in[0]}};
    int rc = grad_by_kernel(e, n, 0, &x, NULL, err);
    return rc < 0 ? rc : grad_by_kernel(e, n, 1, &t, NULL, err);
}
