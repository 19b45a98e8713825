/*
 * Answers: why something waits, what stands in its way, what would start it sooner, and when it is
 * expected to start.
 *
 * Everything is asked of the schedulers themselves: a pass over the pool as it is says what holds a
 * request back; a pass over the pool with one thing changed says whether that would help. A
 * suggestion is only made after such a pass really started the request, or asked others to make
 * room for it. The pool is as it was afterwards.
 *
 * The answer is JSON, the body of GET /trials/{id}/why (openapi.yaml, schema Why).
 */
#ifndef CORE_WHY_H
#define CORE_WHY_H

#include "core.h"

struct core_now {
    int64_t ms, us; /* monotonic; wall clock: as events have them */
};
/* New reference; NULL: not live. The core is not const: passes are tried on it, and taken back. */
json_t *core_why_exp(struct core *c, int64_t exp_id, struct core_now now);
json_t *core_why_trial(struct core *c, int64_t trial_id, struct core_now now);
/* The answer about what has ended in this state. New reference. */
json_t *core_why_ended(const char *state);
/* In it: why an experiment that was to be deleted is still there. */
void core_why_undeleted(json_t *j, int64_t exp_id, const char *why);

#endif
