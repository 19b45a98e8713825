/* Resource pools: those of the configuration, and whatever else agents name. Each has agents, a
 * queue and a scheduler of its own. Private to master/core. */
#ifndef CORE_POOL_H
#define CORE_POOL_H

#include "model.h"

struct pool *pool_find(const struct core *c, const char *name); /* NULL or "": the default */
struct pool *pool_get(struct core *c, const char *name);        /* made when new */
void pool_on_timer(struct core *c, struct pool *p);             /* something has waited long
                                                                 * enough */
void pool_destroy(struct pool *p);

#endif
