/* Dealing slots to groups: max-min fairness by weight, in whole requests (rest-api.md 5.4).
 * Private to master/core. */
#ifndef CORE_SCHED_SHARE_H
#define CORE_SCHED_SHARE_H

#include "model.h"

struct share_groups {
    VEC(struct group *) list;
};
/* Deals `capacity` to the groups, whose demand is set: fills their offers. Sorts the list by
 * demand.
 *
 * Progressive filling: in each round every group that wants more gets its weight's part of what the
 * round began with, at least one slot. A group that cannot use its whole offer (its next request is
 * larger than what is left of it) is capped to what it can use, the youngest first, and the rest is
 * dealt again. Where many are wasteful a sixteenth of them is capped at a time. What the caps have
 * left goes to whoever can use it, in whole requests: so no slot idles that a queued request could
 * use, and nobody holds an offer that starts nothing. */
void share_deal(struct share_groups *g, int64_t capacity);
/* The group's offer with one more of its requests in it, kept or pending; 0: it has no use for more. */
int64_t share_one_more(const struct group *g);

#endif
