/*
 * Agents and their slots: inventory, what administrators switched off, leases.
 *
 *   ABSENT --hello--> UP --link lost--> LOST --hello--> UP
 *                                       LOST --lease over--> ABSENT
 *   ABSENT --restored with containers--> LOST
 *
 * An ABSENT agent is remembered only for what was switched off. Every slot is free, used (a
 * container holds it) or disabled, and never two of these. Private to master/core.
 */
#ifndef CORE_AGENT_H
#define CORE_AGENT_H

#include "model.h"

struct agent_slots {
    size_t total, used, free, disabled; /* free + used + disabled = total */
    size_t off;                         /* switched off, used or not */
};
struct agent_slots agent_slots(const struct agent *a);
int agent_aux(const struct agent *a);        /* zero-slot containers */
bool agent_is_usable(const struct agent *a); /* takes new work */
/* Slots of a container that are not switched off. */
int agent_usable_slots(const struct container *k);

struct agent *agent_find(const struct core *c, const char *id); /* NULL: never heard of */
struct agent *agent_get(struct core *c, const char *id);        /* made when new, ABSENT */
void agent_destroy(struct agent *a);
void agent_goto(struct core *c, struct agent *a, enum agent_state to);
void agent_mark(struct core *c, struct agent *a); /* its row changed */

/* Gives the container `n` free slots of its agent, neighbours (neighbours.h; n = 0: none). */
void agent_attach(struct core *c, struct agent *a, struct container *k, int n);
/* The same with given ids, when rebuilding: false if one is held already. */
bool agent_reattach(struct core *c, struct agent *a, struct container *k);
void agent_detach(struct core *c, struct container *k);

/* Inventory of a hello: slots appear, stay or vanish; holders of vanished slots are killed. */
void agent_update(struct core *c, struct agent *a, const struct core_hello *h);
DET_MUST int agent_set(struct core *c, const struct core_agent_set *s, struct det_err *err);

#endif
