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

static int never_fits(const struct pool *p, int64_t slots, struct det_err *err)
{
    size_t total = 0, largest = 0;
    for (size_t i = 0; i < p->agents.n; i++) {
        size_t n = p->agents.v[i]->slots.n;
        total += n;
        largest = n > largest ? n : largest;
    }
    const char *why = (size_t)slots > total
                          ? "write a smaller number or add agents"
                          : "a trial over several agents takes whole agents of equal size: write a "
                            "multiple of that size";
    return det_fail(
        err, DET_EINVAL,
        "resources.slots_per_trial: %lld slots can never be placed in pool %s, which has "
        "%zu slots on %zu agent%s (at most %zu on one); %s",
        (long long)slots, p->name, total, p->agents.n, p->agents.n == 1 ? "" : "s", largest, why);
}

/* After a restart the slots of agents are known only when they have said hello. */
static bool inventory_is_partial(const struct core *c)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (c->agents.v[i]->state == AGENT_LOST && !c->agents.v[i]->registered_us)
            return true;
    return false;
}

int core_fits(const struct core *c, const char *pool, int64_t slots, bool *ret_exceeded,
              struct det_err *err)
{
    struct pool *p = pool_find(c, pool);
    *ret_exceeded = false;
    if (!p)
        return det_fail(
            err, DET_ENOENT,
            "resources.resource_pool: pool %s not found; `det agent list` shows the pools "
            "there are",
            pool);
    if (slots == 0 || fit_ever(&p->fit, slots))
        return 0;
    *ret_exceeded = true;
    if (p->agents.n == 0 || !c->o.launch_error || inventory_is_partial(c))
        return 0;
    return never_fits(p, slots, err);
}
