/*
 * Fair share (rest-api.md 5.4): slots are dealt to the groups (experiments) by progressive filling
 * in proportion to their weights; who holds more than its share is asked to give back, who holds
 * less starts.
 *
 * Demand counts what is pending too, also in a full pool, as long as it would fit with the
 * preemptible work gone. What is being released already counts neither as held nor as demand.
 */
#include "scheduler.h"

#include "quota.h"
#include "sched_share.h"

static int64_t capped(int64_t demand, int64_t max)
{
    return max >= 0 && demand > max ? max : demand;
}

static int64_t demand(const struct group *g)
{
    return capped(g->held + (g->could ? (int64_t)g->pending.n * g->size : 0), g->exp->max_slots);
}

/* The groups with slots that hold or want some; returns the capacity. */
static int64_t collect(struct sched *s, struct share_groups *ret)
{
    int64_t capacity = s->free;
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        if (g->size == 0)
            continue;
        capacity += g->held + g->releasing;
        g->demand = demand(g);
        if (g->running.n || g->ending.n || g->could)
            vec_push(&ret->list, g);
    }
    return capacity;
}

static void release(struct sched *s, struct group *g)
{
    int64_t held = g->held;
    for (struct alloc *a = g->running.first; a && held > g->offer; a = a->next) {
        if (a->shield_ms != INT64_MAX)
            continue;
        held -= a->slots;
        sched_release(s, a, "its slots are needed for the fair share of others");
    }
}

static bool may_start(const struct group *g)
{
    return g->next && g->could && g->held + g->taking + g->size <= g->offer;
}

/* In order of request, whatever the group. */
static void start(struct sched *s, const struct share_groups *groups)
{
    struct turns t = {0};
    for (size_t i = 0; i < groups->list.n; i++)
        if (may_start(groups->list.v[i]))
            turns_push(&t, (int64_t)groups->list.v[i]->next->seq, groups->list.v[i]);
    for (struct group *g; fit_free(&s->pool->fit) > 0 && (g = turns_pop(&t));)
        if (sched_start_next(s, g) && may_start(g))
            turns_push(&t, (int64_t)g->next->seq, g);
    vec_free(&t.heap);
}

/* Those with a quota, by user. */
static int by_user(const void *x, const void *y)
{
    const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;
    if (a->exp->user != b->exp->user)
        return a->exp->user->id < b->exp->user->id ? -1 : 1;
    return (a->exp->id > b->exp->id) - (a->exp->id < b->exp->id);
}

/* What a user may hold is dealt among his experiments as the pool is among all; what they hold
 * already they keep. */
static void limit_user(struct share_groups *own, int64_t left)
{
    for (size_t i = 0; i < own->list.n; i++)
        left += own->list.v[i]->held;
    share_deal(own, left);
    for (size_t i = 0; i < own->list.n; i++) {
        struct group *g = own->list.v[i];
        int64_t keep = g->held < g->demand ? g->held : g->demand;
        g->demand = g->offer > keep ? g->offer : keep;
        g->cap = INT64_MAX;
    }
}

/* Fills `some` with the groups of users with a quota. */
static void limit_users(const struct sched *s, const struct share_groups *all,
                        struct share_groups *some)
{
    struct share_groups own = {0};
    for (size_t i = 0; s->c->quotas.n && i < all->list.n; i++)
        if (quota_left(s->c, all->list.v[i]->exp->user, s->pool) != INT64_MAX)
            vec_push(&some->list, all->list.v[i]);
    if (some->list.n)
        qsort(some->list.v, some->list.n, sizeof *some->list.v, by_user);
    for (size_t i = 0; i < some->list.n; i++) {
        const struct user *u = some->list.v[i]->exp->user;
        vec_push(&own.list, some->list.v[i]);
        if (i + 1 < some->list.n && some->list.v[i + 1]->exp->user == u)
            continue;
        int64_t left = quota_left(s->c, u, s->pool);
        limit_user(&own, left > 0 ? left : 0);
        own.list.n = 0;
    }
    vec_free(&own.list);
}

/* Of its offer, what nothing runs in yet: sign 1 counts it as taken by its user, -1 no longer. */
static void plan(const struct group *g, int sign)
{
    int64_t more = g->offer - g->held - g->taking;
    g->exp->user->taking += more > 0 ? sign * more : 0;
}

/* One more of its requests, out of what the pool and its user's quota have left. */
static bool deal_one(const struct sched *s, struct group *g, int64_t *left)
{
    int64_t next = share_one_more(g), more = next - g->offer;
    if (!next || more > *left || more > quota_left(s->c, g->exp->user, s->pool))
        return false;
    plan(g, -1);
    g->offer = next;
    plan(g, 1);
    *left -= more;
    return true;
}

/* A quota may have been dealt to requests that the pool has no room for: a gang's, as others hold
 * the rest. What is left of it is for the user's other requests, one of each experiment in a round. */
static void deal_unused(const struct sched *s, const struct share_groups *limited, int64_t left)
{
    for (size_t i = 0; i < limited->list.n; i++) {
        limited->list.v[i]->demand = demand(limited->list.v[i]);
        plan(limited->list.v[i], 1);
    }
    for (bool any = left > 0; any;) {
        any = false;
        for (size_t i = 0; i < limited->list.n; i++)
            any |= deal_one(s, limited->list.v[i], &left);
    }
    for (size_t i = 0; i < limited->list.n; i++)
        plan(limited->list.v[i], -1);
}

/* Why the groups that still wait do. */
static void explain(struct sched *s, const struct share_groups *groups)
{
    for (size_t i = 0; i < groups->list.n; i++) {
        struct group *g = groups->list.v[i];
        if (g->next && g->could && sched_may(s, g) && g->held + g->taking + g->size > g->offer)
            g->wait = CORE_WAIT_SHARE;
    }
}

void sched_fair(struct sched *s)
{
    struct share_groups groups = {0}, limited = {0};
    int64_t left = collect(s, &groups);
    limit_users(s, &groups, &limited);
    share_deal(&groups, left);
    for (size_t i = 0; i < groups.list.n; i++)
        left -= groups.list.v[i]->offer;
    deal_unused(s, &limited, left);
    for (size_t i = 0; i < groups.list.n; i++)
        release(s, groups.list.v[i]);
    start(s, &groups);
    explain(s, &groups);
    vec_free(&groups.list);
    vec_free(&limited.list);
}
