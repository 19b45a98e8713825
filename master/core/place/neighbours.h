/*
 * Which free slots of an agent a container is given that needs fewer: neighbours. All of one NVLink
 * island, else of one NUMA node, else any. Of several islands, or nodes, with enough the one with
 * the fewest free: larger ones stay whole for larger gangs. Where none has enough, the largest
 * islands first, whole, and the rest in the same way. Ties: slots whose node has the fewest free,
 * then the lowest. Pure. Private to master/core.
 */
#ifndef CORE_NEIGHBOURS_H
#define CORE_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>

struct neighbour {
    int slot;         /* its place among all of the agent, from 0 */
    int island, numa; /* below 1 << 20; -1: it is of none */
    size_t node_free; /* set here: how many of these slots its node has */
};
/* k of the n <= 1024 free slots: taken[slot] is set for each. Reorders v. */
void neighbours_pick(struct neighbour *v, size_t n, size_t k, bool *taken);

#endif
