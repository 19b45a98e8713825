/*
 * Priority (rest-api.md 5.4): level by level, most important first; inside a level by queue
 * position. A request that does not fit lets others of its level pass, but holds back the less
 * important levels, unless preemption is on: then they may back-fill, and are released again when a
 * waiting request would fit without them. In a step that releases nothing further starts.
 *
 * The requests of a group are alike: where one does not fit, none of the group does; but for those
 * that exclude agents: they hold nobody back, and nobody is released for them. So it is
 * with what a cap or a quota holds back.
 */
#include "scheduler.h"

#include "queue.h"

struct prio {
    struct sched *s;
    struct fit *fit;
    VEC(struct group *) groups; /* of this pass, most important first */
};

static int by_rank(const void *x, const void *y)
{
    return queue_group_cmp(*(struct group *const *)x, *(struct group *const *)y);
}

static bool is_behind(const struct group *run, const struct group *wait)
{
    return run->exp && queue_group_cmp(run, wait) > 0;
}

/* The work of less important groups, the last in line first. */
struct victims {
    size_t group;     /* index above the current one */
    struct alloc *at; /* in the group at that index */
};

static struct alloc *next_victim(const struct prio *p, struct victims *v, const struct group *wait)
{
    while (!v->at) {
        if (v->group == 0 || !is_behind(p->groups.v[v->group - 1], wait))
            return NULL;
        v->at = p->groups.v[--v->group]->running.last;
    }
    if (!is_behind(p->groups.v[v->group], wait))
        return NULL;
    struct alloc *a = v->at;
    v->at = a->prev;
    return a;
}

/* Could the free slots and all victims' be enough? Spares the search where they are not. */
static bool is_enough(const struct prio *p, const struct group *wait)
{
    int64_t slots = fit_free(p->fit);
    for (size_t i = p->groups.n; i-- > 0 && is_behind(p->groups.v[i], wait);)
        slots += p->groups.v[i]->held;
    return slots >= wait->size;
}

static bool take(struct prio *p, const struct alloc *a)
{
    if (!fit_place(p->fit, a, &p->s->tmp))
        return false;
    fit_take(p->fit, p->s->tmp.nodes.v, p->s->tmp.nodes.n);
    sched_count(a->kind == KIND_TRIAL ? &a->exp->group : &a->pool->collections);
    return true;
}

/* Releases the fewest, least important first, that make room for `a`; none if that is not enough.
 */
static bool make_room(struct prio *p, struct victims *v, const struct group *g, struct alloc *a)
{
    struct victims from = *v;
    size_t mark = fit_mark(p->fit), first = p->s->releases.n;
    if (!is_enough(p, g))
        return false;
    for (struct alloc *k; (k = next_victim(p, v, g));) {
        fit_give(p->fit, k);
        sched_release(p->s, k, "its slots are needed by more important work");
        if (take(p, a))
            return true;
    }
    *v = from;
    p->s->releases.n = first;
    fit_undo(p->fit, mark);
    return false;
}

/* Takes what fits from the index, up to the first that has to wait. What stands behind that one has
 * nothing yet: else it would be counted as room taken, start, and be released at once, for ever. */
static void take_fitting(struct prio *p)
{
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        for (; g->next && sched_may(p->s, g); g->next = g->next->next)
            if (!take(p, g->next) && !sched_is_choosy(g->next))
                return;
    }
}

static void give_ending(struct prio *p)
{
    for (size_t i = 0; i < p->groups.n; i++)
        for (struct alloc *a = p->groups.v[i]->ending.first; a; a = a->next)
            fit_give(p->fit, a);
}

enum outlook { NOTHING, ROOM_IS_COMING, RELEASED };

static enum outlook serve(struct prio *p, struct victims *v)
{
    enum outlook out = NOTHING;
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        for (; g->next; g->next = g->next->next) {
            if (!sched_may(p->s, g))
                break;
            if (sched_is_choosy(g->next))
                continue;
            if (take(p, g->next))
                out = out == NOTHING ? ROOM_IS_COMING : out;
            else if (make_room(p, v, g, g->next))
                out = RELEASED;
            else
                return out;
        }
    }
    return out;
}

/* Asks for what waiting requests need, on the index as it will be: what can start now has, and what
 * is ending is gone. A request that what is ending makes room for needs nobody else's. */
static enum outlook release(struct prio *p)
{
    size_t mark = fit_mark(p->fit);
    struct victims v = {.group = p->groups.n};
    take_fitting(p);
    give_ending(p);
    enum outlook out = serve(p, &v);
    fit_undo(p->fit, mark);
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        g->next = g->pending.first;
        g->taking = 0;
        if (g->exp)
            g->exp->user->taking = 0;
    }
    return out;
}

/* Room that is coming for a waiting request must not be taken by what stands behind it. */
static void start(struct prio *p, enum outlook outlook)
{
    bool is_blocked = false;
    int held_back = 0; /* the level with a waiting request */
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        int level = queue_group_level(g);
        if (is_blocked && level > held_back && !(p->s->pool->o.preemption && g->exp))
            return;
        p->s->is_backfill = is_blocked && level > held_back;
        while (sched_start_next(p->s, g))
            ;
        if (!g->next)
            continue;
        if (outlook == ROOM_IS_COMING)
            return;
        if (!is_blocked)
            held_back = level;
        is_blocked = true;
    }
}

static void pass(struct sched *s, bool aux)
{
    struct prio p = {.s = s, .fit = &s->pool->fit};
    size_t waiting = 0;
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        if ((g->size == 0) == aux)
            vec_push(&p.groups, g);
        if ((g->size == 0) == aux)
            waiting += g->pending.n;
    }
    if (p.groups.n)
        qsort(p.groups.v, p.groups.n, sizeof *p.groups.v, by_rank);
    if (!aux && !s->pool->o.preemption)
        sched_guard(s);
    enum outlook outlook = waiting && s->pool->o.preemption ? release(&p) : NOTHING;
    if (outlook != RELEASED)
        start(&p, outlook);
    vec_free(&p.groups);
}

void sched_priority(struct sched *s)
{
    pass(s, false);
    pass(s, true);
}
