#include "scheduler.h"

#include "alloc.h"
#include "avoid.h"
#include "quota.h"

/* ---- Turns: a binary heap by (key, place of the experiment) ---- */

/* Requests without slots, in order of request, wherever they fit. */
static void start_zero_slot(struct sched *s)
{
    struct turns t = {0};
    for (size_t i = 0; i < s->aux.n; i++)
        turns_push(&t, (int64_t)s->aux.v[i]->next->seq, s->aux.v[i]);
    for (struct group *g; (g = turns_pop(&t));)
        if (sched_start_next(s, g) && g->next)
            turns_push(&t, (int64_t)g->next->seq, g);
    vec_free(&t.heap);
}

static void list_group(struct sched *s, struct group *g)
{
    if (g->next && g->size > 0)
        vec_push(&s->waiting,
                 (struct waiting){g, g->running.n || g->ending.n ? INT64_MAX : g->waits_ms});
    else if (g->next)
        vec_push(&s->aux, g);
    if (g->ending.n)
        vec_push(&s->ending, g);
}

enum { AHEAD = 8, LINE_BYTES = 64, LINES = 4 }; /* of groups; of the processor's cache */

/* The memory is asked for before it is looked at. */
static void prefetch_group(const struct pool *p, size_t i)
{
    const char *at = i < p->groups.n ? (const char *)p->groups.v[i] : NULL;
    for (int k = 0; at && k < LINES; k++)
        __builtin_prefetch(at + k * LINE_BYTES);
}

/* Mostly all is as the last pass left it: what is not written need not be carried back. */
static void clear_scratch(struct group *g, bool fits, bool has_store)
{
    struct alloc *next = has_store ? g->pending.first : NULL;
    bool could = next && fits;
    if (g->next != next)
        g->next = next;
    if (g->taking)
        g->taking = 0;
    if (g->could != could || g->has_store != has_store) {
        g->could = could;
        g->has_store = has_store;
    }
}

/* The one look at all groups that every pass takes: what it needs of few of them is listed.
 * Neighbours mostly are of one size and store: their sums are made once. Whose store too few agents
 * have is passed over: no room is made or kept for it. */
static void look_at_all(struct sched *s)
{
    const struct pool *p = s->pool;
    bool fits = false, has_store = false;
    const struct store *store = NULL;
    int64_t size = -1;
    vec_reserve(&s->waiting, p->groups.n);
    vec_reserve(&s->shares.list, p->o.scheduler == CORE_FAIR_SHARE ? p->groups.n : 0);
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        const struct store *own = g->store;
        prefetch_group(p, i + AHEAD);
        if (g->size != size || own != store) {
            fits = fit_could_size(&p->fit, g->size, NULL);
            has_store = !own || !fits || fit_could_size(&p->fit, g->size, own);
        }
        size = g->size;
        store = own;
        clear_scratch(g, fits, has_store);
        s->held += g->held;
        s->backfilled += g->backfilled;
        list_group(s, g);
        if (p->o.scheduler == CORE_FAIR_SHARE && g->size > 0)
            sched_want(s, g, i);
        else if (p->o.scheduler == CORE_PRIORITY && g->size > 0)
            sched_rank(s, g);
    }
}

static void run_policy(struct sched *s)
{
    start_zero_slot(s);
    if (s->pool->o.scheduler == CORE_FIFO) {
        sched_fifo(s);
        return;
    }
    sched_guard(s);
    if (s->pool->o.scheduler == CORE_ROUND_ROBIN)
        sched_round_robin(s);
    else
        sched_fair(s);
}

void sched_decide(struct sched *s, const struct core *c, struct pool *pool)
{
    *s = (struct sched){.c = c,
                        .pool = pool,
                        .now_ms = c->now_ms,
                        .free = fit_free(&pool->fit),
                        .wake_ms = INT64_MAX};
    look_at_all(s);
    if (pool->o.scheduler == CORE_PRIORITY)
        sched_priority(s);
    else
        run_policy(s);
    for (size_t i = 0; i < s->blocks.n; i++)
        fit_shift(&pool->fit, s->blocks.v[i].agent, s->blocks.v[i].slots);
}

void sched_finish(struct sched *s)
{
    quota_taken_back(s->c);
    vec_free(&s->waiting);
    vec_free(&s->aux);
    vec_free(&s->ending);
    vec_free(&s->shares.list);
    vec_free(&s->waits.list);
    vec_free(&s->runs.list);
    vec_free(&s->starts);
    vec_free(&s->nodes);
    vec_free(&s->releases);
    vec_free(&s->tmp.nodes);
    vec_free(&s->reserved);
    vec_free(&s->blocks);
}

static void start_all(struct core *c, const struct sched *s)
{
    for (size_t i = 0; i < s->starts.n; i++) {
        const struct sched_start *st = &s->starts.v[i];
        st->alloc->is_backfill = st->is_backfill;
        if (st->is_shielded)
            st->alloc->shield_ms = s->now_ms + s->pool->o.starvation_wait_ms;
        alloc_place(c, st->alloc, s->nodes.v + st->first, st->n);
    }
}

static void keep_guard(const struct sched *s)
{
    s->pool->guarded = s->guarded;
    s->pool->reserved.n = 0;
    for (size_t i = 0; i < s->reserved.n; i++)
        vec_push(&s->pool->reserved, s->reserved.v[i]);
}

void sched_run(struct core *c, struct pool *pool)
{
    struct sched s;
    pool->dirty = false;
    if (pool->groups.n == 0)
        return;
    sched_decide(&s, c, pool);
    fit_keep(&pool->fit);
    start_all(c, &s);
    fit_thaw(&pool->fit);
    for (size_t i = 0; i < s.releases.n; i++)
        alloc_preempt(c, s.releases.v[i].alloc, KILL_SCHEDULER, s.releases.v[i].why);
    keep_guard(&s);
    timers_set(&c->timers, &pool->timer, s.wake_ms);
    sched_finish(&s);
}
