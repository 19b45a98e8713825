/* Gradient rules of convolution, batch norm and pooling. */
#include "op_grad.h"

#include "mem.h"

/* dy where the ReLU let the value through; a reference to dy itself without ReLU. */
static int through_relu(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                        struct det_tensor **ret, struct det_err *err)
{
    TENSOR_OWN g = det_tensor_ref(dy);
    if (n->a.relu) {
        if (dy->refs > 2 || dy->storage->refs > 1) { /* our two and somebody else's */
            det_tensor_unref(g);
            g = NULL;
            int rc = det__tensor_like(e, dy, &g, err);
            if (rc < 0)
                return rc;
        }
        int rc = det__run(
            e, &(struct det_call){.kernel = DET_KERNEL_RELU_BWD, .in = {dy, n->out[0]}, .out = {g}},
            err);
        if (rc < 0)
            return rc;
    }
    *ret = det_take(g);
    return 0;
}

static int conv_data(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                     struct det_err *err)
{
    TENSOR_OWN dx = NULL;
    if (!op_wants_grad(n->in[0]))
        return 0;
    int rc = det__grad_dest(e, n->in[0], &dx, err);
    if (rc == 0)
        rc = det__run(
            e,
            &(struct det_call){
                .kernel = DET_KERNEL_CONV2D_BWD_DATA, .in = {dy, n->in[1]}, .out = {dx}, .a = n->a},
            err);
    return rc < 0 ? rc : det__grad_add(e, n->in[0], det_take(dx), err);
}

static int conv_weight(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                       struct det_err *err)
{
    TENSOR_OWN dw = NULL;
    TENSOR_OWN db = NULL;
    bool bias = op_wants_grad(n->in[2]), weight = op_wants_grad(n->in[1]);
    if (!bias && !weight)
        return 0;
    struct det_attrs a = n->a;
    a.same_dy = op_wants_grad(n->in[0]); /* conv_data() had it */
    int rc =
        weight ? det__grad_dest(e, n->in[1], &dw, err) : det__tensor_like(e, n->in[1], &dw, err);
    if (rc == 0 && bias)
        rc = det__grad_dest(e, n->in[2], &db, err);
    if (rc == 0)
        rc = det__run(e,
                      &(struct det_call){.kernel = DET_KERNEL_CONV2D_BWD_WEIGHT,
                                         .in = {n->in[0], dy},
                                         .out = {dw, db},
                                         .a = a},
                      err);
    if (rc == 0 && weight)
        rc = det__grad_add(e, n->in[1], det_take(dw), err);
    if (rc == 0 && bias)
        rc = det__grad_add(e, n->in[2], det_take(db), err);
    return rc;
}

int grad_conv2d(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    TENSOR_OWN g = NULL;
    int rc = through_relu(e, n, dy, &g, err);
    if (rc == 0)
        rc = conv_data(e, n, g, err);
    return rc < 0 ? rc : conv_weight(e, n, g, err);
}

/* Forward it is the data gradient of a convolution, so its own gradients are that convolution and
 * its weight gradient, with the parts of x and dy exchanged. */
int grad_conv_transpose2d(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                          struct det_err *err)
{
    struct det_call data = {.kernel = DET_KERNEL_CONV2D, .in = {dy, n->in[1]}, .a = n->a};
    struct det_call weight = {
        .kernel = DET_KERNEL_CONV2D_BWD_WEIGHT, .in = {dy, n->in[0]}, .a = n->a};
    int rc = grad_by_kernel(e, n, 0, &data, NULL, err);
    return rc < 0 ? rc : grad_by_kernel(e, n, 1, &weight, NULL, err);
}

static int grad_or_scratch(struct det_engine *e, struct det_tensor *t, struct det_tensor **ret,
                           struct det_err *err)
{
    return op_wants_grad(t) ? det__grad_dest(e, t, ret, err) : det__tensor_like(e, t, ret, err);
}

/* Who may write over dy: the residual's gradient, else dx. */
static int norm_dests(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                      struct det_tensor *to[4], struct det_err *err)
{
    int rc = 0;
    if (op_wants_grad(n->in[5]))
        rc = grad_dest(e, n, 5, dy, &to[3], err);
    if (rc == 0 && op_wants_grad(n->in[0]))
        rc = n->in[5] == n->in[0] ? det__tensor_like(e, n->in[0], &to[0], err)
                                  : grad_dest(e, n, 0, n->in[5] ? NULL : dy, &to[0], err);
    if (rc == 0)
        rc = grad_or_scratch(e, n->in[1], &to[1], err);
    return rc < 0 ? rc : grad_or_scratch(e, n->in[2], &to[2], err);
}

int grad_batch_norm(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                    struct det_err *err)
{
    static const int input[4] = {0, 1, 2, 5};
    struct det_call c = {
        .kernel = DET_KERNEL_BATCH_NORM_BWD,
        .in = {dy, n->in[0], n->out[0], n->in[1], n->out[1], n->out[2], n->in[5] ? NULL : n->in[2]},
        .a = n->a};
    int rc = norm_dests(e, n, dy, c.out, err);
    if (rc == 0)
        rc = det__run(e, &c, err);
    for (int i = 0; i < 4; i++)
        if (rc == 0 && op_wants_grad(n->in[input[i]]))
            rc = det__grad_add(e, n->in[input[i]], c.out[i], err);
        else
            det_tensor_unref(c.out[i]);
    return rc;
}

/* dx by a kernel that takes dy, what the forward kept, and the forward's attributes. */
static int by_kernel(struct det_engine *e, struct det_node *n, enum det_kernel kernel,
                     const struct det_tensor *dy, struct det_err *err)
{
    struct det_call c = {.kernel = kernel, .in = {dy, n->out[1]}, .a = n->a};
    return grad_by_kernel(e, n, 0, &c, NULL, err);
}

int grad_max_pool2d(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                    struct det_err *err)
{
    return by_kernel(e, n, DET_KERNEL_MAX_POOL2D_BWD, dy, err);
}

int grad_avg_pool2d(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                    struct det_err *err)
{
    return by_kernel(e, n, DET_KERNEL_AVG_POOL2D_BWD, dy, err);
}

int grad_pad(struct det_engine *e, struct det_node *n, struct det_tensor *dy, struct det_err *err)
{
    return by_kernel(e, n, DET_KERNEL_PAD_BWD, dy, err);
}

int grad_upsample(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                  struct det_err *err)
{
    return by_kernel(e, n, DET_KERNEL_UPSAMPLE_BWD, dy, err);
}
