/*
 * The guard against starvation. Under fair share and round robin a job of large requests may be
 * passed over for ever by small ones; under priority without preemption by those of its own level
 * (a less important one waits for all that are more important, however long that is).
 * So the job that has had nothing placed for the longest time, once that is longer than the pool's
 * starvation_wait, is served before the policy: its first request starts if it fits; else the
 * agents that it is going to have are chosen, nobody else gets a slot of them, and under fair share
 * what runs there is asked to stop, the youngest first. Having started it is not asked to stop for
 * starvation_wait.
 *
 * The choice of agents stays until the request has started, so each wait ends. A job whose request
 * could be placed, within quota and cap, has something running at the latest (1 + n) times
 * starvation_wait plus the time a stop may take (preempt_timeout and the kill) after it had not, n
 * being the jobs that have waited longer; where nothing is asked to stop, when what runs on its
 * agents has ended.
 *
 * First in, first out uses the same for its first in line: what was back-filled and stands behind
 * it is asked to stop. A wait outlasts the master (queue_save_waits).
 */
#include "scheduler.h"

#include "queue.h"
#include <limits.h>

/* For a. What was back-filled past others long ago may stand before it all the same. */
static bool may_release(const struct sched *s, const struct alloc *a, const struct alloc *victim)
{
    if (s->pool->o.scheduler == CORE_FIFO)
        return victim->is_backfill && victim->exp->id > a->exp->id;
    return s->pool->o.scheduler != CORE_FAIR_SHARE || victim->shield_ms == INT64_MAX;
}

/* Else agents are only withheld. */
static bool can_release(const struct sched *s)
{
    return s->pool->o.scheduler == CORE_FIFO || s->pool->o.scheduler == CORE_FAIR_SHARE;
}

static void victims_init(const struct sched *s, struct turns *t)
{
    bool some = s->pool->o.scheduler != CORE_FIFO || s->backfilled;
    for (size_t i = 0; some && i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        bool none = g->size == 0 || (s->pool->o.scheduler == CORE_FIFO && g->backfilled == 0);
        g->victim = none ? NULL : g->running.last;
        if (g->victim)
            turns_push(t, -(int64_t)g->victim->seq, g);
    }
}

/* The youngest running allocation that may be released for `waits`; NULL: none is left. */
static struct alloc *next_victim(const struct sched *s, struct turns *t, const struct alloc *waits)
{
    for (struct group *g; (g = turns_pop(t));) {
        struct alloc *a = g->victim;
        g->victim = a->prev;
        if (g->victim)
            turns_push(t, -(int64_t)g->victim->seq, g);
        if (may_release(s, waits, a))
            return a;
    }
    return NULL;
}

static void give_ending(struct sched *s)
{
    for (size_t i = 0; i < s->ending.n; i++)
        for (struct alloc *a = s->ending.v[i]->ending.first; a; a = a->next)
            fit_give(&s->pool->fit, a);
}

struct given {
    VEC(struct alloc *) list;
};

static void decide_releases(struct sched *s, const struct given *given)
{
    for (size_t i = 0; can_release(s) && i < given->list.n; i++)
        if (fit_touches(given->list.v[i], &s->tmp))
            sched_release(s, given->list.v[i], "its slots are needed by what has waited longer");
    s->releases_guard = s->releases.n;
    for (size_t i = 0; i < s->tmp.nodes.n; i++)
        vec_push(&s->reserved, s->tmp.nodes.v[i].agent);
}

/* Finds agents for a as they will be: what ends is gone, and victims as far as need be. */
static bool choose_agents(struct sched *s, const struct alloc *a)
{
    struct turns t = {0};
    struct given given = {0};
    size_t mark = fit_mark(&s->pool->fit);
    give_ending(s);
    victims_init(s, &t);
    bool fits = fit_place(&s->pool->fit, a, &s->tmp);
    for (struct alloc *v; !fits && (v = next_victim(s, &t, a));) {
        fit_give(&s->pool->fit, v);
        vec_push(&given.list, v);
        fits = fit_place(&s->pool->fit, a, &s->tmp);
    }
    if (fits)
        decide_releases(s, &given);
    fit_undo(&s->pool->fit, mark);
    vec_free(&given.list);
    vec_free(&t.heap);
    return fits;
}

/* The agents chosen in an earlier pass, while they can still have it. */
static bool recall_agents(struct sched *s, const struct alloc *a)
{
    const struct pool *p = s->pool;
    int64_t slots = 0;
    if (p->guarded != a)
        return false;
    for (size_t i = 0; i < p->reserved.n; i++) {
        if (p->reserved.v[i]->counted_in != p || !p->reserved.v[i]->listed)
            return false;
        slots += p->reserved.v[i]->whole;
    }
    for (size_t i = 0; slots >= a->slots && i < p->reserved.n; i++)
        vec_push(&s->reserved, p->reserved.v[i]);
    return slots >= a->slots;
}

bool sched_keep_room(struct sched *s, struct alloc *a)
{
    if (!recall_agents(s, a) && !choose_agents(s, a))
        return false;
    s->guarded = a;
    for (size_t i = 0; i < s->reserved.n; i++) {
        struct agent *agent = s->reserved.v[i];
        if (agent->free == 0)
            continue;
        vec_push(&s->blocks, (struct sched_block){agent, agent->free});
        fit_shift(&s->pool->fit, agent, -agent->free);
    }
    return true;
}

/* Something of it could start, had it the room. */
static bool wants_room(const struct sched *s, const struct group *g)
{
    const struct alloc *a = g->pending.first;
    return g->could && (!sched_is_choosy(a) || fit_could(&s->pool->fit, a)) && sched_may(s, g);
}

/* Under priority the most important level that waits; nobody behind it is served before it. */
static int level_served(const struct sched *s)
{
    int level = INT_MAX;
    for (size_t i = 0; s->pool->o.scheduler == CORE_PRIORITY && i < s->waiting.n; i++) {
        const struct group *g = s->waiting.v[i].g;
        if (queue_group_level(g) < level && wants_room(s, g))
            level = queue_group_level(g);
    }
    return level;
}

/* The oldest of those that have waited as long. */
static struct group *longest_waiting(const struct sched *s)
{
    struct group *first = NULL;
    int64_t since = INT64_MAX;
    int level = level_served(s);
    for (size_t i = 0; i < s->waiting.n; i++) {
        struct group *g = s->waiting.v[i].g;
        if (s->waiting.v[i].since_ms >= since || queue_group_level(g) > level || !wants_room(s, g))
            continue;
        first = g;
        since = s->waiting.v[i].since_ms;
    }
    return first;
}

void sched_guard(struct sched *s)
{
    struct group *g = s->pool->o.starvation_wait_ms ? longest_waiting(s) : NULL;
    if (!g)
        return;
    struct alloc *a = g->pending.first;
    int64_t at = g->waits_ms + s->pool->o.starvation_wait_ms;
    if (at > s->now_ms) {
        s->wake_ms = at;
        return;
    }
    if (!sched_start(s, a)) {
        sched_keep_room(s, a);
        return;
    }
    s->starts.v[s->starts.n - 1].is_shielded = true;
    sched_count(g);
    g->next = a->next;
    s->wake_ms = s->now_ms; /* the next one may be due as well */
}
