/* Layers over a batch of no records, as PyTorch takes them: no backend's kernel is asked, since the
 * libraries below refuse such batches. */
#include "run_empty.h"

bool run_is_of_nothing(const struct det_call *c)
{
    switch (c->kernel) {
    case DET_KERNEL_CONV2D:
    case DET_KERNEL_CONV2D_BWD_DATA:
    case DET_KERNEL_CONV2D_BWD_WEIGHT:
    case DET_KERNEL_BATCH_NORM_TRAIN:
    case DET_KERNEL_BATCH_NORM_EVAL:
    case DET_KERNEL_BATCH_NORM_BWD:
    case DET_KERNEL_MAX_POOL2D:
    case DET_KERNEL_MAX_POOL2D_BWD:
    case DET_KERNEL_AVG_POOL2D:
    case DET_KERNEL_AVG_POOL2D_BWD:
    case DET_KERNEL_UPSAMPLE:
    case DET_KERNEL_UPSAMPLE_BWD:
    case DET_KERNEL_LSTM:
    case DET_KERNEL_LSTM_BWD:
    case DET_KERNEL_GRU:
    case DET_KERNEL_GRU_BWD:
        return c->in[0]->numel == 0;
    default:
        return false;
    }
}

static bool is_input(const struct det_call *c, const struct det_tensor *t)
{
    for (int i = 0; i < DET_CALL_IN_MAX; i++)
        if (c->in[i] == t)
            return true;
    return false;
}

int run_of_nothing(struct det_engine *e, const struct det_call *c, struct det_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < DET_CALL_OUT_MAX; i++)
        if (c->out[i] && c->out[i]->numel > 0 && !is_input(c, c->out[i]))
            rc = det__run(
                e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {c->out[i]}}, err);
    return rc;
}
