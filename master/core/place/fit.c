#include "fit.h"

#include "agent.h"
#include "avoid.h"
#include "fit_index.h"
#include "store.h"
#include <assert.h>

void fit_init(struct fit *f, const struct core *c, const struct core_pool_options *o)
{
    *f = (struct fit){.c = c, .o = o};
}

void fit_finish(struct fit *f)
{
    fit_index_finish(&f->slots);
    fit_index_finish(&f->aux);
    vec_free(&f->usable.sizes);
    vec_free(&f->all.sizes);
    vec_free(&f->journal);
}

int64_t fit_free(const struct fit *f)
{
    return f->free_total;
}

/* ---- The index ---- */

static void list_agent(struct fit *f, struct agent *a, int free, int aux_free)
{
    a->free = free;
    a->aux_free = aux_free;
    fit_index_add(&f->slots, free, a->whole, a);
    fit_index_add(&f->aux, aux_free, 0, a);
    f->free_total += free;
}

static void unlist_agent(struct fit *f, struct agent *a)
{
    fit_index_del(&f->slots, a->free, a->whole, a);
    fit_index_del(&f->aux, a->aux_free, 0, a);
    f->free_total -= a->free;
}

/* Moves a listed agent to other counts. */
static void shift_agent(struct fit *f, struct agent *a, int free, int aux_free)
{
    if (free != a->free) {
        fit_index_del(&f->slots, a->free, a->whole, a);
        fit_index_add(&f->slots, free, a->whole, a);
    }
    if (aux_free != a->aux_free) {
        fit_index_del(&f->aux, a->aux_free, 0, a);
        fit_index_add(&f->aux, aux_free, 0, a);
    }
    f->free_total += free - a->free;
    a->free = free;
    a->aux_free = aux_free;
}

static void leave_pool(struct agent *a)
{
    struct fit *f = &a->counted_in->fit;
    if (a->listed) {
        unlist_agent(f, a);
        fit_tally_add(&f->usable, a->whole, -1);
    }
    fit_tally_add(&f->all, a->total, -1);
    a->listed = false;
    a->counted_in = NULL;
}

static void join_pool(struct agent *a, const struct agent_slots *n)
{
    struct fit *f = &a->pool->fit;
    a->counted_in = a->pool;
    a->total = (int)n->total;
    a->whole = (int)(n->total - n->off);
    fit_tally_add(&f->all, a->total, 1);
    if (!agent_is_usable(a))
        return;
    a->listed = true;
    fit_tally_add(&f->usable, a->whole, 1);
    list_agent(f, a, (int)n->free, f->o->max_aux_containers - agent_aux(a));
}

void fit_refresh(struct agent *a)
{
    if (a->counted_in && a->counted_in->fit.is_frozen)
        return;
    struct agent_slots n = agent_slots(a);
    int whole = (int)(n.total - n.off);
    bool same = a->pool && a->counted_in == a->pool && a->listed == agent_is_usable(a) &&
                a->total == (int)n.total && (!a->listed || a->whole == whole);
    assert(!a->counted_in || a->counted_in->fit.journal.n == 0);
    if (same && a->listed) {
        shift_agent(&a->pool->fit, a, (int)n.free, a->pool->o.max_aux_containers - agent_aux(a));
    } else if (!same) {
        if (a->counted_in)
            leave_pool(a);
        if (a->pool)
            join_pool(a, &n);
    }
}

/* ---- Placing ---- */

static bool is_excluded(const struct alloc *al, const struct agent *a)
{
    return (al->trial && avoid_is(al->trial, a->id, AVOID_ANY)) ||
           !store_is_on(store_of_alloc(al), a);
}

/* Entries in the order of a walk. */
static struct agent *agent_at_step(const struct fit_bucket *b, size_t start, size_t step)
{
    return b->entries.v[(start + b->entries.n - step) % b->entries.n].agent;
}

static struct agent *first_of(const struct fit_bucket *b, const struct alloc *al)
{
    size_t start = fit_bucket_start(b, al->hash);
    for (size_t i = 0; i < b->entries.n; i++)
        if (!is_excluded(al, agent_at_step(b, start, i)))
            return agent_at_step(b, start, i);
    return NULL;
}

/* Higher is better. */
static double score_bucket(const struct fit *f, const struct fit_bucket *b, bool aux)
{
    int total = aux ? f->o->max_aux_containers : b->whole;
    if (f->o->fitting == CORE_FIT_BEST)
        return 1.0 / (1.0 + b->free);
    return total > 0 ? (double)b->free / total : 0;
}

static bool is_nearer(const struct agent *a, const struct agent *b, uint64_t hash)
{
    uint64_t da = hash - a->hash, db = hash - b->hash;
    return da != db ? da < db : strcmp(a->id, b->id) < 0;
}

static bool place_one(const struct fit *f, const struct alloc *al, struct placement *ret)
{
    bool aux = al->slots == 0;
    const struct fit_index *x = aux ? &f->aux : &f->slots;
    struct agent *best = NULL;
    double high = 0;
    for (size_t i = fit_index_from(x, aux ? 1 : al->slots); i < x->buckets.n; i++) {
        const struct fit_bucket *b = &x->buckets.v[i];
        double s = score_bucket(f, b, aux);
        struct agent *a = best && s < high ? NULL : first_of(b, al);
        if (a && (!best || s > high || is_nearer(a, best, al->hash))) {
            best = a;
            high = s;
        }
    }
    if (best)
        vec_push(&ret->nodes, (struct placement_node){best, (int)al->slots});
    return best;
}

/* Idle agents of m slots that the request may have. */
static int64_t idle_count(const struct fit_bucket *b, const struct alloc *al)
{
    if (b->free == 0 || b->free != b->whole)
        return 0;
    int64_t n = (int64_t)b->entries.n;
    if (!store_of_alloc(al) && (!al->trial || !avoid_any(al->trial, AVOID_ANY)))
        return n;
    for (size_t i = 0; i < b->entries.n; i++)
        n -= is_excluded(al, b->entries.v[i].agent);
    return n;
}

/* The n best agents of a bucket, whole. */
static void take_group(const struct fit_bucket *b, int64_t n, const struct alloc *al,
                       struct placement *ret)
{
    size_t start = fit_bucket_start(b, al->hash);
    for (size_t i = 0; n > 0; i++) {
        struct agent *a = agent_at_step(b, start, i);
        if (is_excluded(al, a))
            continue;
        vec_push(&ret->nodes, (struct placement_node){a, b->free});
        n--;
    }
}

static bool place_mixed(const struct fit *f, const struct alloc *al, struct placement *ret)
{
    int64_t rest = al->slots;
    for (size_t i = f->slots.buckets.n; i-- > 0 && rest > 0;) {
        const struct fit_bucket *b = &f->slots.buckets.v[i];
        int64_t n = idle_count(b, al);
        if (n == 0)
            continue;
        int64_t want = rest / b->free < n ? rest / b->free : n;
        take_group(b, want, al, ret);
        rest -= want * b->free;
    }
    return rest == 0;
}

static bool place_gang(const struct fit *f, const struct alloc *al, struct placement *ret)
{
    for (size_t i = f->slots.buckets.n; i-- > 0;) {
        const struct fit_bucket *b = &f->slots.buckets.v[i];
        if (idle_count(b, al) * b->free < al->slots || al->slots % b->free)
            continue;
        take_group(b, al->slots / b->free, al, ret);
        return true;
    }
    return f->o->allow_heterogeneous_fits && place_mixed(f, al, ret);
}

bool fit_place(const struct fit *f, const struct alloc *a, struct placement *ret)
{
    ret->nodes.n = 0;
    if (a->slots > f->free_total)
        return false;
    if (place_one(f, a, ret) || (a->slots > 1 && place_gang(f, a, ret)))
        return true;
    ret->nodes.n = 0;
    return false;
}

bool fit_touches(const struct alloc *a, const struct placement *p)
{
    for (size_t i = 0; i < a->containers.n; i++)
        for (size_t k = 0; k < p->nodes.n; k++)
            if (a->containers.v[i]->agent == p->nodes.v[k].agent)
                return true;
    return false;
}

/* ---- Whether at all: arithmetic on the counts of agents by size ---- */

static bool is_counted(const struct fit *f, const struct fit_tally *t, const struct agent *a,
                       int size)
{
    if (!a || !a->counted_in || &a->counted_in->fit != f)
        return false;
    return t == &f->all ? a->total == size : a->listed && a->whole == size;
}

/* Whom a request may have: not what the trial avoids because of these sources, nor where its store
 * is not (NULL: any). */
struct wish {
    const struct trial *trial;
    unsigned sources;
    const struct store *store;
};

/* An agent that is avoided for two reasons is avoided once. */
static bool is_first_of(const struct trial *t, size_t k, unsigned sources)
{
    const struct avoid *v = t->avoids.v;
    for (size_t i = 0; i < k; i++)
        if (v[i].is_out && (BIT(v[i].source) & sources) && strcmp(v[i].agent, v[k].agent) == 0)
            return false;
    return v[k].is_out && (BIT(v[k].source) & sources);
}

/* How many agents of t's i-th size a run may have. */
static int64_t count_of(const struct fit *f, const struct fit_tally *t, size_t i,
                        const struct wish *w)
{
    const struct pool *p = container_of((struct fit *)f, struct pool, fit);
    int64_t n = t->sizes.v[i].n;
    for (size_t k = 0; w->trial && k < w->trial->avoids.n; k++)
        n -= is_counted(f, t, agent_find(f->c, w->trial->avoids.v[k].agent), t->sizes.v[i].size) &&
             is_first_of(w->trial, k, w->sources);
    for (size_t k = 0; w->store && k < p->agents.n; k++)
        n -= !store_is_on(w->store, p->agents.v[k]) &&
             !(w->trial && avoid_is(w->trial, p->agents.v[k]->id, w->sources)) &&
             is_counted(f, t, p->agents.v[k], t->sizes.v[i].size);
    return n;
}

static bool sizes_fit(const struct fit *f, const struct fit_tally *t, int64_t slots,
                      const struct wish *w)
{
    int64_t rest = slots;
    for (size_t i = t->sizes.n; i-- > 0;) {
        int64_t m = t->sizes.v[i].size, n = count_of(f, t, i, w);
        if (n > 0 && (m >= slots || (m > 0 && n * m >= slots && slots % m == 0)))
            return true;
        if (m > 0)
            rest -= m * (rest / m < n ? rest / m : n);
    }
    return slots > 0 && rest == 0 && f->o->allow_heterogeneous_fits;
}

bool fit_could(const struct fit *f, const struct alloc *a)
{
    return sizes_fit(f, &f->usable, a->slots,
                     &(struct wish){a->trial, AVOID_ANY, store_of_alloc(a)});
}

bool fit_could_size(const struct fit *f, int64_t slots, const struct store *s)
{
    return sizes_fit(f, &f->usable, slots, &(struct wish){.store = s});
}

bool fit_ever(const struct fit *f, int64_t slots)
{
    return sizes_fit(f, &f->all, slots, &(struct wish){0});
}

bool fit_ever_for(const struct fit *f, int64_t slots, const struct trial *t, unsigned sources)
{
    return sizes_fit(f, &f->all, slots, &(struct wish){.trial = t, .sources = sources});
}

/* ---- Trying ---- */

static void try_shift(struct fit *f, struct agent *a, int free, int aux_free)
{
    vec_push(&f->journal, (struct fit_change){a, a->free, a->aux_free});
    shift_agent(f, a, free, aux_free);
}

void fit_take(struct fit *f, const struct placement_node *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        try_shift(f, nodes[i].agent, nodes[i].agent->free - nodes[i].slots,
                  nodes[i].agent->aux_free - (nodes[i].slots == 0));
}

void fit_give(struct fit *f, const struct alloc *al)
{
    for (size_t i = 0; i < al->containers.n; i++) {
        const struct container *k = al->containers.v[i];
        if (k->agent && k->agent->listed && &k->agent->counted_in->fit == f)
            try_shift(f, k->agent, k->agent->free + agent_usable_slots(k),
                      k->agent->aux_free + (k->slots.n == 0));
    }
}

void fit_shift(struct fit *f, struct agent *a, int slots)
{
    try_shift(f, a, a->free + slots, a->aux_free);
}

size_t fit_mark(const struct fit *f)
{
    return f->journal.n;
}

void fit_undo(struct fit *f, size_t mark)
{
    while (f->journal.n > mark) {
        struct fit_change *u = &f->journal.v[--f->journal.n];
        shift_agent(f, u->agent, u->free, u->aux_free);
    }
}

void fit_keep(struct fit *f)
{
    f->journal.n = 0;
    f->is_frozen = true;
}

void fit_thaw(struct fit *f)
{
    f->is_frozen = false;
}
