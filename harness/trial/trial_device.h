/* Gradients of several GPUs averaged where they are, by NCCL. */
#ifndef TRIAL_DEVICE_H
#define TRIAL_DEVICE_H

#include "trial_context.h"

/* ctx->device_comm, for a CUDA device; once a run. Collective. DET_EUNAVAIL, on all ranks alike:
 * gradients go through host memory. */
DET_MUST int trial_device_open(struct det_trial_context *ctx, struct comm *control,
                               struct det_err *err);
/* The mean over ranks of a flat f32 tensor on a device, in place. Collective. DET_EUNAVAIL, on all
 * ranks alike: there is no such module or the tensor is not on a CUDA device: go through host
 * memory. */
DET_MUST int trial_device_mean(struct det_trial_context *ctx, struct comm *control,
                               struct det_tensor *g, struct det_err *err);
void trial_device_finish(struct det_trial_context *ctx);

#endif
