/* Random states of a pool, put together without any pass having run: agents of all kinds, queued
 * and placed and ending work. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "world.h"
#include "model.h"

struct snapshot {
    struct world w;
    uint64_t rng;
    struct core_effects fx;
};
uint64_t snapshot_random(struct snapshot *s, uint64_t below);
void snapshot_make(struct snapshot *s, uint64_t seed, const struct core_options *o);
void snapshot_free(struct snapshot *s);

#endif
