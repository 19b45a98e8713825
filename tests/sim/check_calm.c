/* What must hold when the faults have ended: I8 and I3; and quotas at any time. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

enum { KILL_MAX_MS = 45000, OWNERS = 3 };

static bool some_end(const struct core *c)
{
    struct core_alloc_view a;
    for (size_t i = 0; core_alloc_at(c, i, &a); i++)
        if (a.preempt || a.state >= ALLOC_TERMINATING)
            return true;
    return false;
}

/* On a single agent: then it fits for sure. */
static bool fits_one(const struct core *c, const struct core_alloc_view *want)
{
    struct core_agent_view a;
    for (size_t i = 0; core_agent_at(c, i, &a); i++) {
        bool has_room = want->slots ? (int64_t)a.slots_free >= want->slots : a.containers < 100;
        if (strcmp(a.pool, want->pool) == 0 && a.connected && a.enabled && has_room)
            return true;
    }
    return false;
}

/* Slots placed of an experiment, of an owner; 0: of any. In a pool; NULL: in all. */
static int64_t held_by(const struct core *c, int64_t exp_id, int64_t owner, const char *pool)
{
    struct core_alloc_view a;
    int64_t n = 0;
    for (size_t i = 0; core_alloc_at(c, i, &a); i++)
        if (a.state != ALLOC_PENDING && (!exp_id || a.exp_id == exp_id) &&
            (!owner || a.owner_id == owner) && (!pool || strcmp(a.pool, pool) == 0))
            n += a.slots;
    return n;
}

/* The entry that counts for an owner, in a pool or (NULL) in all together; -1: none. */
static int64_t quota_of(const struct sim *m, int64_t owner, const char *pool)
{
    char name[40];
    int64_t most = -1;
    snprintf(name, sizeof name, "user-%lld", (long long)owner);
    for (size_t i = 0; i < m->o.quotas_n; i++) {
        const struct core_quota *q = &m->quotas[i];
        bool same = q->pool && pool ? strcmp(q->pool, pool) == 0 : !q->pool && !pool;
        bool own = strcmp(q->user, name) == 0;
        if (same && (own || (strcmp(q->user, "*") == 0 && most < 0)))
            most = q->slots;
    }
    return most;
}

static bool over_quota(const struct sim *m, const struct core *c, int64_t owner, const char *pool,
                       int64_t more)
{
    int64_t here = quota_of(m, owner, pool), all = quota_of(m, owner, NULL);
    return (here >= 0 && held_by(c, 0, owner, pool) + more > here) ||
           (all >= 0 && held_by(c, 0, owner, NULL) + more > all);
}

void check_quotas(struct sim *m, const struct core *c)
{
    struct core_pool_view p;
    for (int64_t owner = 1; m->o.quotas_n && owner <= OWNERS; owner++)
        for (size_t i = 0; core_pool_at(c, i, &p); i++)
            if (over_quota(m, c, owner, p.name, 0))
                sim_fail(m, "user-%lld holds more than his quota", (long long)owner);
}

static bool is_limited(const struct sim *m, const struct core *c, const struct core_alloc_view *a)
{
    struct core_exp_view e;
    if (a->slots == 0 || !core_exp_get(c, a->exp_id, &e))
        return false;
    return (e.max_slots >= 0 && held_by(c, a->exp_id, 0, NULL) + a->slots > e.max_slots) ||
           over_quota(m, c, a->owner_id, a->pool, a->slots);
}

static double place_of(struct sim *m, const struct core_alloc_view *a)
{
    return sim_store_exp(&m->store, a->exp_id)->r.queue_position;
}

/* Which of two requests with slots stands before the other; by the policy. */
static bool stands_before(struct sim *m, const struct core_pool_view *p,
                          const struct core_alloc_view *a, const struct core_alloc_view *b)
{
    if (p->o->scheduler == CORE_PRIORITY && a->priority != b->priority)
        return a->priority < b->priority;
    if (p->o->scheduler == CORE_PRIORITY && place_of(m, a) != place_of(m, b))
        return place_of(m, a) < place_of(m, b);
    return a->exp_id < b->exp_id; /* allocations come oldest first */
}

/* I8: the first that may start and fits idle slots is not left waiting; where the order decides
 * nothing, nobody is. While something is ending its room may be promised to another, and the guard
 * against starvation promises what is idle. */
static void check_starts(struct sim *m, const struct core *c, const struct core_pool_view *p)
{
    struct core_alloc_view a, head = {0};
    bool in_order = p->o->scheduler == CORE_PRIORITY || p->o->scheduler == CORE_FIFO;
    for (size_t i = 0; core_alloc_at(c, i, &a); i++) {
        if (a.state != ALLOC_PENDING || strcmp(a.pool, p->name) || is_limited(m, c, &a))
            continue;
        /* What is idle may be a host that cannot start it; after losses in a row a pause is
         * longer. */
        if (a.avoids || a.wait == CORE_WAIT_HOLD)
            continue;
        if (in_order && a.slots)
            head = !head.id || stands_before(m, p, &a, &head) ? a : head;
        else if (fits_one(c, &a))
            sim_fail(m, "I8: %s waits, and fits idle slots", a.id);
    }
    if (head.id && fits_one(c, &head))
        sim_fail(m, "I8: %s is first in line and waits (%d), and fits idle slots", head.id,
                 (int)head.wait);
}

/* I3: a kill that nothing resists has ended. */
static void check_kills(struct sim *m, struct sim_master *s)
{
    struct core_alloc_view a;
    for (size_t i = 0; core_alloc_at(s->core, i, &a); i++)
        if (a.state == ALLOC_TERMINATING && !map_get(m->ending, a.id))
            map_put(m->ending, a.id, (void *)(intptr_t)m->now_ms);
        else if (a.state == ALLOC_TERMINATING &&
                 m->now_ms - (intptr_t)map_get(m->ending, a.id) > KILL_MAX_MS)
            sim_fail(m, "I3: %s is still ending", a.id);
}

void check_calm(struct sim *m, struct sim_master *s)
{
    struct core_pool_view p;
    bool settled = !some_end(s->core);
    for (size_t i = 0; settled && core_pool_at(s->core, i, &p); i++)
        if (!p.o->starvation_wait_ms)
            check_starts(m, s->core, &p);
    check_kills(m, s);
}
