/* Moves of jobs: in the queue of their pool, and to other pools. Private to master/core. */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "model.h"

/* Whether what patches[i], which is for e, says of places and pools can be done after those before
 * it. */
DET_MUST int job_check(const struct core *c, const struct exp *e, const struct core_event *patches,
                       size_t i, struct det_err *err);
/* The pool of any experiment e after the first n patches. */
struct pool *job_pool(const struct core *c, const struct exp *e, const struct core_event *patches,
                      size_t n);
/* Does it; it was checked. */
void job_move(struct core *c, struct exp *e, const struct core_patch *p);

#endif
