/* Moves of jobs: in the queue of their pool, and to other pools. Private to master/core. */
#ifndef CORE_JOB_H
#define CORE_JOB_H

#include "model.h"

/* What p says of places and pools; checks, and only then changes anything. */
int job_move(struct core *c, struct exp *e, const struct core_patch *p, struct det_err *err);

#endif
