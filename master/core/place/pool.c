#include "pool.h"

#include "fit.h"
#include <string.h>

struct pool *pool_find(const struct core *c, const char *name)
{
    if (!name || !*name)
        return c->pools.v[0];
    for (size_t i = 0; i < c->pools.n; i++)
        if (strcmp(c->pools.v[i]->name, name) == 0)
            return c->pools.v[i];
    return NULL;
}

/* As it is configured; else as pools are in general. */
static struct core_pool_options options_of(const struct core *c, const char *name)
{
    for (size_t i = 0; i < c->o.pools_n; i++)
        if (strcmp(c->o.pools[i].name, name) == 0)
            return c->o.pools[i];
    return (struct core_pool_options){.scheduler = c->o.scheduler,
                                      .fitting = c->o.fitting,
                                      .preemption = c->o.preemption,
                                      .default_priority = c->o.default_priority,
                                      .allow_heterogeneous_fits = c->o.allow_heterogeneous_fits,
                                      .max_aux_containers = c->o.max_aux_containers,
                                      .agent_reconnect_wait_ms = c->o.agent_reconnect_wait_ms,
                                      .starvation_wait_ms = c->o.starvation_wait_ms};
}

static struct pool *pool_create(const struct core *c, const char *name)
{
    struct pool *p = det_zalloc(sizeof *p);
    p->name = det_strdup(name);
    p->o = options_of(c, name);
    p->description = det_strdup(p->o.description ? p->o.description : "");
    p->o.name = p->name;
    p->o.description = p->description;
    p->timer.kind = TIMER_POOL;
    fit_init(&p->fit, c, &p->o);
    return p;
}

struct pool *pool_get(struct core *c, const char *name)
{
    struct pool *p = c->pools.n ? pool_find(c, name) : NULL;
    if (p)
        return p;
    p = pool_create(c, name);
    size_t i = c->pools.n;
    while (i > 1 && strcmp(c->pools.v[i - 1]->name, name) > 0)
        i--;
    vec_insert(&c->pools, i, p);
    return p;
}

void pool_on_timer(struct core *c, struct pool *p)
{
    timers_set(&c->timers, &p->timer, INT64_MAX);
    p->dirty = true;
}

void pool_destroy(struct pool *p)
{
    vec_free(&p->reserved);
    vec_free(&p->agents);
    vec_free(&p->groups);
    fit_finish(&p->fit);
    free(p->description);
    free(p->name);
    free(p);
}
