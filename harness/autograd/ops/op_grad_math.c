/* Gradient rules of indexing, matrix products and cross-entropy. */
#include "op_grad.h"

int grad_index_select(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                      struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_tensor *x = n->in[0];
    struct det_call c = {.kernel = DET_KERNEL_INDEX_ADD, .in = {NULL, n->in[1], dy}, .a = n->a};
    if (!op_wants_grad(x))
        return 0;
    if (x->node || !x->grad_set)
        return grad_run(e, n, &c, &o, err);
    /* A leaf that has a gradient already (a table that is also an output layer): add the few rows
     * in place instead of making a second table of zeros. */
    c.in[0] = c.out[0] = x->grad;
    return det__run(e, &c, err);
}

int grad_gather(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {.kernel = DET_KERNEL_SCATTER_ADD, .in = {NULL, n->in[1], dy}};
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}

int grad_scatter_add(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                     struct det_err *err)
{
    static const struct grad_outputs o = {1, {2}, 0};
    struct det_call c = {.kernel = DET_KERNEL_GATHER, .in = {dy, n->in[1]}};
    int rc = op_wants_grad(n->in[2]) ? grad_run(e, n, &c, &o, err) : 0;
    if (rc < 0 || !op_wants_grad(n->in[0]))
        return rc;
    return det__grad_add(e, n->in[0], det_tensor_ref(dy), err);
}

/* y = a b: da = dy b^T, db = a^T dy; of a transposed operand the transpose. */
int grad_matmul(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    static const struct grad_outputs first = {1, {0}, 0}, second = {1, {1}, 0};
    struct det_tensor *a = n->in[0], *b = n->in[1];
    bool ta = n->a.trans_a, tb = n->a.trans_b;
    struct det_call da = {.kernel = DET_KERNEL_MATMUL,
                          .in = {ta ? b : dy, ta ? dy : b},
                          .a = {.trans_a = ta && tb, .trans_b = ta || !tb}};
    struct det_call db = {.kernel = DET_KERNEL_MATMUL,
                          .in = {tb ? dy : a, tb ? a : dy},
                          .a = {.trans_a = tb || !ta, .trans_b = tb && ta}};
    int rc = op_wants_grad(a) ? grad_run(e, n, &da, &first, err) : 0;
    if (rc < 0 || !op_wants_grad(b))
        return rc;
    return grad_run(e, n, &db, &second, err);
}

int grad_cross_entropy(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                       struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {.kernel = DET_KERNEL_CROSS_ENTROPY_BWD,
                         .in = {dy, n->in[0], n->in[1], n->in[2], n->out[1], n->out[2]},
                         .a = n->a};
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}
