/* A C trial as a client of the loop: fills the loop's table with the hooks of a det_trial_type. */
#ifndef TRIAL_LOOP_H
#define TRIAL_LOOP_H

#include "det/trial.h"
#include "loop.h"

/* Whether a type can be run: version, required hooks, exactly one way to evaluate. `name` is for
 * the message. Reads nothing but the version if that is another one. */
DET_MUST int trial_type_check(const struct det_trial_type *type, const char *name,
                              struct det_err *err);

struct trial_run;
/* `type` is borrowed and must have passed trial_type_check(). */
struct trial_run *trial_run_create(const struct det_trial_type *type);
struct trial_extra;
struct trial_run *trial_run_create_with(const struct det_trial_type *type,
                                        const struct trial_extra *extra);
/* The trial outlives a loop_run(): the next one goes on with its models, and builds callbacks and
 * loaders anew. */
void trial_run_keep(struct trial_run *r);
void trial_run_destroy(struct trial_run *r); /* NULL ok; after loop_run() */
/* Borrowed; NULL before the first loop_run(), and after it unless kept. */
struct det_trial_context *trial_run_context(const struct trial_run *r);
/* What loop_run() takes; valid while r is. */
struct det_loop_trial trial_run_client(struct trial_run *r);

#endif
