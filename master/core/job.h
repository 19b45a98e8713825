/* Moves of jobs: in the queue of their pool, and to other pools. Private to master/core. */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "model.h"

/* Whether what p says of places and pools can be done. */
int job_check(const struct core *c, const struct exp *e, const struct core_patch *p,
              struct det_err *err);
/* Does it; it was checked. */
void job_move(struct core *c, struct exp *e, const struct core_patch *p);

#endif
