/* Slots that are not usable, in the answer of `det why`: named in "text", listed as "slotsOut".
 * Private to master/core. */
#ifndef CORE_WHY_SLOTS_H
#define CORE_WHY_SLOTS_H

#include "model.h"

/* Those on which nothing of this pool is placed. */
void why_slots_of_pool(const struct pool *p, json_t *answer);
/* Those that it runs on. */
void why_slots_of_alloc(const struct alloc *a, json_t *answer);

#endif
