/* Rows of what a step changed, and the JSON that only the core reads. Private to master/core. */
#ifndef CORE_SAVE_H
#define CORE_SAVE_H

#include "model.h"

/* Appends the rows of everything marked, in an order that foreign keys allow, then frees what
 * ended. */
void save_flush(struct core *c);

json_t *save_exp_core(const struct exp *e);
json_t *save_trial_core(const struct trial *t);
json_t *save_alloc_core(const struct alloc *a);
/* The inverse, into a cleared struct. */
void load_exp_core(struct exp *e, const json_t *j);
void load_trial_core(struct trial *t, const json_t *j);
int load_alloc_core(struct alloc *a, const json_t *j, struct det_err *err);

#endif
