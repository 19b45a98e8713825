/*
 * Fair share (docs/contract/placement.md 2): slots are dealt to the groups (experiments) by
 * progressive filling in proportion to their weights. Who holds less than its offer starts; who
 * holds more has borrowed it, and gives back what, and only what, a request within its own group's
 * offer then can use.
 *
 * Demand counts what is pending too, also in a full pool, as long as it would fit with the
 * preemptible work gone, and what was asked to stop but is going to run again. So the offers do not
 * follow what starts and stops, and nothing is started and stopped in turns: a start takes idle
 * slots, and each release lets a larger part of the offers be held, which only an event from
 * outside takes away.
 *
 * Larger requests go first: they find room only in few places, which small ones would break up.
 */
#include "scheduler.h"

#include "quota.h"
#include "sched_room.h"
#include "sched_share.h"
#include "trial.h"

static int64_t cap_demand(int64_t demand, int64_t max)
{
    return max >= 0 && demand > max ? max : demand;
}

/* Slots that are being freed, but will be asked for again. */
static int64_t count_returning(const struct group *g)
{
    int64_t slots = 0;
    for (const struct alloc *a = g->ending.first; a; a = a->next)
        slots += a->trial->state == TRIAL_ACTIVE && !trial_op_done(a->trial) ? a->slots : 0;
    return slots;
}

/* Containers end one by one, each with its slots. */
static int64_t count_freeing(const struct group *g)
{
    int64_t slots = 0;
    for (const struct alloc *a = g->ending.first; a; a = a->next)
        for (size_t i = 0; i < a->containers.n; i++)
            slots += a->containers.v[i]->agent ? (int64_t)a->containers.v[i]->slots.n : 0;
    return slots;
}

static int64_t count_demand(const struct group *g)
{
    int64_t pending = g->could ? (int64_t)g->pending.n * g->size : 0;
    return cap_demand(g->held + count_returning(g) + pending, g->max_slots);
}

void sched_want(struct sched *s, struct group *g, size_t at)
{
    if (g->running.n || g->ending.n || g->could)
        share_add(&s->shares, g, at, count_demand(g));
    else if (g->offer || g->excess)
        g->offer = g->excess = 0;
}

static int64_t capacity_of(const struct sched *s)
{
    int64_t slots = s->free + s->held;
    for (size_t i = 0; i < s->ending.n; i++)
        slots += count_freeing(s->ending.v[i]);
    return slots;
}

/* ---- Quotas ---- */

/* Those with a quota, by user. */
static int by_user(const void *x, const void *y)
{
    const struct share *a = *(struct share *const *)x, *b = *(struct share *const *)y;
    if (a->g->user != b->g->user)
        return a->g->user->id < b->g->user->id ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* What a user may hold is dealt among his experiments as the pool is among all. */
static void limit_user(struct share_groups *own, int64_t left)
{
    for (size_t i = 0; i < own->list.n; i++)
        left += own->list.v[i].g->held + own->list.v[i].g->releasing;
    share_deal(own, left > 0 ? left : 0);
    for (size_t i = 0; i < own->list.n; i++)
        own->list.v[i].g->demand = own->list.v[i].offer;
}

static void limit_users(struct sched *s)
{
    VEC(struct share *) some = {0};
    struct share_groups own = {0}, *all = &s->shares;
    for (size_t i = 0; s->c->quotas.n && i < all->list.n; i++)
        if (quota_left(s->c, all->list.v[i].g->user, s->pool) != INT64_MAX)
            vec_push(&some, &all->list.v[i]);
    if (some.n)
        qsort(some.v, some.n, sizeof *some.v, by_user);
    for (size_t i = 0; i < some.n; i++) {
        const struct user *u = some.v[i]->g->user;
        vec_push(&own.list, *some.v[i]);
        if (i + 1 < some.n && some.v[i + 1]->g->user == u)
            continue;
        limit_user(&own, quota_left(s->c, u, s->pool));
        own.list.n = 0;
    }
    for (size_t i = 0; i < some.n; i++)
        some.v[i]->demand = some.v[i]->g->demand;
    vec_free(&some);
    vec_free(&own.list);
}

/* ---- Within the offers ---- */

/* What is over an experiment's own cap stops whether or not somebody waits for it. */
static void keep_to_cap(struct sched *s, struct group *g)
{
    int64_t held = g->held;
    for (struct alloc *a = g->running.first; a; a = a->next) {
        if (held <= g->max_slots)
            return;
        if (a->shield_ms != INT64_MAX)
            continue;
        held -= a->slots;
        sched_release(s, a, "its experiment holds more than its max_slots");
    }
}

/* Its next request is within its offer. */
static bool is_due(const struct group *g)
{
    return g->next && g->could && g->excess + g->taking + g->size <= 0;
}

static int largest_first(const void *x, const void *y)
{
    const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Requests of one size in their order, as far as they fit; the first that does not is put back. */
static void start_due(struct sched *s, struct turns *t)
{
    for (struct group *g; (g = turns_pop(t));) {
        bool started = sched_start_next(s, g);
        if (is_due(g))
            turns_push(t, (int64_t)g->next->seq, g);
        if (!started && g->next)
            return;
    }
}

/* Those that exclude agents have nobody released for them. */
static void promise_due(struct room *r, struct turns *t)
{
    room_open(r);
    for (struct group *g; (g = turns_pop(t));) {
        struct alloc *a = g->next;
        while (a && sched_is_choosy(a))
            a = a->next;
        if (!a || !sched_may(r->s, g))
            continue;
        if (a != r->s->guarded && !room_promise(r, a)) /* that one has its room kept */
            break;
        sched_count(g);
        g->next = a->next;
        if (is_due(g))
            turns_push(t, (int64_t)g->next->seq, g);
    }
    room_close(r);
}

static void serve_due(struct sched *s, int64_t excess)
{
    VEC(struct group *) due = {0};
    struct turns t = {0};
    struct room r;
    room_init(&r, s, excess);
    for (size_t i = 0; i < s->shares.list.n; i++) {
        const struct share *e = &s->shares.list.v[i];
        if (e->waits && e->offer >= e->size && is_due(e->g))
            vec_push(&due, e->g);
    }
    if (due.n)
        qsort(due.v, due.n, sizeof *due.v, largest_first);
    for (size_t i = 0; i < due.n; i++) {
        turns_push(&t, (int64_t)due.v[i]->next->seq, due.v[i]);
        if (i + 1 < due.n && due.v[i + 1]->size == due.v[i]->size)
            continue;
        start_due(s, &t);
        if (t.heap.n)
            promise_due(&r, &t);
        t.heap.n = 0;
    }
    room_finish(&r);
    vec_free(&t.heap);
    vec_free(&due);
}

/* ---- Beyond them ---- */

/* What it would hold per weight, in millionths. */
static int64_t held_per_weight(const struct group *g)
{
    double d = (double)(g->held + g->taking + g->size) / g->weight * 1e6;
    return d < 9e18 ? (int64_t)d : INT64_MAX;
}

/* What still is idle, nobody within his share can use now: others borrow it. */
static void lend_idle(struct sched *s)
{
    struct turns t = {0};
    for (size_t i = 0; fit_free(&s->pool->fit) > 0 && i < s->waiting.n; i++)
        if (s->waiting.v[i].g->next && s->waiting.v[i].g->could)
            turns_push(&t, held_per_weight(s->waiting.v[i].g), s->waiting.v[i].g);
    for (struct group *g; fit_free(&s->pool->fit) > 0 && (g = turns_pop(&t));)
        if (sched_start_next(s, g) && g->next)
            turns_push(&t, held_per_weight(g), g);
    vec_free(&t.heap);
}

/* The offers reach the groups, of which most have the same as before; and their caps are kept.
 * Returns what all hold beyond. */
static int64_t apply_offers(struct sched *s)
{
    int64_t all = 0;
    for (size_t i = 0; i < s->shares.list.n; i++) {
        const struct share *e = &s->shares.list.v[i];
        int64_t excess = e->held - e->offer;
        if (e->offer != e->was_offer || excess != e->was_excess) {
            e->g->offer = e->offer;
            e->g->excess = excess;
        }
        all += excess > 0 ? excess : 0;
        if (e->is_capped)
            keep_to_cap(s, e->g);
    }
    return all;
}

void sched_fair(struct sched *s)
{
    limit_users(s);
    share_deal(&s->shares, capacity_of(s));
    serve_due(s, apply_offers(s));
    lend_idle(s);
}
