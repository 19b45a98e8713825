#include "agent.h"

#include "alloc.h"
#include "fit.h"
#include "names.h"
#include "neighbours.h"
#include "pool.h"
#include "slots.h"
#include "store.h"
#include <string.h>

struct agent_slots agent_slots(const struct agent *a)
{
    struct agent_slots n = {.total = a->slots.n};
    for (size_t i = 0; i < a->slots.n; i++) {
        const struct slot *s = &a->slots.v[i];
        bool off = a->off || slot_is_out(s) || a->state != AGENT_UP;
        n.off += off;
        n.used += s->holder != NULL;
        n.disabled += !s->holder && off;
        n.free += !s->holder && !off;
    }
    return n;
}

int agent_aux(const struct agent *a)
{
    int n = 0;
    for (size_t i = 0; i < a->containers.n; i++)
        n += a->containers.v[i]->slots.n == 0;
    return n;
}

bool agent_is_usable(const struct agent *a)
{
    return a->state == AGENT_UP && !a->off;
}

static struct slot *slot_find(struct agent *a, int id)
{
    for (size_t i = 0; i < a->slots.n; i++)
        if (a->slots.v[i].id == id)
            return &a->slots.v[i];
    return NULL;
}

int agent_usable_slots(const struct container *k)
{
    int n = 0;
    for (size_t i = 0; i < k->slots.n; i++) {
        const struct slot *s = slot_find(k->agent, k->slots.v[i]);
        n += s && !slot_is_out(s);
    }
    return n;
}

struct agent *agent_find(const struct core *c, const char *id)
{
    return id ? map_get(c->agent_by_id, id) : NULL;
}

struct agent *agent_get(struct core *c, const char *id)
{
    struct agent *a = agent_find(c, id);
    if (a)
        return a;
    a = det_zalloc(sizeof *a);
    a->id = det_strdup(id);
    a->addr = det_strdup("");
    a->version = det_strdup("");
    a->hash = name_hash(id);
    a->lease.kind = TIMER_LEASE;
    map_put(c->agent_by_id, id, a);
    vec_push(&c->agents, a);
    size_t i = c->agents.n - 1;
    for (; i > 0 && strcmp(c->agents.v[i - 1]->id, id) > 0; i--)
        c->agents.v[i] = c->agents.v[i - 1];
    c->agents.v[i] = a;
    return a;
}

static void slots_free(struct agent *a)
{
    for (size_t i = 0; i < a->slots.n; i++) {
        free(a->slots.v[i].brand);
        free(a->slots.v[i].uuid);
        free(a->slots.v[i].why);
    }
    vec_free(&a->slots);
}

void agent_destroy(struct agent *a)
{
    slots_free(a);
    vec_free(&a->slots_off.v);
    vec_free(&a->slots_forced.v);
    vec_free(&a->containers);
    store_forget_agent(a);
    free(a->id);
    free(a->addr);
    free(a->version);
    free(a);
}

static void pool_leave(struct agent *a)
{
    struct pool *p = a->pool;
    for (size_t i = 0; p && i < p->agents.n; i++)
        if (p->agents.v[i] == a) {
            vec_remove(&p->agents, i);
            p->dirty = true;
        }
    a->pool = NULL;
    fit_refresh(a);
}

static void pool_join(struct agent *a, struct pool *p)
{
    if (a->pool == p)
        return;
    pool_leave(a);
    a->pool = p;
    size_t i = p->agents.n;
    vec_push(&p->agents, a);
    for (; i > 0 && strcmp(p->agents.v[i - 1]->id, a->id) > 0; i--)
        p->agents.v[i] = p->agents.v[i - 1];
    p->agents.v[i] = a;
    fit_refresh(a);
}

void agent_goto(struct core *c, struct agent *a, enum agent_state to)
{
    a->state = edges_go(c, MACHINE_AGENT, a->state, to);
    if (to != AGENT_UP)
        store_on_agent_gone(c, a);
    if (to == AGENT_ABSENT) {
        pool_leave(a);
        slots_free(a);
    } else if (!a->pool) {
        pool_join(a, pool_get(c, NULL));
    }
    fit_refresh(a);
    timers_set(&c->timers, &a->lease,
               to == AGENT_LOST ? c->now_ms + a->pool->o.agent_reconnect_wait_ms : INT64_MAX);
    fit_refresh(a);
    if (a->pool)
        a->pool->dirty = true;
}

void agent_mark(struct core *c, struct agent *a)
{
    if (!a->dirty)
        vec_push(&c->dirty_agents, a);
    a->dirty = true;
}

/* Which of its slots, in their order, a container gets that needs k > 0 of them. Owned. */
static bool *choose_slots(const struct agent *a, size_t k)
{
    det_cleanup(freep) struct neighbour *v = det_alloc(a->slots.n * sizeof *v);
    bool *taken = det_zalloc(a->slots.n * sizeof *taken);
    size_t n = 0;
    for (size_t i = 0; i < a->slots.n; i++) {
        const struct slot *s = &a->slots.v[i];
        if (!s->holder && !slot_is_out(s))
            v[n++] = (struct neighbour){.slot = (int)i, .island = s->island, .numa = s->numa};
    }
    neighbours_pick(v, n, k, taken);
    return taken;
}

void agent_attach(struct core *c, struct agent *a, struct container *k, int n)
{
    k->agent = a;
    k->agent_id = det_strdup(a->id);
    vec_push(&a->containers, k);
    det_cleanup(freep) bool *taken = n > 0 ? choose_slots(a, (size_t)n) : NULL;
    for (size_t i = 0; taken && i < a->slots.n; i++)
        if (taken[i]) {
            a->slots.v[i].holder = k;
            vec_push(&k->slots, a->slots.v[i].id);
        }
    fit_refresh(a);
}

bool agent_reattach(struct core *c, struct agent *a, struct container *k)
{
    for (size_t i = 0; i < k->slots.n; i++) {
        struct slot *s = slot_find(a, k->slots.v[i]);
        if (s && s->holder)
            return false;
        if (!s) {
            vec_push(&a->slots, (struct slot){.id = k->slots.v[i], .island = -1, .numa = -1});
            s = &a->slots.v[a->slots.n - 1];
            s->brand = det_strdup("");
            s->uuid = det_strdup("");
            s->why = det_strdup("");
        }
        s->holder = k;
    }
    k->agent = a;
    vec_push(&a->containers, k);
    fit_refresh(a);
    return true;
}

void agent_detach(struct core *c, struct container *k)
{
    struct agent *a = k->agent;
    if (!a)
        return;
    for (size_t i = 0; i < a->slots.n; i++)
        if (a->slots.v[i].holder == k)
            a->slots.v[i].holder = NULL;
    for (size_t i = 0; i < a->containers.n; i++)
        if (a->containers.v[i] == k)
            vec_remove(&a->containers, i);
    k->agent = NULL;
    fit_refresh(a);
    if (a->pool)
        a->pool->dirty = true;
}

static void replace_text(char **s, const char *with)
{
    char *copy = det_strdup(with ? with : "");
    free(*s);
    *s = copy;
}

/* Kills whoever holds a slot of `old` that the agent does not have any more. */
static void kill_vanished(struct core *c, struct agent *a, const struct slot *old, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct container *k = old[i].holder;
        if (!k || slot_find(a, old[i].id))
            continue;
        for (size_t s = 0; s < k->slots.n; s++)
            if (k->slots.v[s] == old[i].id)
                vec_remove(&k->slots, s);
        alloc_kill(c, k->alloc, KILL_DISABLED, "slot %d of agent %s is gone", old[i].id, a->id);
    }
}

static int slot_order(const void *x, const void *y)
{
    const struct slot *a = x, *b = y;
    return (a->id > b->id) - (a->id < b->id);
}

static void update_slots(struct core *c, struct agent *a, const struct core_hello *h)
{
    struct slot *old = a->slots.v;
    size_t old_n = a->slots.n;
    a->slots.v = NULL;
    a->slots.n = a->slots.cap = 0;
    for (size_t i = 0; i < h->slots_n; i++) {
        const struct core_slot_in *in = &h->slots[i];
        if (slot_find(a, in->id))
            continue;
        struct slot s = {.id = in->id,
                         .type = in->type,
                         .island = in->island,
                         .numa = in->numa,
                         .off = slot_is_listed(&a->slots_off, in->id) ? OFF_AT_ONCE : NOT_OFF,
                         .forced = slot_is_listed(&a->slots_forced, in->id),
                         .why = det_strdup("")};
        s.brand = det_strdup(in->brand ? in->brand : "");
        s.uuid = det_strdup(in->uuid ? in->uuid : "");
        for (size_t k = 0; k < old_n; k++)
            if (old[k].id == s.id) {
                s.holder = old[k].holder;
                s.off = s.off && old[k].off ? old[k].off : s.off;
                s.state = old[k].state;
                replace_text(&s.why, old[k].why);
            }
        vec_push(&a->slots, s);
    }
    if (a->slots.n)
        qsort(a->slots.v, a->slots.n, sizeof *a->slots.v, slot_order);
    kill_vanished(c, a, old, old_n);
    for (size_t k = 0; k < old_n; k++) {
        free(old[k].brand);
        free(old[k].uuid);
        free(old[k].why);
    }
    free(old);
}

void agent_update(struct core *c, struct agent *a, const struct core_hello *h)
{
    if (a->state == AGENT_ABSENT || !a->registered_us)
        a->registered_us = c->now_us;
    replace_text(&a->addr, h->addr);
    replace_text(&a->version, h->version);
    a->looks = h->looks;
    pool_join(a, pool_get(c, h->pool));
    update_slots(c, a, h);
    slots_on_hello(c, a, h);
    if (a->state != AGENT_UP)
        agent_goto(c, a, AGENT_UP);
    fit_refresh(a);
    a->pool->dirty = true;
}
