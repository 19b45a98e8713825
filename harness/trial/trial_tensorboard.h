/* TensorBoard as the trial has it (trial_tensorboard.c). */
#ifndef TRIAL_TENSORBOARD_H
#define TRIAL_TENSORBOARD_H

#include "det/tensorboard.h"
#include "loop_metrics.h"
#include <stdbool.h>

struct det_trial_context;

struct trial_tensorboard {
    struct det_tensorboard *writer; /* rank 0; NULL: not asked for yet */
    char *path;                     /* NULL: not asked for yet, or a local run without one */
    char *own;                      /* a local run's that was given none; NULL: not needed yet */
    bool no_logging;                /* the loop's metrics are not wanted */
    bool failed;                    /* and was said */
};

/* The loop's metrics; `rows` NULL for a validation. */
void trial_tensorboard_write(struct det_trial_context *ctx, int64_t steps,
                             const struct loop_metrics *metrics, const struct loop_metrics *rows,
                             size_t n);
/* Where this rank's files go, in any run. Borrowed. */
const char *trial_tensorboard_place(struct det_trial_context *ctx);
/* Flushes; the directory to keep, or NULL. Borrowed. */
const char *trial_tensorboard_dir(struct det_trial_context *ctx);
void trial_tensorboard_finish(struct det_trial_context *ctx);

#endif
