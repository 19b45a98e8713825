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
    size_t first, n;  /* its nodes */
    bool is_backfill; /* others come first: it makes room when they could start */
    bool is_shielded; /* it waited long: for as long it is not asked to stop */
};
struct sched_block { /* free slots that nobody may have in this pass */
    struct agent *agent;
    int slots;
};
struct sched_release {
    struct alloc *alloc;
    const char *why;
};
struct waiting {
    struct group *g;
    int64_t since_ms; /* while nothing of it is placed; INT64_MAX: something is */
};
/* A group's part, side by side with the others': dealing looks at all of them many times. */
struct share {
    struct group *g;
    int64_t at, size, demand, cap, offer; /* at: its place in the pool */
    int64_t held, was_offer, was_excess;
    double weight;
    bool waits, is_capped; /* something of it is pending; its experiment has max_slots */
};
struct share_groups {
    VEC(struct share) list;
};
/* A group and its place in line, side by side with the others'. */
struct rank {
    struct group *g;
    int64_t id;
    double position;
    int level;
};
struct line { /* priority: the first to be served first */
    VEC(struct rank) list;
};
struct sched {
    const struct core *c;
    struct pool *pool;
    int64_t now_ms;
    int64_t free;                    /* slots, before the pass took any */
    int64_t held;                    /* slots of what runs */
    size_t backfilled;               /* of what runs */
    VEC(struct waiting) waiting;     /* with something pending, of slots; in the pool's order */
    VEC(struct group *) aux, ending; /* with something pending, of none; with something ending */
    bool is_backfill;                /* what is started from here on */
    struct alloc *guarded;           /* room is kept for it: */
    VEC(struct agent *) reserved;
    size_t releases_guard; /* of the releases these are for it */
    VEC(struct sched_block) blocks;
    struct share_groups shares; /* fair share: those that hold or want slots */
    struct line waits, runs;    /* priority: those of slots with something pending, or that could
                                 * be released */
    int64_t wake_ms;            /* the next pass because of time alone; INT64_MAX: none */
    VEC(struct sched_start) starts;
    VEC(struct placement_node) nodes;
    VEC(struct sched_release) releases;
    struct placement tmp;
};

void sched_run(struct core *c, struct pool *pool);

/* Between passes: what those of a group that are pending wait for. */
enum core_wait sched_wait(const struct core *c, const struct group *g);

/* The decisions for the pool as it is. fit_undo(&pool->fit, 0) takes them back; sched_finish frees
 * them. */
void sched_decide(struct sched *s, const struct core *c, struct pool *pool);
void sched_finish(struct sched *s);

/* Fair share: lists the group in s->shares. */
void sched_want(struct sched *s, struct group *g, size_t at);

/* Priority: lists the group in s->waits and s->runs. */
void sched_rank(struct sched *s, struct group *g);

/* The policies. Groups' scratch is cleared before. */
void sched_fair(struct sched *s);
void sched_priority(struct sched *s);
void sched_fifo(struct sched *s);
void sched_round_robin(struct sched *s);

/* sched_guard.c: before the policy, whoever waited too long. */
void sched_guard(struct sched *s);
/* Keeps room for a, which does not fit now: releases what may be released for it, and withholds the
 * agents that it is going to have. False: even that would not be enough. */
bool sched_keep_room(struct sched *s, struct alloc *a);

/* For policies. */

/* Whether its experiment's cap and its owner's quota let one more of the group start. */
bool sched_may(const struct sched *s, const struct group *g);
void sched_count(struct group *g); /* one more of it starts */

/* Decides to start a if it fits. */
bool sched_start(struct sched *s, struct alloc *a);
void sched_release(struct sched *s, struct alloc *a, const char *why);
/* It avoids agents: may not fit where its like do. */
bool sched_is_choosy(const struct alloc *a);
/* Starts the group's next pending request; choosy ones that do not fit are passed over. False:
 * nothing more of this group fits. */
bool sched_start_next(struct sched *s, struct group *g);

/* Serves groups in turns, the lowest key first. */
struct turns {
    VEC(struct turn {
        int64_t key;
        int64_t id;
        struct group *g;
    })
    heap;
};
void turns_push(struct turns *t, int64_t key, struct group *g);
struct group *turns_pop(struct turns *t); /* NULL: none */

#endif
