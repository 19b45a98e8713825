/*
 * Schedulers: which pending allocations of a pool start now, and which running ones are asked to
 * stop. One runs at the end of every step that changed its pool, so what fits idle slots starts in
 * the step that made it possible. Private to master/core.
 */
#ifndef CORE_SCHEDULER_H
#define CORE_SCHEDULER_H

#include "fit.h"

void sched_run(struct core *c, struct pool *pool);

/* The policies; zero-slot requests are placed before, but for priority, which orders them too. */
void sched_fair(struct core *c, struct pool *pool);
void sched_priority(struct core *c, struct pool *pool);
void sched_fifo(struct core *c, struct pool *pool);

/* Places a if it fits f's scratch now; really. */
bool sched_start(struct core *c, struct fit *f, struct alloc *a);
/* Pending allocations in a snapshot (starting changes the queue). Caller frees ->v. */
struct sched_list {
    VEC(struct alloc *) list;
};
void sched_pending(const struct pool *p, struct sched_list *ret);

#endif
