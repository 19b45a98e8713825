/*
 * Schedulers: which pending allocations of a pool start now, and which running ones are asked to
 * stop. One runs at the end of every step that changed its pool, so what fits idle slots starts in
 * the step that made it possible.
 *
 * A policy is a function from the pool as it is (groups, index of agents, time) to decisions: it
 * changes nothing but scratch, and what it starts is taken from the index of agents. Whoever asked
 * either makes the decisions real or undoes them. Private to master/core.
 */
#ifndef CORE_SCHEDULER_H
#define CORE_SCHEDULER_H

#include "fit.h"

struct sched_start {
    struct alloc *alloc;
    size_t first, n; /* its nodes */
};
struct sched_release {
    struct alloc *alloc;
    const char *why;
};
struct sched {
    struct pool *pool;
    int64_t now_ms;
    VEC(struct sched_start) starts;
    VEC(struct placement_node) nodes;
    VEC(struct sched_release) releases;
    struct placement tmp;
};

void sched_run(struct core *c, struct pool *pool);

/* The decisions for the pool as it is. fit_undo(&pool->fit, 0) takes them back; sched_finish frees
 * them. */
void sched_decide(struct sched *s, const struct core *c, struct pool *pool);
void sched_finish(struct sched *s);

/* The policies. Groups' scratch is cleared before. */
void sched_fair(struct sched *s);
void sched_priority(struct sched *s);
void sched_fifo(struct sched *s);
void sched_round_robin(struct sched *s);

/* For policies. */

/* Decides to start a if it fits. */
bool sched_start(struct sched *s, struct alloc *a);
void sched_release(struct sched *s, struct alloc *a, const char *why);
/* It excludes agents: may not fit where its like do. */
bool sched_is_choosy(const struct alloc *a);
/* Starts the group's next pending request; choosy ones that do not fit are passed over. False:
 * nothing more of this group fits. */
bool sched_start_next(struct sched *s, struct group *g);

/* Serves groups in turns, the lowest key first. */
struct turns {
    VEC(struct turn {
        int64_t key;
        struct group *g;
    })
    heap;
};
void turns_push(struct turns *t, int64_t key, struct group *g);
struct group *turns_pop(struct turns *t); /* NULL: none */

#endif
