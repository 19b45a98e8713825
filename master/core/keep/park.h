/* What the database has refused a row of is parked: core_refused(). Private to master/core. */
#ifndef CORE_PARK_H
#define CORE_PARK_H

#include "model.h"

/* Whose row this is: a trial's (ret_trial > 0), else an experiment's; false: of neither. */
bool park_owner(const struct core_effect *f, int64_t *ret_exp, int64_t *ret_trial);
/* Without row i, which has no owner. */
void park_leave_out(struct core_effects *fx, size_t i, const char *words);
/* c->out are the effects of the batch: those of the owner leave it, what ends it is appended. */
void park(struct core *c, int64_t exp_id, int64_t trial_id, const char *words);

#endif
