/* Rows of what a step changed, and the JSON that only the core reads. Private to master/core. */
#ifndef CORE_SAVE_H
#define CORE_SAVE_H

#include "model.h"

/* Appends the rows of everything marked, in an order that foreign keys allow, then frees what
 * ended. */
void save_flush(struct core *c);

/* The only row of what is parked; trial 0: an experiment. */
void save_parked(struct core *c, int64_t exp_id, int64_t trial_id, bool has_ended);

/* JSON objects, appended. */
void save_exp_core(struct buf *out, struct exp *e, int64_t now_ms);
void save_trial_core(struct buf *out, const struct trial *t);
void save_alloc_core(struct buf *out, const struct alloc *a);
/* The inverse, into a cleared struct. */
void load_exp_core(struct exp *e, const json_t *j);
void load_trial_core(struct trial *t, const json_t *j);
DET_MUST int load_alloc_core(struct alloc *a, const json_t *j, struct det_err *err);

#endif
