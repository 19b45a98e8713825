/*
 * Fair share (rest-api.md 5.4): slots are dealt to the groups (experiments) by progressive filling
 * in proportion to their weights; who holds more than its share is asked to give back, who holds
 * less starts.
 *
 * Demand counts what is pending too, also in a full pool, as long as it would fit with the
 * preemptible work gone. What is being released already counts neither as held nor as demand.
 */
#include "scheduler.h"

#include "sched_share.h"

static int64_t capped(int64_t demand, int64_t max)
{
    return max >= 0 && demand > max ? max : demand;
}

/* The groups with slots that hold or want some; returns the capacity. */
static int64_t collect(struct sched *s, struct share_groups *ret)
{
    int64_t capacity = fit_free(&s->pool->fit);
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        if (g->size == 0)
            continue;
        capacity += g->held + g->releasing;
        g->demand =
            capped(g->held + (g->could ? (int64_t)g->pending.n * g->size : 0), g->exp->max_slots);
        if (g->running.n || g->ending.n || g->could)
            vec_push(&ret->list, g);
    }
    return capacity;
}

static void release(struct sched *s, struct group *g)
{
    int64_t held = g->held;
    for (struct alloc *a = g->running.first; a && held > g->offer; a = a->next) {
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

void sched_fair(struct sched *s)
{
    struct share_groups groups = {0};
    int64_t capacity = collect(s, &groups);
    share_deal(&groups, capacity);
    for (size_t i = 0; i < groups.list.n; i++)
        release(s, groups.list.v[i]);
    start(s, &groups);
    vec_free(&groups.list);
}
