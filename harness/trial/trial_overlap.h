/*
 * Gradients of several GPUs averaged by NCCL while the backward pass goes on, in parts of
 * DET_OVERLAP_MIB (grads_overlap.h). Where the variable is unset or 0, the trial has not exactly
 * one optimizer, or NCCL does not do it, they are averaged after the pass, on all ranks alike.
 */
#ifndef TRIAL_OVERLAP_H
#define TRIAL_OVERLAP_H

#include "trial_context.h"

/* Once before training: reads the variable, which has to be the same on all ranks. Collective. */
DET_MUST int trial_overlap_agree(struct det_trial_context *ctx, struct comm *comm,
                                 struct det_err *err);
/* Before a backward pass; what goes wrong is the trial's error. Collective in an update batch. */
void trial_overlap_begin(struct det_trial_context *ctx);
/* Waits until the gradients of the one optimizer are the means. DET_EUNAVAIL: they are not averaged
 * here. Collective. */
DET_MUST int trial_overlap_finish(struct det_trial_context *ctx, struct comm *control,
                                  struct det_err *err);
/* After a batch: nothing may be under way, for the next one's backward pass would meet it. */
void trial_overlap_check(struct det_trial_context *ctx);

#endif
