/*
 * Placement: which agents a request of k slots goes to (docs/contract/placement.md 1), on an index
 * of a pool's agents.
 *
 * Agents that take work stand in buckets by (free slots, slots in all), inside a bucket by the hash
 * of their id; so the best agent of a bucket for a request, the one whose hash is the nearest below
 * the request's, is found by bisection, and a gang's agents are the ones that follow. A second
 * index does the same for zero-slot containers.
 *
 * The index is kept as agents change (fit_refresh). A scheduler tries things on it: what it takes
 * and gives back is journaled and can be undone. Private to master/core.
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

void fit_init(struct fit *f, const struct core *c,
              const struct core_pool_options *o); /* borrowed */
void fit_finish(struct fit *f);
/* The agent's state, slots or pool changed: counts it anew. Not between trying and keeping. */
void fit_refresh(struct agent *a);

/* All nodes or none; false: it does not fit now. Fills ret (cleared first). */
bool fit_place(const struct fit *f, const struct alloc *a, struct placement *ret);
/* Could it be placed, were nothing placed that may be asked to stop? Agents that are off or away
 * do not count. */
bool fit_could(const struct fit *f, const struct alloc *a);
/* The same for all requests of a size, with this store (NULL: any), that avoid no agent. */
bool fit_could_size(const struct fit *f, int64_t slots, const struct store *s);
/* Whether k slots could ever be placed; agents that are off or away count. */
bool fit_ever(const struct fit *f, int64_t slots);
/* The same without the agents that the trial avoids because of these sources (avoid.h). */
bool fit_ever_for(const struct fit *f, int64_t slots, const struct trial *t, unsigned sources);
int64_t fit_free(const struct fit *f);

/* Whether a has a container on one of the placement's agents. */
bool fit_touches(const struct alloc *a, const struct placement *p);

/* Takes a placement out, or gives an allocation's containers back, until undone. */
void fit_take(struct fit *f, const struct placement_node *nodes, size_t n);
void fit_give(struct fit *f, const struct alloc *a);
/* Changes what is free on an agent by so many slots, until undone. */
void fit_shift(struct fit *f, struct agent *a, int slots);
size_t fit_mark(const struct fit *f);
void fit_undo(struct fit *f, size_t mark); /* back to how it was at the mark */
/* What was taken is going to be so: refreshing waits for fit_thaw. */
void fit_keep(struct fit *f);
void fit_thaw(struct fit *f);

#endif
