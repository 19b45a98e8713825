/*
 * Fair share (rest-api.md 5.4): slots are dealt to the groups (experiments) by progressive filling
 * in proportion to their weights; who holds more than its share is asked to give back, who holds
 * less starts.
 *
 * Demand counts what is pending too, also in a full pool, as long as it would fit with the
 * preemptible work gone. What is being released already counts neither as held nor as demand. A
 * group that cannot use its whole share (its next request is larger than what is left of it) is
 * capped to what it can use, the youngest first, and the rest is dealt again: so no slot idles that
 * a queued trial could use, and nobody holds a share that starts nothing.
 */
#include "scheduler.h"

#include "alloc.h"
#include "queue.h"
#include <math.h>

struct fair {
    struct core *c;
    struct pool *pool;
    VEC(struct exp *) groups;  /* by demand, then id */
    struct sched_list pending; /* with slots, that could fit */
    int64_t capacity;
};

static void add_group(struct fair *s, struct exp *e)
{
    if (e->mark == s->c->mark)
        return;
    e->mark = s->c->mark;
    e->held = e->releasing = e->pending = e->offer = 0;
    e->cap = INT64_MAX;
    vec_push(&s->groups, e);
}

static void collect_placed(struct fair *s)
{
    for (size_t i = 0; i < s->pool->placed.n; i++) {
        struct alloc *a = s->pool->placed.v[i];
        if (!a->exp || a->slots == 0)
            continue;
        add_group(s, a->exp);
        s->capacity += a->slots;
        if (alloc_is_ending(a))
            a->exp->releasing += a->slots;
        else
            a->exp->held += a->slots;
    }
}

/* Requests of one size fit or do not: each size is tried once. */
static void collect_pending(struct fair *s)
{
    struct fit idle;
    struct placement p = {0};
    VEC(int64_t) fitting = {0};
    VEC(int64_t) never = {0};
    fit_begin_idle(&idle, s->c, s->pool);
    for (size_t i = 0; i < s->pool->pending.n; i++) {
        struct alloc *a = s->pool->pending.v[i];
        bool yes = false, no = a->slots == 0 || !a->exp;
        for (size_t k = 0; k < fitting.n && !no && !yes; k++)
            yes = fitting.v[k] == a->slots;
        for (size_t k = 0; k < never.n && !no && !yes; k++)
            no = never.v[k] == a->slots;
        if (!yes && !no && fit_place(&idle, a->slots, a->hash, &p)) {
            vec_push(&fitting, a->slots);
            yes = true;
        } else if (!yes && !no) {
            vec_push(&never, a->slots);
        }
        if (!yes)
            continue;
        add_group(s, a->exp);
        a->exp->pending += a->slots;
        vec_push(&s->pending.list, a);
    }
    vec_free(&p.nodes);
    vec_free(&fitting);
    vec_free(&never);
}

static int by_demand(const void *x, const void *y)
{
    const struct exp *a = *(struct exp *const *)x, *b = *(struct exp *const *)y;
    if (a->demand != b->demand)
        return a->demand < b->demand ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static int64_t wanted(const struct exp *e)
{
    return e->cap < e->demand ? e->cap : e->demand;
}

/* One round of dealing; returns what is left. */
static int64_t deal(struct fair *s, int64_t left)
{
    double weights = 0;
    int64_t start = left;
    for (size_t i = 0; i < s->groups.n; i++)
        if (s->groups.v[i]->offer < wanted(s->groups.v[i]))
            weights += s->groups.v[i]->weight;
    if (weights <= 0)
        return 0;
    for (size_t i = 0; i < s->groups.n && left > 0; i++) {
        struct exp *e = s->groups.v[i];
        int64_t missing = wanted(e) - e->offer;
        int64_t share = (int64_t)floor((double)start * e->weight / weights);
        share = share < 1 ? 1 : share;
        share = share < left ? share : left;
        share = share < missing ? share : missing;
        if (share <= 0)
            continue;
        e->offer += share;
        left -= share;
    }
    return left;
}

static void fill(struct fair *s)
{
    for (size_t i = 0; i < s->groups.n; i++)
        s->groups.v[i]->offer = 0;
    for (int64_t left = s->capacity; left > 0;)
        left = deal(s, left);
}

/* How much of its offer the group can use: what it keeps and the pending requests that go into it.
 * All requests of an experiment are of one size. */
static int64_t usable(const struct exp *e)
{
    int64_t size = e->conf.slots, more = e->offer - e->held;
    if (more <= 0 || size <= 0)
        return e->offer;
    more -= more % size;
    return e->held + (more < e->pending ? more : e->pending);
}

/* The youngest group that cannot use its offer; NULL: all can. */
static struct exp *find_waster(const struct fair *s, int64_t *ret_use)
{
    struct exp *young = NULL;
    for (size_t i = 0; i < s->groups.n; i++) {
        struct exp *e = s->groups.v[i];
        int64_t use = e->cap == e->offer ? e->offer : usable(e);
        if (use >= e->offer || (young && young->id > e->id))
            continue;
        young = e;
        *ret_use = use;
    }
    return young;
}

static void release(struct fair *s, struct exp *e)
{
    for (size_t i = 0; i < s->pool->placed.n && e->held > e->offer; i++) {
        struct alloc *a = s->pool->placed.v[i];
        if (a->exp != e || a->slots == 0 || alloc_is_ending(a) || !alloc_is_preemptible(a))
            continue;
        e->held -= a->slots;
        alloc_preempt(s->c, a, KILL_SCHEDULER, "its slots are needed for the fair share of others");
    }
}

static void start(struct fair *s)
{
    struct fit f;
    fit_begin(&f, s->c, s->pool);
    for (size_t i = 0; i < s->pending.list.n && f.free_total > 0; i++) {
        struct alloc *a = s->pending.list.v[i];
        if (a->exp->held + a->slots <= a->exp->offer && sched_start(s->c, &f, a))
            a->exp->held += a->slots;
    }
}

void sched_fair(struct core *c, struct pool *pool)
{
    struct fair s = {.c = c, .pool = pool};
    struct fit now;
    c->mark++;
    fit_begin(&now, c, pool);
    s.capacity = now.free_total;
    collect_placed(&s);
    collect_pending(&s);
    for (size_t i = 0; i < s.groups.n; i++) {
        struct exp *e = s.groups.v[i];
        e->demand = e->held + e->pending;
        if (e->max_slots >= 0 && e->demand > e->max_slots)
            e->demand = e->max_slots;
    }
    if (s.groups.n) {
        qsort(s.groups.v, s.groups.n, sizeof *s.groups.v, by_demand);
        fill(&s);
        int64_t use = 0;
        for (struct exp *e; (e = find_waster(&s, &use));) {
            e->cap = use;
            fill(&s);
        }
        for (size_t i = 0; i < s.groups.n; i++)
            if (s.groups.v[i]->held > s.groups.v[i]->offer)
                release(&s, s.groups.v[i]);
        start(&s);
    }
    vec_free(&s.groups);
    vec_free(&s.pending.list);
}
