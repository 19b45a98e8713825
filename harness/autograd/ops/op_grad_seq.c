/* Gradient rules of layer norm and recurrent layers. */
#include "op_grad.h"

#include "mem.h"

/* What rows is another shape of, where it has no gradient of its own yet; else rows. */
static struct det_tensor *find_unshaped(struct det_tensor *rows)
{
    struct det_node *n = rows->node;
    bool view = n && n->op == OP_RESHAPE && !n->done && !n->grad;
    return view && n->in[0]->node ? n->in[0] : rows;
}

/* Where the gradient is that x has already, if a kernel can add to it; else NULL. */
static struct det_tensor **grad_of(const struct det_tensor *x)
{
    struct det_node *n = x->node;
    bool alike = n && !n->done && n->grad && n->grad->layout == DET_LAYOUT_PLAIN &&
                 n->grad->dtype == x->dtype;
    return alike ? &n->grad : NULL;
}

/* Layer norm's gradients, that of the rows added to *grad: in place, where nobody else has it. */
static int layer_norm_onto(struct det_engine *e, struct det_node *n, struct det_call *c,
                           const struct grad_outputs *o, struct det_tensor **grad,
                           struct det_err *err)
{
    const struct det_tensor *rows = n->in[0];
    bool shared = (*grad)->refs > 1 || (*grad)->storage->refs > 1;
    TENSOR_OWN sum = shared ? NULL : det_tensor_ref(*grad);
    int rc = shared ? det__tensor_like(e, *grad, &sum, err) : 0;
    if (rc < 0)
        return rc;
    TENSOR_OWN have = det__tensor_view(*grad, rows->ndim, rows->dims);
    TENSOR_OWN dx = det__tensor_view(sum, rows->ndim, rows->dims);
    c->in[5] = have, c->out[0] = dx;
    if (shared) { /* before other outputs are added to it */
        det_tensor_unref(*grad);
        *grad = det_tensor_ref(sum);
    }
    return grad_run(e, n, c, o, err);
}

int grad_layer_norm(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                    struct det_err *err)
{
    static const struct grad_outputs o = {3, {0, 1, 2}, 0};
    struct det_tensor **grad = grad_of(find_unshaped(n->in[0]));
    struct det_call c = {.kernel = DET_KERNEL_LAYER_NORM_BWD,
                         .in = {dy, n->in[0], n->in[1], n->out[1], n->out[2]},
                         .a = n->a};
    return grad ? layer_norm_onto(e, n, &c, &o, grad, err) : grad_run(e, n, &c, &o, err);
}

int grad_lstm(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    static const struct grad_outputs o = {5, {0, 1, 4, 2, 3}, 1 | 2 | 8 | 16};
    struct det_call c = {.kernel = DET_KERNEL_LSTM_BWD,
                         .in = {dy, n->out[0], n->out[1], n->out[2], n->in[1], n->in[2], n->in[3]},
                         .a = n->a};
    return grad_run(e, n, &c, &o, err);
}

int grad_gru(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    static const struct grad_outputs o = {4, {0, 1, 3, 2}, 1 | 2 | 8};
    struct det_call c = {.kernel = DET_KERNEL_GRU_BWD,
                         .in = {dy, n->out[0], n->out[1], n->in[1], n->in[2]},
                         .a = n->a};
    return grad_run(e, n, &c, &o, err);
}
