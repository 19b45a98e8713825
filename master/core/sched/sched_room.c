#include "sched_room.h"

#include "agent.h"

static struct fit *index_of(const struct room *r)
{
    return &r->s->pool->fit;
}

static bool is_reserved(const struct sched *s, const struct agent *a)
{
    for (size_t i = 0; i < s->reserved.n; i++)
        if (s->reserved.v[i] == a)
            return true;
    return false;
}

/* Its slots on agents that take work, but for what the guard keeps, are coming. */
static void add_coming(struct room *r, const struct alloc *al)
{
    for (size_t i = 0; i < al->containers.n; i++) {
        struct agent *a = al->containers.v[i]->agent;
        if (!a || !a->listed || a->counted_in != r->s->pool || is_reserved(r->s, a))
            continue;
        if (!a->is_coming)
            vec_push(&r->coming, a);
        a->is_coming = true;
        a->coming += agent_usable_slots(al->containers.v[i]);
    }
}

/* What is released already is beyond nobody's offer. */
static void release_excess(struct room *r, struct alloc *a)
{
    struct group *g = a->exp->group;
    int64_t was = g->excess > 0 ? g->excess : 0;
    a->is_asked = true;
    g->excess -= a->slots;
    r->excess += (g->excess > 0 ? g->excess : 0) - was;
    add_coming(r, a);
}

void room_init(struct room *r, struct sched *s, int64_t excess)
{
    *r = (struct room){.s = s, .excess = excess};
    for (size_t i = 0; i < s->releases.n; i++)
        release_excess(r, s->releases.v[i].alloc);
    for (size_t i = 0; i < s->ending.n; i++)
        for (struct alloc *a = s->ending.v[i]->ending.first; a && a->slots; a = a->next)
            add_coming(r, a);
}

void room_finish(struct room *r)
{
    for (size_t i = 0; i < r->coming.n; i++) {
        r->coming.v[i]->is_coming = false;
        r->coming.v[i]->coming = 0;
    }
    for (size_t i = 0; i < r->s->releases.n; i++)
        r->s->releases.v[i].alloc->is_asked = false;
    vec_free(&r->coming);
    vec_free(&r->where);
    vec_free(&r->asked);
    vec_free(&r->promised);
}

void room_open(struct room *r)
{
    r->mark = fit_mark(index_of(r));
    r->promised.n = 0;
    for (size_t i = 0; i < r->coming.n; i++)
        if (r->coming.v[i]->coming)
            fit_shift(index_of(r), r->coming.v[i], r->coming.v[i]->coming);
}

/* What is being freed goes first: what is free already can be of use to others now. */
void room_close(struct room *r)
{
    fit_undo(index_of(r), r->mark);
    for (size_t i = 0; i < r->promised.n; i++) {
        struct placement_node n = r->promised.v[i];
        int late = n.slots < n.agent->coming ? n.slots : n.agent->coming;
        n.agent->coming -= late;
        if (n.slots == late)
            continue;
        vec_push(&r->s->blocks, (struct sched_block){n.agent, n.slots - late});
        fit_shift(index_of(r), n.agent, late - n.slots);
    }
}

/* ---- Who could stop ---- */

static bool is_kept_from(const struct room *r, const struct alloc *a)
{
    for (size_t i = 0; i < a->containers.n; i++)
        if (is_reserved(r->s, a->containers.v[i]->agent))
            return true;
    return false;
}

/* An agent that changed pools still runs what belongs to the other one. */
static bool may_ask(const struct room *r, const struct alloc *a)
{
    return a->queued_as == QUEUE_RUNNING && a->kind == KIND_TRIAL && a->slots &&
           a->exp->group->pool == r->s->pool && a->shield_ms == INT64_MAX && !a->is_asked &&
           a->exp->group->excess >= a->slots && !is_kept_from(r, a);
}

static void ask_alloc(struct room *r, struct alloc *a)
{
    a->is_asked = true;
    a->exp->group->excess -= a->slots;
    r->excess -= a->slots;
    vec_push(&r->asked, a);
}

static void unask_alloc(struct room *r, struct alloc *a)
{
    a->is_asked = false;
    a->exp->group->excess += a->slots;
    r->excess += a->slots;
}

static void unask_from(struct room *r, size_t n)
{
    while (r->asked.n > n)
        unask_alloc(r, r->asked.v[--r->asked.n]);
}

/* How the agent could serve requests of r->size by having work stopped; missing 0: it cannot. */
static struct room_agent look_at(struct room *r, struct agent *a)
{
    size_t n = r->asked.n;
    int64_t could = a->free, need = a->whole < r->size ? a->whole : r->size;
    struct room_agent ret = {.agent = a, .is_alone = a->whole >= r->size, .oldest = UINT64_MAX};
    for (size_t i = 0; i < a->containers.n && a->free < need; i++) {
        struct alloc *al = a->containers.v[i]->alloc;
        if (!may_ask(r, al))
            continue;
        ask_alloc(r, al);
        could += agent_usable_slots(a->containers.v[i]);
        ret.oldest = al->seq < ret.oldest ? al->seq : ret.oldest;
    }
    unask_from(r, n);
    ret.missing = could >= need ? need - a->free : 0;
    return ret;
}

static int by_use(const void *x, const void *y)
{
    const struct room_agent *a = x, *b = y;
    if (a->is_alone != b->is_alone)
        return a->is_alone ? -1 : 1;
    if (a->missing != b->missing)
        return a->missing < b->missing ? -1 : 1;
    if (a->oldest != b->oldest)
        return a->oldest < b->oldest ? -1 : 1;
    return strcmp(a->agent->id, b->agent->id);
}

static void list_agents(struct room *r, int64_t size)
{
    const struct pool *p = r->s->pool;
    r->size = size;
    r->where.n = r->at = 0;
    for (size_t i = 0; i < p->agents.n; i++) {
        struct agent *a = p->agents.v[i];
        if (!a->listed || a->counted_in != p || is_reserved(r->s, a))
            continue;
        struct room_agent in = look_at(r, a);
        if (in.missing > 0)
            vec_push(&r->where, in);
    }
    if (r->where.n)
        qsort(r->where.v, r->where.n, sizeof *r->where.v, by_use);
}

/* ---- For one request ---- */

/* One after the other, as if it stopped; true: al fits. */
static bool try_agent(struct room *r, struct agent *a, const struct alloc *al)
{
    for (size_t i = 0; i < a->containers.n; i++) {
        struct alloc *k = a->containers.v[i]->alloc;
        if (!may_ask(r, k))
            continue;
        ask_alloc(r, k);
        fit_give(index_of(r), k);
        if (fit_place(index_of(r), al, &r->s->tmp))
            return true;
    }
    return false;
}

/* Of those tried, the ones that the placement needs are released; on a single agent none that the
 * others spare. */
static void release_asked(struct room *r, size_t mark)
{
    const struct placement *p = &r->s->tmp;
    const struct placement_node *one = p->nodes.n == 1 ? &p->nodes.v[0] : NULL;
    int64_t spare = one ? one->agent->free - one->slots : 0;
    fit_undo(index_of(r), mark);
    for (size_t i = 0; i < r->asked.n; i++) {
        struct alloc *a = r->asked.v[i];
        bool is_there = fit_touches(a, p);
        if (!is_there || (one && a->slots <= spare)) {
            spare -= is_there ? a->slots : 0;
            unask_alloc(r, a);
            continue;
        }
        sched_release(r->s, a, "its slots are needed for the fair share of others");
        add_coming(r, a);
        fit_give(index_of(r), a);
    }
    r->asked.n = 0;
}

static bool make_room(struct room *r, const struct alloc *a)
{
    size_t mark = fit_mark(index_of(r));
    bool fits = false;
    if (fit_free(index_of(r)) + r->excess < a->slots)
        return false;
    if (r->size != a->slots)
        list_agents(r, a->slots);
    for (size_t i = r->at; i < r->where.n && !fits; i++)
        if (look_at(r, r->where.v[i].agent).missing > 0)
            fits = try_agent(r, r->where.v[i].agent, a);
        else if (i == r->at)
            r->at++;
    if (fits) {
        release_asked(r, mark);
    } else {
        unask_from(r, 0);
        fit_undo(index_of(r), mark);
    }
    return fits;
}

bool room_promise(struct room *r, const struct alloc *a)
{
    if (!fit_place(index_of(r), a, &r->s->tmp) && !make_room(r, a))
        return false;
    fit_take(index_of(r), r->s->tmp.nodes.v, r->s->tmp.nodes.n);
    for (size_t i = 0; i < r->s->tmp.nodes.n; i++)
        vec_push(&r->promised, r->s->tmp.nodes.v[i]);
    return true;
}
