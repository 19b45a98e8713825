/*
 * Slots that are not usable as their agent says: nothing is placed there, what runs there goes on.
 * An administrator who enables one that was looked at has it used all the same, until it was usable
 * once or is disabled. Private to master/core.
 */
#ifndef CORE_SLOTS_H
#define CORE_SLOTS_H

#include "model.h"

/* Nothing new is placed on it. */
bool slot_is_out(const struct slot *s);
bool slot_is_listed(const struct slot_ids *ids, int id);
void slot_list(struct slot_ids *ids, int id, bool listed);
/* What an administrator did to it. */
void slot_force(struct agent *a, struct slot *s, bool enabled);

/* A hello says of all slots how they are; without h->judges they are usable. */
void slots_on_hello(struct core *c, struct agent *a, const struct core_hello *h);
DET_MUST int slots_on_sight(struct core *c, struct agent *a, const struct core_slot_sight *s,
                            struct det_err *err);

#endif
