/* Layers over a batch of no records, as PyTorch takes them: no backend's kernel is asked, since the
 * libraries below refuse such batches. */
#include "run_empty.h"

/* Whose input 0 is a batch. */
static const bool of_batch[DET_KERNEL_COUNT] = {
    [DET_KERNEL_CONV2D] = true,
    [DET_KERNEL_CONV2D_BWD_DATA] = true,
    [DET_KERNEL_CONV2D_BWD_WEIGHT] = true,
    [DET_KERNEL_BATCH_NORM_TRAIN] = true,
    [DET_KERNEL_BATCH_NORM_EVAL] = true,
    [DET_KERNEL_BATCH_NORM_BWD] = true,
    [DET_KERNEL_MAX_POOL2D] = true,
    [DET_KERNEL_MAX_POOL2D_BWD] = true,
    [DET_KERNEL_AVG_POOL2D] = true,
    [DET_KERNEL_AVG_POOL2D_BWD] = true,
    [DET_KERNEL_UPSAMPLE] = true,
    [DET_KERNEL_UPSAMPLE_BWD] = true,
    [DET_KERNEL_LSTM] = true,
    [DET_KERNEL_LSTM_BWD] = true,
    [DET_KERNEL_GRU] = true,
    [DET_KERNEL_GRU_BWD] = true,
};

bool run_is_of_nothing(const struct det_call *c)
{
    return of_batch[c->kernel] && c->in[0]->numel == 0;
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
            rc =
                det__run(e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {c->out[i]}}, err);
    return rc;
}
