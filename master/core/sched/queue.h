/*
 * The queue of a pool: its groups, each with the allocations that wait and those that hold agents,
 * in order of request, and the sums the schedulers need; and the order of jobs. Kept as allocations
 * change, so that a pass costs no more than its groups and its decisions. Private to master/core.
 */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "model.h"

/* Puts it where its state says (pending and not held back, placed, ended), or moves it there. */
void queue_update(struct core *c, struct alloc *a);
/* Takes it out, whatever its state. */
void queue_leave(struct core *c, struct alloc *a);
/* Before 0: a is more important. By priority and queue position (priority scheduler only), id. */
int queue_cmp(const struct exp *a, const struct exp *b);
int queue_priority(const struct exp *e);
/* Collections go before everything. */
int queue_group_cmp(const struct group *a, const struct group *b);
int queue_group_level(const struct group *g);

/* How long a group has been waiting for room without having any; 0: it is not. */
int64_t queue_waited_ms(const struct group *g, int64_t now_ms);
/* Writes down how long everybody has waited: a restart forgets no more than what came after. */
void queue_save_waits(struct core *c);
/* Since when somebody has waited was told by the clock of another life; how long, the rows say. */
void queue_restart_waits(struct core *c);

#endif
