/*
 * Trials: one set of hyperparameters trained to the lengths its search asks for, over as many runs
 * (allocations) as it takes.
 *
 *   ACTIVE <-> PAUSED;  both -> STOPPING_*;  STOPPING_COMPLETED -> _CANCELED -> _KILLED -> _ERROR
 *   and from each to its terminal state: COMPLETED, CANCELED, ERROR
 *
 * A trial wants to run when it is ACTIVE, has no allocation and its operation is not complete. An
 * operation that was completed by a run which then did not end in order (its last checkpoint may be
 * missing) is offered once more to the next run; the searcher hears of it once. Private to
 * master/core.
 */
#ifndef CORE_TRIAL_H
#define CORE_TRIAL_H

#include "model.h"

struct trial *trial_create(struct core *c, struct exp *e, const struct search_op *op);
void trial_destroy(struct trial *t);
struct trial *trial_find(const struct core *c, int64_t id);
/* Into the indices; also when rebuilding. */
void trial_enlist(struct core *c, struct trial *t);
void trial_mark(struct core *c, struct trial *t);

/* Out of its terminal state, with its hyperparameters: a fresh start but for what it has learnt. */
void trial_reopen(struct core *c, struct trial *t);

/* The searcher's operations. */
void trial_validate_after(struct core *c, struct trial *t, int64_t length);
/* reason: its client's, may be NULL; copied. */
void trial_close(struct core *c, struct trial *t, const char *reason);

/* Follows its experiment, or a user, where the table of edges allows it and it has not ended; else
 * nothing. */
void trial_set(struct core *c, struct trial *t, enum trial_state to, const char *reason);
/* Takes the next step if one is due: asks for an allocation or ends. */
void trial_reconsider(struct core *c, struct trial *t);

/* Reports. */
DET_MUST int trial_on_op_completed(struct core *c, struct trial *t, int64_t length,
                                   const json_t *metric, struct det_err *err);
void trial_on_early_exit(struct core *c, struct trial *t, enum core_early_exit reason,
                         const char *text);
void trial_on_checkpoint(struct core *c, struct trial *t, const char *uuid, int64_t steps);
void trial_on_log_policy(struct core *c, struct trial *t, const struct core_policy *p,
                         const char *agent_id);
void trial_on_alloc_end(struct core *c, struct trial *t, const struct alloc *a);
bool trial_op_done(const struct trial *t); /* nothing to do now */

/* It got somewhere: what it lost before counts no more. */
void trial_forget_losses(struct trial *t);

/* Ends it, with the reason in its log, when they keep it away from too many for it ever to run
 * again; else false. */
bool trial_give_up(struct core *c, struct trial *t);
/* The wait after a start is over: what waited for agents meanwhile is judged. */
void trial_on_settled(struct core *c);

#endif
