/*
 * Fair share (rest-api.md 5.4): slots are dealt to the groups (experiments) by progressive filling
 * in proportion to their weights. Who holds less than its offer starts; who holds more has borrowed
 * it, and gives back what, and only what, a request within its own group's offer then can use.
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

static int64_t capped(int64_t demand, int64_t max)
{
    return max >= 0 && demand > max ? max : demand;
}

/* Slots that are being freed, but will be asked for again. */
static int64_t returning(const struct group *g)
{
    int64_t slots = 0;
    for (const struct alloc *a = g->ending.first; a; a = a->next)
        slots += a->trial->state == TRIAL_ACTIVE && !trial_op_done(a->trial) ? a->slots : 0;
    return slots;
}

/* Containers end one by one, each with its slots. */
static int64_t freeing(const struct group *g)
{
    int64_t slots = 0;
    for (const struct alloc *a = g->ending.first; a; a = a->next)
        for (size_t i = 0; i < a->containers.n; i++)
            slots += a->containers.v[i]->agent ? (int64_t)a->containers.v[i]->slots.n : 0;
    return slots;
}

static int64_t demand(const struct group *g)
{
    int64_t pending = g->could ? (int64_t)g->pending.n * g->size : 0;
    return capped(g->held + returning(g) + pending, g->exp->max_slots);
}

/* The groups with slots that hold or want some; returns the capacity. */
static int64_t collect(struct sched *s, struct share_groups *ret)
{
    int64_t capacity = s->free;
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        if (g->size == 0)
            continue;
        capacity += g->held + freeing(g);
        g->demand = demand(g);
        if (g->running.n || g->ending.n || g->could)
            vec_push(&ret->list, g);
    }
    return capacity;
}

/* ---- Quotas ---- */

/* Those with a quota, by user. */
static int by_user(const void *x, const void *y)
{
    const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;
    if (a->exp->user != b->exp->user)
        return a->exp->user->id < b->exp->user->id ? -1 : 1;
    return (a->exp->id > b->exp->id) - (a->exp->id < b->exp->id);
}

/* What a user may hold is dealt among his experiments as the pool is among all. */
static void limit_user(struct share_groups *own, int64_t left)
{
    for (size_t i = 0; i < own->list.n; i++)
        left += own->list.v[i]->held + own->list.v[i]->releasing;
    share_deal(own, left > 0 ? left : 0);
    for (size_t i = 0; i < own->list.n; i++) {
        own->list.v[i]->demand = own->list.v[i]->offer;
        own->list.v[i]->cap = INT64_MAX;
    }
}

static void limit_users(const struct sched *s, const struct share_groups *all)
{
    struct share_groups some = {0}, own = {0};
    for (size_t i = 0; s->c->quotas.n && i < all->list.n; i++)
        if (quota_left(s->c, all->list.v[i]->exp->user, s->pool) != INT64_MAX)
            vec_push(&some.list, all->list.v[i]);
    if (some.list.n)
        qsort(some.list.v, some.list.n, sizeof *some.list.v, by_user);
    for (size_t i = 0; i < some.list.n; i++) {
        const struct user *u = some.list.v[i]->exp->user;
        vec_push(&own.list, some.list.v[i]);
        if (i + 1 < some.list.n && some.list.v[i + 1]->exp->user == u)
            continue;
        limit_user(&own, quota_left(s->c, u, s->pool));
        own.list.n = 0;
    }
    vec_free(&some.list);
    vec_free(&own.list);
}

/* ---- Within the offers ---- */

/* What is over an experiment's own cap stops whether or not somebody waits for it. */
static void keep_to_cap(struct sched *s, struct group *g)
{
    int64_t held = g->held;
    for (struct alloc *a = g->running.first; a && g->exp->max_slots >= 0; a = a->next) {
        if (held <= g->exp->max_slots)
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
    return (a->exp->id > b->exp->id) - (a->exp->id < b->exp->id);
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

static void serve_due(struct sched *s, const struct share_groups *groups)
{
    struct share_groups due = {0};
    struct turns t = {0};
    struct room r;
    room_init(&r, s);
    for (size_t i = 0; i < groups->list.n; i++)
        if (is_due(groups->list.v[i]))
            vec_push(&due.list, groups->list.v[i]);
    if (due.list.n)
        qsort(due.list.v, due.list.n, sizeof *due.list.v, largest_first);
    for (size_t i = 0; i < due.list.n; i++) {
        turns_push(&t, (int64_t)due.list.v[i]->next->seq, due.list.v[i]);
        if (i + 1 < due.list.n && due.list.v[i + 1]->size == due.list.v[i]->size)
            continue;
        start_due(s, &t);
        if (t.heap.n)
            promise_due(&r, &t);
        t.heap.n = 0;
    }
    room_finish(&r);
    vec_free(&t.heap);
    vec_free(&due.list);
}

/* ---- Beyond them ---- */

/* What it would hold per weight, in millionths. */
static int64_t part(const struct group *g)
{
    double d = (double)(g->held + g->taking + g->size) / g->exp->weight * 1e6;
    return d < 9e18 ? (int64_t)d : INT64_MAX;
}

/* What still is idle, nobody within his share can use now: others borrow it. */
static void lend(struct sched *s, const struct share_groups *groups)
{
    struct turns t = {0};
    for (size_t i = 0; fit_free(&s->pool->fit) > 0 && i < groups->list.n; i++)
        if (groups->list.v[i]->next && groups->list.v[i]->could)
            turns_push(&t, part(groups->list.v[i]), groups->list.v[i]);
    for (struct group *g; fit_free(&s->pool->fit) > 0 && (g = turns_pop(&t));)
        if (sched_start_next(s, g) && g->next)
            turns_push(&t, part(g), g);
    vec_free(&t.heap);
}

/* Why the groups that still wait do. */
static void explain(struct sched *s, const struct share_groups *groups)
{
    for (size_t i = 0; i < groups->list.n; i++) {
        struct group *g = groups->list.v[i];
        if (g->next && g->could && sched_may(s, g) && !is_due(g))
            g->wait = CORE_WAIT_SHARE;
    }
}

void sched_fair(struct sched *s)
{
    struct share_groups groups = {0};
    int64_t capacity = collect(s, &groups);
    limit_users(s, &groups);
    share_deal(&groups, capacity);
    for (size_t i = 0; i < groups.list.n; i++)
        keep_to_cap(s, groups.list.v[i]);
    serve_due(s, &groups);
    lend(s, &groups);
    explain(s, &groups);
    vec_free(&groups.list);
}
