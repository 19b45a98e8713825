/* Gradient rules of element-wise operations, with sums over what was repeated. */
#include "op_grad.h"

#include "mem.h"

/* Where operands of different dtypes were repeated: sums are of one dtype. */
static int sum_then_give(struct det_engine *e, struct det_tensor *t, struct det_tensor *g,
                         struct det_err *err)
{
    TENSOR_OWN sum = NULL;
    int rc = det__tensor_new(e, g->dtype, DET_LAYOUT_PLAIN, t->ndim, t->dims, &sum, err);
    if (rc == 0)
        rc = det__run(e, &(struct det_call){.kernel = DET_KERNEL_SUM_TO, .in = {g}, .out = {sum}},
                      err);
    return rc < 0 ? rc : grad_give(e, t, sum, err);
}

int grad_give(struct det_engine *e, struct det_tensor *t, struct det_tensor *g, struct det_err *err)
{
    TENSOR_OWN dx = NULL;
    if (!op_wants_grad(t))
        return 0;
    bool same = det__same_shape(t, g);
    if (!same && g->dtype != t->dtype)
        return sum_then_give(e, t, g, err);
    enum det_layout layout = t->layout == DET_LAYOUT_STRIDED ? DET_LAYOUT_PLAIN : t->layout;
    bool alike = g->layout == layout || (det__has_rows(e, t) && det__has_rows(e, g));
    if (same && alike && g->dtype == t->dtype)
        return det__grad_add(e, t, det_tensor_ref(g), err);
    int rc = det__grad_dest(e, t, &dx, err);
    if (rc == 0)
        rc = det__run(e,
                      &(struct det_call){.kernel = same ? DET_KERNEL_COPY : DET_KERNEL_SUM_TO,
                                         .in = {g},
                                         .out = {dx}},
                      err);
    return rc < 0 ? rc : det__grad_add(e, t, det_take(dx), err);
}

/* The gradient of input i: what c makes of dy, of dy's shape, then summed to the input's. */
static int by_element(struct det_engine *e, struct det_node *n, int i, struct det_call *c,
                      struct det_err *err)
{
    TENSOR_OWN dx = NULL;
    bool same = det__same_shape(n->in[i], n->out[0]);
    if (!op_wants_grad(n->in[i]))
        return 0;
    int rc = same ? grad_dest(e, n, i, NULL, &dx, err) : det__tensor_like(e, n->out[0], &dx, err);
    c->out[0] = dx;
    if (rc == 0)
        rc = det__run_wide(e, c, err);
    if (rc < 0)
        return rc;
    return same ? det__grad_add(e, n->in[i], det_take(dx), err) : grad_give(e, n->in[i], dx, err);
}

int grad_add(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    int rc = grad_give(e, n->in[0], dy, err);
    return rc < 0 ? rc : grad_give(e, n->in[1], dy, err);
}

int grad_sub(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call minus = {.kernel = DET_KERNEL_AFFINE, .in = {dy}, .a.scale = -1};
    int rc = grad_give(e, n->in[0], dy, err);
    return rc < 0 ? rc : by_element(e, n, 1, &minus, err);
}

int grad_mul(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call first = {.kernel = DET_KERNEL_MUL, .in = {dy, n->in[1]}};
    struct det_call second = {.kernel = DET_KERNEL_MUL, .in = {dy, n->in[0]}};
    int rc = by_element(e, n, 0, &first, err);
    return rc < 0 ? rc : by_element(e, n, 1, &second, err);
}

int grad_affine(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_AFFINE, .in = {dy}, .a.scale = n->a.scale};
    return grad_by_kernel(e, n, 0, &c, dy, err);
}

int grad_unary(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    struct det_call c = {
        .kernel = DET_KERNEL_UNARY_BWD, .in = {dy, n->in[0], n->out[0]}, .a = n->a};
    return grad_by_kernel(e, n, 0, &c, dy, err);
}

int grad_binary(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    struct det_call c = {
        .kernel = DET_KERNEL_BINARY_BWD, .in = {dy, n->in[0], n->in[1]}, .a = n->a};
    int rc = by_element(e, n, 0, &c, err);
    c.a.side = true;
    return rc < 0 ? rc : by_element(e, n, 1, &c, err);
}

int grad_where(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    TENSOR_OWN zero = NULL;
    int rc = det__tensor_new(e, dy->dtype, DET_LAYOUT_PLAIN, 0, NULL, &zero, err);
    if (rc == 0)
        rc = det__run(e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {zero}}, err);
    struct det_call yes = {.kernel = DET_KERNEL_WHERE, .in = {n->in[0], dy, zero}};
    struct det_call no = {.kernel = DET_KERNEL_WHERE, .in = {n->in[0], zero, dy}};
    if (rc == 0)
        rc = by_element(e, n, 1, &yes, err);
    return rc < 0 ? rc : by_element(e, n, 2, &no, err);
}

int grad_copy(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    return grad_give(e, n->in[0], dy, err);
}
