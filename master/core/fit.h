/*
 * Placement: which agents a request of k slots goes to (rest-api.md 5.3). Works on scratch counts
 * of the pool's agents, so that a scheduler can try things; only alloc_place() makes one real.
 * Private to master/core.
 */
#ifndef CORE_FIT_H
#define CORE_FIT_H

#include "model.h"

struct placement_node {
    struct agent *agent;
    int slots;
};
struct placement {
    VEC(struct placement_node) nodes; /* node 0 is the chief's */
};

struct fit {
    const struct core *c;
    struct pool *pool;
    int64_t free_total; /* slots */
    int free_max;       /* of one agent */
};

/* Sets the scratch to what is free now. */
void fit_begin(struct fit *f, const struct core *c, struct pool *pool);
/* Sets the scratch to the pool as it would be without preemptible work; counts agents that may come
 * back. */
void fit_begin_idle(struct fit *f, const struct core *c, struct pool *pool);
/* All nodes or none; false: it does not fit the scratch. Fills ret (cleared first). */
bool fit_place(struct fit *f, int64_t slots, uint64_t hash, struct placement *ret);
/* Takes the placement out of the scratch, or gives containers of an allocation back to it. */
void fit_take(struct fit *f, const struct placement *p);
void fit_give(struct fit *f, const struct alloc *a);
/* Whether k slots could ever be placed: exact arithmetic of fit_place on an idle pool, off agents
 * included. */
bool fit_ever(const struct core *c, struct pool *pool, int64_t slots);

#endif
