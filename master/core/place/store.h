/*
 * Checkpoint stores: which directory is which store, and on which agents it is.
 *
 * A store is named by its place (proto/storeplace.h) and known by the random id of the marker in
 * its root. The first use makes the marker, or adopts one that is there: every agent of a pool with
 * work for the store looks at the place, and one of them, the first that may, has the word to make
 * it. Where checkpoints are known to lie in it, only a directory that holds one of them is it. From
 * then on an agent has the store if the marker with this id is at its place there.
 *
 *     (no id) --an agent sees a marker, or has made one--> (id)
 *     (id) --an administrator: adopt--> (no id)
 *
 * Who has the word and does not answer for 30 s (a disk that hangs) loses it to the next.
 *
 * A run is placed only on agents that have its store; agents of before there were stores do not
 * look and are taken to have all. Where none can make one, the run starts without and says why it
 * fails. Private to master/core.
 */
#ifndef CORE_STORE_H
#define CORE_STORE_H

#include "model.h"

/* Of a configuration's checkpoint_storage, made when it is new; NULL: of no kind that has a
 * directory. */
struct store *store_of(struct core *c, const json_t *config, int64_t owner_id);
struct store *store_find(const struct core *c, const char *place);
void store_destroy(struct store *s);
void store_mark(struct core *c, struct store *s);
/* What the allocation reads and writes; NULL: none. */
struct store *store_of_alloc(const struct alloc *a);

/* The allocation is to be placed in its pool: the agents there look from now on. */
void store_want(struct core *c, const struct alloc *a);
/* The agent has said hello and knows nothing: it is told where to look. */
void store_greet(struct core *c, struct agent *a);
/* The agent is gone: what it saw is not known any more, and another one has its word. */
void store_on_agent_gone(struct core *c, struct agent *a);
void store_forget_agent(struct agent *a); /* before it is freed */
/* Who has the word to make the store has not answered for long. */
void store_on_timer(struct core *c, struct store *s);
/* What an agent saw. */
void store_on_seen(struct core *c, struct agent *a, const struct core_store_in *in);
/* A run ended on the agent for want of its store. */
void store_on_away(struct core *c, struct agent *a, const struct alloc *al, const char *text);
/* Where it is may change: the next look decides anew. known: array of uuids that lie in it. */
DET_MUST int store_adopt(struct core *c, const struct core_adopt *in, struct det_err *err);

/* May a run with this store (NULL: any) start there? */
bool store_is_on(const struct store *s, const struct agent *a);
const struct sight *store_sight(const struct store *s, const struct agent *a); /* NULL: none */
/* No agent of the pool that takes work has it. False also while one has not looked yet. */
bool store_is_nowhere(const struct store *s, const struct pool *p);
/* Why an allocation that waits for it does, with every agent's words; appended. */
void store_explain(const struct store *s, const struct pool *p, struct buf *out);

#endif
