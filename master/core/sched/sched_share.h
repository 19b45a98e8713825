/* Dealing slots to groups: max-min fairness by weight, in whole requests
 * (docs/contract/placement.md 2). Private to master/core. */
#ifndef CORE_SCHED_SHARE_H
#define CORE_SCHED_SHARE_H

#include "scheduler.h"

/* Those of a list come in order of id. */
void share_add(struct share_groups *list, struct group *g, size_t at, int64_t demand);
/* Deals `capacity` to the groups: fills the offers of the list, and sorts it by demand.
 *
 * Progressive filling: in each round every group that wants more gets its weight's part of what the
 * round began with, at least one slot. A group that cannot use its whole offer (it is no multiple
 * of its requests' size) is capped to what it can use, the youngest first, and the rest is dealt
 * again. Where many are wasteful a sixteenth of them is capped at a time. What the caps have left
 * goes to whoever can use it, in whole requests: so nobody holds an offer that starts nothing.
 *
 * What is held plays no part but as demand: the offers stay the same while work starts and stops to
 * follow them. */
void share_deal(struct share_groups *g, int64_t capacity);

#endif
