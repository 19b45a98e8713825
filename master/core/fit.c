#include "fit.h"

#include "agent.h"
#include <string.h>

static void count(struct fit *f, struct agent *a, int free, int aux)
{
    a->free = free;
    a->aux_free = aux;
    f->free_total += free;
    if (free > f->free_max)
        f->free_max = free;
}

void fit_begin(struct fit *f, const struct core *c, struct pool *pool)
{
    *f = (struct fit){.c = c, .pool = pool};
    for (size_t i = 0; i < pool->agents.n; i++) {
        struct agent *a = pool->agents.v[i];
        struct agent_slots n = agent_slots(a);
        a->whole = (int)(n.total - n.off);
        bool usable = agent_is_usable(a);
        count(f, a, usable ? (int)n.free : 0,
              usable ? c->o.max_aux_containers - agent_aux(a) : 0);
    }
}

static void begin_all(struct fit *f, const struct core *c, struct pool *pool, bool ever)
{
    *f = (struct fit){.c = c, .pool = pool};
    for (size_t i = 0; i < pool->agents.n; i++) {
        struct agent *a = pool->agents.v[i];
        struct agent_slots n = agent_slots(a);
        bool usable = ever || agent_is_usable(a);
        a->whole = ever ? (int)n.total : (int)(n.total - n.off);
        count(f, a, usable ? a->whole : 0, usable ? c->o.max_aux_containers : 0);
    }
}

void fit_begin_idle(struct fit *f, const struct core *c, struct pool *pool)
{
    begin_all(f, c, pool, false);
}

/* Higher is better. */
static double score(const struct fit *f, const struct agent *a, bool aux)
{
    int free = aux ? a->aux_free : a->free;
    int total = aux ? f->c->o.max_aux_containers : a->whole;
    if (f->c->o.fitting == CORE_FIT_BEST)
        return 1.0 / (1.0 + free);
    return total > 0 ? (double)free / total : 0;
}

static bool better(const struct fit *f, const struct agent *a, const struct agent *b, uint64_t hash,
                   bool aux)
{
    double sa = score(f, a, aux), sb = score(f, b, aux);
    if (sa != sb)
        return sa > sb;
    uint64_t da = hash - a->hash, db = hash - b->hash;
    return da != db ? da < db : strcmp(a->id, b->id) < 0;
}

static bool place_one(struct fit *f, int64_t slots, uint64_t hash, struct placement *ret)
{
    struct agent *best = NULL;
    for (size_t i = 0; i < f->pool->agents.n; i++) {
        struct agent *a = f->pool->agents.v[i];
        if (slots ? a->free < slots : a->aux_free < 1)
            continue;
        if (!best || better(f, a, best, hash, slots == 0))
            best = a;
    }
    if (best)
        vec_push(&ret->nodes, (struct placement_node){best, (int)slots});
    return best;
}

static bool is_idle(const struct agent *a)
{
    return a->free > 0 && a->free == a->whole;
}

/* The largest slot count below `below` of idle agents, and how many have it. */
static int next_group(const struct fit *f, int below, int64_t *ret_n)
{
    int m = 0;
    *ret_n = 0;
    for (size_t i = 0; i < f->pool->agents.n; i++) {
        const struct agent *a = f->pool->agents.v[i];
        if (!is_idle(a) || a->free >= below || a->free < m)
            continue;
        *ret_n = a->free > m ? 1 : *ret_n + 1;
        m = a->free;
    }
    return m;
}

static bool is_taken(const struct placement *p, const struct agent *a)
{
    for (size_t i = 0; i < p->nodes.n; i++)
        if (p->nodes.v[i].agent == a)
            return true;
    return false;
}

/* The n best idle agents of m slots, whole. */
static void take_group(struct fit *f, int m, int64_t n, uint64_t hash, struct placement *ret)
{
    for (; n > 0; n--) {
        struct agent *best = NULL;
        for (size_t i = 0; i < f->pool->agents.n; i++) {
            struct agent *a = f->pool->agents.v[i];
            if (!is_idle(a) || a->free != m || is_taken(ret, a))
                continue;
            if (!best || better(f, a, best, hash, false))
                best = a;
        }
        vec_push(&ret->nodes, (struct placement_node){best, m});
    }
}

static bool place_mixed(struct fit *f, int64_t slots, uint64_t hash, struct placement *ret)
{
    int64_t n;
    for (int m = INT32_MAX; slots > 0 && (m = next_group(f, m, &n)) > 0;) {
        int64_t want = slots / m < n ? slots / m : n;
        take_group(f, m, want, hash, ret);
        slots -= want * m;
    }
    return slots == 0;
}

static bool place_gang(struct fit *f, int64_t slots, uint64_t hash, struct placement *ret)
{
    int64_t n;
    for (int m = INT32_MAX; (m = next_group(f, m, &n)) > 0;)
        if (n * m >= slots && slots % m == 0) {
            take_group(f, m, slots / m, hash, ret);
            return true;
        }
    return f->c->o.allow_heterogeneous_fits && place_mixed(f, slots, hash, ret);
}

bool fit_place(struct fit *f, int64_t slots, uint64_t hash, struct placement *ret)
{
    ret->nodes.n = 0;
    if (slots > f->free_total)
        return false;
    if (slots <= f->free_max && place_one(f, slots, hash, ret))
        return true;
    if (slots > 1 && place_gang(f, slots, hash, ret))
        return true;
    ret->nodes.n = 0;
    return false;
}

static void refresh_max(struct fit *f)
{
    f->free_max = 0;
    for (size_t i = 0; i < f->pool->agents.n; i++)
        if (f->pool->agents.v[i]->free > f->free_max)
            f->free_max = f->pool->agents.v[i]->free;
}

void fit_take(struct fit *f, const struct placement *p)
{
    for (size_t i = 0; i < p->nodes.n; i++) {
        struct agent *a = p->nodes.v[i].agent;
        a->free -= p->nodes.v[i].slots;
        a->aux_free -= p->nodes.v[i].slots == 0;
        f->free_total -= p->nodes.v[i].slots;
    }
    refresh_max(f);
}

void fit_give(struct fit *f, const struct alloc *al)
{
    for (size_t i = 0; i < al->containers.n; i++) {
        const struct container *k = al->containers.v[i];
        if (!k->agent || !agent_is_usable(k->agent))
            continue;
        int n = agent_usable_slots(k);
        k->agent->free += n;
        k->agent->aux_free += k->slots.n == 0;
        f->free_total += n;
    }
    refresh_max(f);
}

bool fit_ever(const struct core *c, struct pool *pool, int64_t slots)
{
    struct fit f;
    begin_all(&f, c, pool, true);
    struct placement p = {0};
    bool fits = fit_place(&f, slots, 0, &p);
    vec_free(&p.nodes);
    return fits;
}
