/* Losses and how often a prediction is right. */
#include "op.h"

static const struct det_cross_entropy_options defaults;

/* A device without the kernel that does it all (cuda) still has the two for the usual case. */
static bool in_two_steps(const struct det_engine *e, const struct det_cross_entropy_options *o)
{
    return !e->backend->kernels[DET_KERNEL_CROSS_ENTROPY] && !o->weight && !o->ignore &&
           o->reduction == DET_REDUCE_MEAN && o->label_smoothing == 0;
}

/* (N, C, ...) with the classes last, as [rows, C]. */
static struct det_tensor *as_rows(struct det_engine *e, struct det_tensor *x)
{
    int order[DET_DIMS_MAX], n = 0;
    for (int i = 0; i < x->ndim; i++)
        if (i != 1)
            order[n++] = i;
    order[n] = 1;
    return det_reshape(e, det_permute(e, x, order), 2, (int64_t[]){-1, x->dims[1]});
}

/* A batch of no rows has losses of no rows: PyTorch's sum of them is 0, their mean NaN. */
static bool is_nothing(const struct det_tensor *x, const struct det_tensor *target)
{
    if (!x || !target || x->numel > 0 || target->numel > 0 || x->ndim != target->ndim + 1 ||
        x->ndim < 2 || target->dtype != DET_I64)
        return false;
    for (int i = 0; i < target->ndim; i++)
        if (target->dims[i] != x->dims[i + (i > 0)])
            return false;
    return true;
}

static struct det_tensor *loss_of_nothing(struct det_engine *e, struct det_tensor *x,
                                          enum det_reduction reduction)
{
    struct det_tensor *y = det_sum_over(e, x, det_over(false, 1));
    return reduction == DET_REDUCE_NONE  ? y
           : reduction == DET_REDUCE_SUM ? det_sum(e, y)
                                         : det_mean(e, y);
}

static struct det_tensor *cross_entropy(struct det_engine *e, struct det_tensor *x,
                                        struct det_tensor *target, bool log_probs,
                                        const struct det_cross_entropy_options *o)
{
    struct det_tensor *rows = x, *classes = target;
    if (x && target && x->ndim > 2 && target->ndim == x->ndim - 1) {
        rows = as_rows(e, x);
        classes = det_reshape(e, target, 1, (int64_t[]){-1});
    }
    struct op_call c = {.op = OP_CROSS_ENTROPY, .in = {rows, classes, o->weight}};
    c.a = (struct det_attrs){.log_probs = log_probs,
                             .mode = o->reduction,
                             .skip = o->ignore ? o->ignore_index : -100,
                             .smoothing = o->label_smoothing};
    struct det_tensor *y = op_apply(e, &c);
    bool each = y && rows != x && o->reduction == DET_REDUCE_NONE;
    return each ? det_reshape(e, y, target->ndim, target->dims) : y;
}

struct det_tensor *det_nll_loss_opt(struct det_engine *e, struct det_tensor *x,
                                    struct det_tensor *target,
                                    const struct det_cross_entropy_options *options)
{
    const struct det_cross_entropy_options *o = options ? options : &defaults;
    if (o->label_smoothing != 0) {
        det_engine_fail(e, DET_EINVAL,
                        "nll_loss: label_smoothing is of logits: use det_cross_entropy()");
        return NULL;
    }
    if (is_nothing(x, target))
        return loss_of_nothing(e, x, o->reduction);
    if (in_two_steps(e, o))
        return op_apply(e, &(struct op_call){.op = OP_NLL_LOSS, .in = {x, target}});
    return cross_entropy(e, x, target, true, o);
}

struct det_tensor *det_cross_entropy_opt(struct det_engine *e, struct det_tensor *x,
                                         struct det_tensor *target,
                                         const struct det_cross_entropy_options *options)
{
    const struct det_cross_entropy_options *o = options ? options : &defaults;
    if (is_nothing(x, target))
        return loss_of_nothing(e, x, o->reduction);
    if (in_two_steps(e, o))
        return det_nll_loss(e, det_log_softmax(e, x), target);
    return cross_entropy(e, x, target, false, o);
}

struct det_tensor *det_eq_count(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_apply(e, &(struct op_call){.op = OP_EQ_COUNT, .in = {a, b}});
}

struct det_tensor *det_accuracy(struct det_engine *e, struct det_tensor *x,
                                struct det_tensor *target)
{
    double share = target && target->numel > 0 ? 1.0 / (double)target->numel : 0;
    det_no_grad_begin(e);
    struct det_tensor *y = det_scale(e, det_eq_count(e, det_argmax(e, x), target), share);
    det_no_grad_end(e);
    return y;
}
