/* Gradient rules of views: the same window on the gradient. */
#include "op_grad.h"

#include "mem.h"

/* Rows apart, of which the input had as many, as long. */
static int reshape_rows(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                        struct det_err *err)
{
    const struct det_tensor *x = n->in[0];
    int64_t strides[DET_DIMS_MAX];
    det__row_strides(x->ndim, x->dims, det__row_step(dy), strides);
    TENSOR_OWN dx = det__tensor_window(dy, x->ndim, x->dims, strides, 0);
    return grad_give(e, n->in[0], dx, err);
}

int grad_reshape(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                 struct det_err *err)
{
    TENSOR_OWN plain = det_tensor_ref(dy);
    if (!op_wants_grad(n->in[0]))
        return 0;
    if (det__has_rows(e, n->in[0]) && det__has_rows(e, dy))
        return reshape_rows(e, n, dy, err);
    if (dy->layout != DET_LAYOUT_PLAIN) {
        det_tensor_unref(plain);
        plain = NULL;
        int rc = det__tensor_new(e, dy->dtype, DET_LAYOUT_PLAIN, dy->ndim, dy->dims, &plain, err);
        if (rc == 0)
            rc = det__copy(e, dy, plain, err);
        if (rc < 0)
            return rc;
    }
    TENSOR_OWN dx = det__tensor_view(plain, n->in[0]->ndim, n->in[0]->dims);
    return grad_give(e, n->in[0], dx, err);
}

int grad_permute(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                 struct det_err *err)
{
    int64_t strides[DET_DIMS_MAX];
    for (int d = 0; d < dy->ndim; d++)
        strides[n->a.order[d]] = dy->strides[d];
    TENSOR_OWN dx = det__tensor_window(dy, dy->ndim, n->in[0]->dims, strides, 0);
    return grad_give(e, n->in[0], dx, err);
}

/* The part of g that the slice took. */
static struct det_tensor *part_of(const struct det_node *n, struct det_tensor *g)
{
    int64_t strides[DET_DIMS_MAX];
    for (int d = 0; d < g->ndim; d++)
        strides[d] = g->strides[d] * (d == n->a.dim ? n->a.every : 1);
    return det__tensor_window(g, g->ndim, n->out[0]->dims, strides,
                              n->a.start * g->strides[n->a.dim]);
}

/* Where the input has a gradient already, only the part is added: slices of one tensor, such as the
 * steps of a sequence, cost what they hold. */
int grad_slice(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_tensor *x = n->in[0];
    struct det_tensor *have = x->node ? x->node->grad : x->grad_set ? x->grad : NULL;
    TENSOR_OWN dx = NULL;
    if (!op_wants_grad(x))
        return 0;
    if (have && have->refs == 1 && have->storage->refs == 1) {
        TENSOR_OWN part = part_of(n, have);
        struct det_call add = {.kernel = DET_KERNEL_ADD, .in = {part, dy}, .out = {part}};
        return det__run(e, &add, err);
    }
    int rc = det__grad_dest(e, x, &dx, err);
    if (rc == 0)
        rc = det__run(e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {dx}}, err);
    if (rc < 0)
        return rc;
    TENSOR_OWN part = part_of(n, dx);
    rc = det__copy(e, dy, part, err);
    return rc < 0 ? rc : det__grad_add(e, x, det_take(dx), err);
}

int grad_expand(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    return grad_give(e, n->in[0], dy, err);
}
