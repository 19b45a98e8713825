/* The queue of a pool: allocations that wait, allocations that hold agents, both in order of
 * request; and the order of jobs. Private to master/core. */
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "model.h"

void queue_add_pending(struct alloc *a);
void queue_add_placed(struct alloc *a);
void queue_remove(struct alloc *a); /* from whichever list; from none is fine */
/* Before 0: a is more important. By priority (priority scheduler only), queue position, id. */
int queue_cmp(const struct core *c, const struct exp *a, const struct exp *b);
int queue_priority(const struct core *c, const struct exp *e);

#endif
