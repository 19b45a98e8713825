#include "scheduler.h"

#include "alloc.h"
#include "avoid.h"
#include "quota.h"

bool sched_start(struct sched *s, struct alloc *a)
{
    if (!fit_place(&s->pool->fit, a, &s->tmp))
        return false;
    struct sched_start st = {
        .alloc = a, .first = s->nodes.n, .n = s->tmp.nodes.n, .is_backfill = s->is_backfill};
    fit_take(&s->pool->fit, s->tmp.nodes.v, s->tmp.nodes.n);
    for (size_t i = 0; i < s->tmp.nodes.n; i++)
        vec_push(&s->nodes, s->tmp.nodes.v[i]);
    vec_push(&s->starts, st);
    return true;
}

bool sched_is_choosy(const struct alloc *a)
{
    return (a->trial && avoid_any(a->trial, AVOID_ANY)) || (a->kind == KIND_GC && a->store);
}

static bool has_room_in_cap(const struct group *g, int64_t taking)
{
    int64_t max = g->exp->max_slots;
    return max < 0 || g->held + g->releasing + taking + g->size <= max;
}

bool sched_may(const struct sched *s, const struct group *g)
{
    if (!g->exp || g->size == 0)
        return true;
    return has_room_in_cap(g, g->taking) && quota_left(s->c, g->exp->user, g->pool) >= g->size;
}

enum core_wait sched_wait(const struct core *c, const struct group *g)
{
    bool is_dealt = g->exp && g->size > 0;
    if (!g->could)
        return g->has_store ? CORE_WAIT_AGENTS : CORE_WAIT_STORE;
    if (is_dealt && !has_room_in_cap(g, 0))
        return CORE_WAIT_MAX_SLOTS;
    if (is_dealt && quota_left(c, g->exp->user, g->pool) < g->size)
        return CORE_WAIT_QUOTA;
    if (is_dealt && g->pool->o.scheduler == CORE_FAIR_SHARE && g->held + g->size > g->offer)
        return CORE_WAIT_SHARE;
    return CORE_WAIT_ROOM;
}

void sched_count(struct group *g)
{
    g->taking += g->size;
    if (g->exp)
        g->exp->user->taking += g->size;
}

bool sched_start_next(struct sched *s, struct group *g)
{
    while (g->next && sched_may(s, g)) {
        struct alloc *a = g->next;
        bool started = sched_start(s, a);
        if (!started && !sched_is_choosy(a))
            return false;
        g->next = a->next;
        if (started) {
            sched_count(g);
            return true;
        }
    }
    g->next = NULL;
    return false;
}

void sched_release(struct sched *s, struct alloc *a, const char *why)
{
    for (size_t i = 0; i < s->releases_guard; i++)
        if (s->releases.v[i].alloc == a)
            return;
    vec_push(&s->releases, (struct sched_release){a, why});
}

/* ---- Turns: a binary heap by (key, place of the experiment) ---- */

static bool is_first(const struct turn *a, const struct turn *b)
{
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

void turns_push(struct turns *t, int64_t key, struct group *g)
{
    struct turn in = {key, g->exp ? g->exp->id : 0, g};
    vec_push(&t->heap, in);
    size_t i = t->heap.n - 1;
    for (; i > 0 && is_first(&in, &t->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap.v[i] = t->heap.v[(i - 1) / 2];
    t->heap.v[i] = in;
}

struct group *turns_pop(struct turns *t)
{
    if (t->heap.n == 0)
        return NULL;
    struct group *first = t->heap.v[0].g;
    struct turn last = t->heap.v[--t->heap.n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < t->heap.n; i = k) {
        if (k + 1 < t->heap.n && is_first(&t->heap.v[k + 1], &t->heap.v[k]))
            k++;
        if (!is_first(&t->heap.v[k], &last))
            break;
        t->heap.v[i] = t->heap.v[k];
    }
    if (t->heap.n)
        t->heap.v[i] = last;
    return first;
}

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

/* They lie wherever their experiments do: the memory is asked for before they are looked at. */
static void prefetch(const struct pool *p, size_t i)
{
    const struct group *g = i < p->groups.n ? p->groups.v[i] : NULL;
    const char *at = g ? (const char *)container_of(g, struct exp, group) : NULL;
    for (int k = 0; at && k < LINES; k++)
        __builtin_prefetch(at + k * LINE_BYTES);
}

/* The one look at all groups that every pass takes: what it needs of few of them is listed.
 * Neighbours mostly are of one size and store: their sums are made once. Whose store too few agents
 * have is passed over: no room is made or kept for it. */
static void look_at_all(struct sched *s)
{
    const struct pool *p = s->pool;
    bool is_fair = p->o.scheduler == CORE_FAIR_SHARE, fits = false, has_store = false;
    const struct store *store = NULL;
    int64_t size = -1;
    vec_reserve(&s->waiting, p->groups.n);
    vec_reserve(&s->shares.list, is_fair ? p->groups.n : 0);
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        const struct store *own = g->exp ? g->exp->store : NULL;
        prefetch(p, i + AHEAD);
        if (g->size != size || own != store) {
            fits = fit_could_size(&p->fit, g->size, NULL);
            has_store = !own || !fits || fit_could_size(&p->fit, g->size, own);
        }
        size = g->size;
        store = own;
        g->has_store = has_store;
        g->next = has_store ? g->pending.first : NULL;
        g->taking = 0;
        g->could = g->next && fits;
        s->held += g->held;
        s->backfilled += g->backfilled;
        list_group(s, g);
        if (is_fair && g->size > 0)
            sched_want(s, g, i);
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
