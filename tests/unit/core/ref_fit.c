/* Placement by looking at every agent. */
#include "agent.h"
#include "sched_ref.h"

void ref_fit_begin(struct ref_fit *f, const struct core *c, struct pool *pool, enum ref_view view)
{
    *f = (struct ref_fit){.c = c, .pool = pool};
    for (size_t i = 0; i < pool->agents.n; i++) {
        struct agent *a = pool->agents.v[i];
        struct agent_slots n = agent_slots(a);
        bool usable = view == REF_EVER || agent_is_usable(a);
        struct ref_agent r = {.a = a, .whole = (int)(view == REF_EVER ? n.total : n.total - n.off)};
        r.free = !usable ? 0 : view == REF_NOW ? (int)n.free : r.whole;
        r.aux_free = usable ? pool->o.max_aux_containers : 0;
        if (usable && view == REF_NOW)
            r.aux_free -= agent_aux(a);
        f->free_total += r.free;
        vec_push(&f->agents, r);
    }
}

void ref_fit_free(struct ref_fit *f)
{
    vec_free(&f->agents);
}

static bool is_excluded(const struct alloc *al, const struct agent *a)
{
    for (size_t i = 0; al->trial && i < al->trial->avoids.n; i++)
        if (strcmp(al->trial->avoids.v[i].agent, a->id) == 0)
            return true;
    return false;
}

static double score(const struct ref_fit *f, const struct ref_agent *a, bool aux)
{
    int free_n = aux ? a->aux_free : a->free;
    int total = aux ? f->pool->o.max_aux_containers : a->whole;
    if (f->pool->o.fitting == CORE_FIT_BEST)
        return 1.0 / (1.0 + free_n);
    return total > 0 ? (double)free_n / total : 0;
}

static bool better(const struct ref_fit *f, const struct ref_agent *a, const struct ref_agent *b,
                   const struct alloc *al)
{
    double sa = score(f, a, al->slots == 0), sb = score(f, b, al->slots == 0);
    if (sa != sb)
        return sa > sb;
    uint64_t da = al->hash - a->a->hash, db = al->hash - b->a->hash;
    return da != db ? da < db : strcmp(a->a->id, b->a->id) < 0;
}

static void add(struct ref_start *p, struct agent *a, int slots)
{
    vec_push(&p->agents, a);
    vec_push(&p->slots, slots);
}

static bool place_one(struct ref_fit *f, const struct alloc *al, struct ref_start *ret)
{
    struct ref_agent *best = NULL;
    for (size_t i = 0; i < f->agents.n; i++) {
        struct ref_agent *a = &f->agents.v[i];
        if (is_excluded(al, a->a) || (al->slots ? a->free < al->slots : a->aux_free < 1))
            continue;
        if (!best || better(f, a, best, al))
            best = a;
    }
    if (best)
        add(ret, best->a, (int)al->slots);
    return best;
}

static bool is_idle(const struct ref_agent *a, const struct alloc *al)
{
    return a->free > 0 && a->free == a->whole && !is_excluded(al, a->a);
}

/* The largest slot count below `below` of idle agents, and how many have it. */
static int next_group(const struct ref_fit *f, const struct alloc *al, int below, int64_t *ret_n)
{
    int m = 0;
    *ret_n = 0;
    for (size_t i = 0; i < f->agents.n; i++) {
        const struct ref_agent *a = &f->agents.v[i];
        if (!is_idle(a, al) || a->free >= below || a->free < m)
            continue;
        *ret_n = a->free > m ? 1 : *ret_n + 1;
        m = a->free;
    }
    return m;
}

static bool is_taken(const struct ref_start *p, const struct agent *a)
{
    for (size_t i = 0; i < p->agents.n; i++)
        if (p->agents.v[i] == a)
            return true;
    return false;
}

static void take_group(struct ref_fit *f, int m, int64_t n, const struct alloc *al,
                       struct ref_start *ret)
{
    for (; n > 0; n--) {
        struct ref_agent *best = NULL;
        for (size_t i = 0; i < f->agents.n; i++) {
            struct ref_agent *a = &f->agents.v[i];
            if (is_idle(a, al) && a->free == m && !is_taken(ret, a->a) &&
                (!best || better(f, a, best, al)))
                best = a;
        }
        add(ret, best->a, m);
    }
}

static bool place_mixed(struct ref_fit *f, const struct alloc *al, struct ref_start *ret)
{
    int64_t n, rest = al->slots;
    for (int m = INT32_MAX; rest > 0 && (m = next_group(f, al, m, &n)) > 0;) {
        int64_t want = rest / m < n ? rest / m : n;
        take_group(f, m, want, al, ret);
        rest -= want * m;
    }
    return rest == 0;
}

static bool place_gang(struct ref_fit *f, const struct alloc *al, struct ref_start *ret)
{
    int64_t n;
    for (int m = INT32_MAX; (m = next_group(f, al, m, &n)) > 0;)
        if (n * m >= al->slots && al->slots % m == 0) {
            take_group(f, m, al->slots / m, al, ret);
            return true;
        }
    return f->pool->o.allow_heterogeneous_fits && place_mixed(f, al, ret);
}

bool ref_place(struct ref_fit *f, const struct alloc *al, struct ref_start *ret)
{
    ret->agents.n = ret->slots.n = 0;
    if (al->slots > f->free_total)
        return false;
    return place_one(f, al, ret) || (al->slots > 1 && place_gang(f, al, ret));
}

static struct ref_agent *find(struct ref_fit *f, const struct agent *a)
{
    for (size_t i = 0; i < f->agents.n; i++)
        if (f->agents.v[i].a == a)
            return &f->agents.v[i];
    return NULL;
}

void ref_take(struct ref_fit *f, const struct ref_start *p)
{
    for (size_t i = 0; i < p->agents.n; i++) {
        struct ref_agent *a = find(f, p->agents.v[i]);
        a->free -= p->slots.v[i];
        a->aux_free -= p->slots.v[i] == 0;
        f->free_total -= p->slots.v[i];
    }
}

void ref_give(struct ref_fit *f, const struct alloc *al)
{
    for (size_t i = 0; i < al->containers.n; i++) {
        const struct container *k = al->containers.v[i];
        struct ref_agent *a = k->agent ? find(f, k->agent) : NULL;
        if (!a || !agent_is_usable(a->a))
            continue;
        a->free += agent_usable_slots(k);
        a->aux_free += k->slots.n == 0;
        f->free_total += agent_usable_slots(k);
    }
}

bool ref_could(struct core *c, struct pool *pool, int64_t slots, bool ever)
{
    struct ref_fit f;
    struct ref_start p = {0};
    struct alloc a = {.slots = slots};
    ref_fit_begin(&f, c, pool, ever ? REF_EVER : REF_IDLE);
    bool fits = ref_place(&f, &a, &p);
    vec_free(&p.agents);
    vec_free(&p.slots);
    ref_fit_free(&f);
    return fits;
}
