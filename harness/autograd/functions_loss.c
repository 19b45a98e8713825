/* Losses and how often a prediction is right. */
#include "op.h"

struct det_tensor *det_nll_loss(struct det_engine *e, struct det_tensor *x,
                                struct det_tensor *target)
{
    return op_apply(e, &(struct op_call){.op = OP_NLL_LOSS, .in = {x, target}});
}

struct det_tensor *det_cross_entropy(struct det_engine *e, struct det_tensor *x,
                                     struct det_tensor *target)
{
    return det_nll_loss(e, det_log_softmax(e, x), target);
}

struct det_tensor *det_mse_loss(struct det_engine *e, struct det_tensor *x,
                                struct det_tensor *target)
{
    return op_apply(e, &(struct op_call){.op = OP_MSE_LOSS, .in = {x, target}});
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
