/*
 * Numbers that stay on the device until somebody wants to see them: reading one waits for all that
 * was asked of the device, so the metrics of training batches are read together, when they are
 * reported. Each is copied to a place of its own when it is put here; its tensor may change.
 */
#ifndef TRIAL_LATE_H
#define TRIAL_LATE_H

#include "det/tensor.h"
#include "vec.h"

struct trial_late {
    VEC(struct det_tensor *) places; /* float64 [LATE_PLACES] each, filled in order */
    size_t n;                        /* numbers that are kept */
    VEC(double) values;              /* of the last reading */
};

/* False: t's number is the host's anyway, or cannot be kept. */
bool trial_late_put(struct trial_late *late, struct det_engine *e, const struct det_tensor *t,
                    size_t *ret_ticket);
/* All numbers, by ticket, borrowed until the next call; tickets begin anew. */
DET_MUST int trial_late_read(struct trial_late *late, const double **ret, size_t *ret_n,
                             struct det_err *err);
/* One of them, which stays; NaN where it cannot be read, which is the engine's error then. */
double trial_late_look(struct trial_late *late, size_t ticket);
/* Before the engine goes. */
void trial_late_finish(struct trial_late *late);

#endif
