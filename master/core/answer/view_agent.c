/* What the API reads of agents, slots and pools. */
#include "agent.h"
#include "alloc.h"
#include "exp.h"
#include "fit.h"
#include "pool.h"
#include "store.h"
#include <string.h>

static void agent_view(const struct agent *a, struct core_agent_view *ret)
{
    struct agent_slots n = agent_slots(a);
    *ret = (struct core_agent_view){.id = a->id,
                                    .pool = a->pool->name,
                                    .addr = a->addr,
                                    .version = a->version,
                                    .connected = a->state == AGENT_UP,
                                    .enabled = !a->off && a->state == AGENT_UP,
                                    .draining = a->off == OFF_DRAINING || a->state != AGENT_UP,
                                    .registered_us = a->registered_us,
                                    .slots = n.total,
                                    .slots_used = n.used,
                                    .slots_free = n.free,
                                    .slots_disabled = n.disabled,
                                    .containers = a->containers.n};
}

bool core_agent_at(const struct core *c, size_t i, struct core_agent_view *ret)
{
    for (size_t k = 0; k < c->agents.n; k++)
        if (c->agents.v[k]->state != AGENT_ABSENT && i-- == 0) {
            agent_view(c->agents.v[k], ret);
            return true;
        }
    return false;
}

static const struct agent *find_present(const struct core *c, const char *id)
{
    const struct agent *a = agent_find(c, id);
    return a && a->state != AGENT_ABSENT ? a : NULL;
}

bool core_agent_get(const struct core *c, const char *agent_id, struct core_agent_view *ret)
{
    const struct agent *a = find_present(c, agent_id);
    if (a)
        agent_view(a, ret);
    return a;
}

bool core_slot_at(const struct core *c, const char *agent_id, size_t i, struct core_slot_view *ret)
{
    const struct agent *a = find_present(c, agent_id);
    if (!a || i >= a->slots.n)
        return false;
    const struct slot *s = &a->slots.v[i];
    const struct container *k = s->holder;
    *ret = (struct core_slot_view){.id = s->id,
                                   .type = s->type,
                                   .brand = s->brand,
                                   .uuid = s->uuid,
                                   .island = s->island,
                                   .numa = s->numa,
                                   .enabled = !s->off && !a->off && a->state == AGENT_UP,
                                   .state = s->state,
                                   .why = s->why,
                                   .forced = s->forced,
                                   .draining = s->off == OFF_DRAINING || a->off == OFF_DRAINING ||
                                               a->state != AGENT_UP,
                                   .container = k ? k->id : NULL,
                                   .alloc_id = k ? k->alloc->id : NULL,
                                   .container_state = k ? k->state : ALLOC_PENDING};
    return true;
}

bool core_agent_container(const struct core *c, const char *agent_id, size_t i,
                          struct core_container_view *ret)
{
    const struct agent *a = find_present(c, agent_id);
    if (!a || i >= a->containers.n)
        return false;
    const struct container *k = a->containers.v[i];
    *ret = (struct core_container_view){.id = k->id,
                                        .agent_id = k->agent_id,
                                        .alloc_id = k->alloc->id,
                                        .state = k->state,
                                        .slots = k->slots.v,
                                        .slots_n = k->slots.n};
    return true;
}

bool core_pool_at(const struct core *c, size_t i, struct core_pool_view *ret)
{
    if (i >= c->pools.n)
        return false;
    const struct pool *p = c->pools.v[i];
    *ret = (struct core_pool_view){.name = p->name, .o = &p->o, .agents = p->agents.n};
    for (size_t k = 0; k < p->agents.n; k++) {
        struct agent_slots n = agent_slots(p->agents.v[k]);
        ret->slots += n.total;
        ret->slots_used += n.used;
        ret->aux_running += (size_t)agent_aux(p->agents.v[k]);
    }
    for (size_t k = 0; k < c->exps.n; k++) {
        const struct exp *e = c->exps.v[k];
        if (e->pool != p || exp_state_is_terminal(e->state))
            continue;
        bool is_placed = e->group->running.n + e->group->ending.n > 0;
        ret->jobs_queued += !is_placed && e->state != EXP_PAUSED;
        ret->jobs_paused += !is_placed && e->state == EXP_PAUSED;
        ret->jobs_scheduled += is_placed;
    }
    return true;
}

const struct core_pool_options *core_pool_options(const struct core *c, const char *pool)
{
    const struct pool *p = pool_find(c, pool);
    return p ? &p->o : NULL;
}

const char *core_slot_state_text(enum core_slot_state f)
{
    static const char *const texts[CORE_SLOT_STATE_COUNT] = {"USABLE", "UNSEEN", "FOREIGN", "HELD",
                                                             "AILING"};
    return texts[f < CORE_SLOT_STATE_COUNT ? f : 0];
}

/* ---- Stores ---- */

const char *core_store_kind_text(enum core_store_kind k)
{
    static const char *const texts[CORE_STORE_KIND_COUNT] = {"UNSEEN", "PRESENT", "OTHER", "ABSENT",
                                                             "KNOWN",  "HIDDEN",  "FAILED"};
    return texts[k < CORE_STORE_KIND_COUNT ? k : 0];
}

bool core_agent_sight(const struct core *c, const char *agent_id, size_t i,
                      struct core_sight_view *ret)
{
    const struct agent *a = find_present(c, agent_id);
    if (!a || i >= a->sights.n)
        return false;
    const struct sight *x = &a->sights.v[i];
    *ret = (struct core_sight_view){x->store->place, x->text, x->kind};
    return true;
}

bool core_store_at(const struct core *c, size_t i, struct core_store_view *ret)
{
    if (i >= c->stores.n)
        return false;
    const struct store *s = c->stores.v[i];
    *ret = (struct core_store_view){.place = s->place,
                                    .id = s->id[0] ? s->id : NULL,
                                    .made_on = s->made_on,
                                    .owner_id = s->owner_id,
                                    .used_us = s->used_us,
                                    .is_used = s->pools.n > 0};
    return true;
}
