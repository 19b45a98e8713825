/*
 * Priority (docs/contract/placement.md 3): level by level, most important first; inside a level by
 * queue position. A request that does not fit lets others of its level pass, but holds back the
 * less important levels, unless preemption is on: then they may back-fill, and are released again
 * when a waiting request would fit without them. In a step that releases nothing further starts.
 *
 * The requests of a group are alike: where one does not fit, none of the group does; but for those
 * that exclude agents: they hold nobody back, and nobody is released for them. So it is
 * with what a cap or a quota holds back.
 */
#include "scheduler.h"

#include "queue.h"
#include "quota.h"

struct prio {
    struct sched *s;
    struct fit *fit;
    bool aux;            /* this pass is for requests without slots */
    struct line waiting; /* those with something pending */
    struct line running; /* those with something that could be released */
    size_t seen;         /* of the waiting, while it was looked whom to release */
};

/* ---- The line ---- */

enum { LEVELS = 100 }; /* collections, then 1 to 99 */

static int by_rank(const void *x, const void *y)
{
    const struct rank *a = x, *b = y;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static void line_add(struct line *l, const struct pool *p, struct group *g)
{
    int level = g->priority ? g->priority : p->o.default_priority;
    struct rank in = {.g = g, .level = g->exp ? level : 0, .id = g->id, .position = g->position};
    vec_push(&l->list, in);
}

/* Without preemption nothing is released. */
static void rank_group(struct sched *s, struct line *waits, struct line *runs, struct group *g)
{
    if (g->next)
        line_add(waits, s->pool, g);
    if (s->pool->o.preemption && g->running.n)
        line_add(runs, s->pool, g);
}

void sched_rank(struct sched *s, struct group *g)
{
    rank_group(s, &s->waits, &s->runs, g);
}

/* No level is another than those. */
static bool has_levels(const struct line *l)
{
    for (size_t i = 0; i < l->list.n; i++)
        if (l->list.v[i].level < 0 || l->list.v[i].level >= LEVELS)
            return false;
    return true;
}

static bool is_sorted(const struct line *l)
{
    for (size_t i = 1; i < l->list.n; i++)
        if (by_rank(&l->list.v[i - 1], &l->list.v[i]) > 0)
            return false;
    return true;
}

/* By counting: within its level a job mostly stands where it came in. */
static void sort_levels(struct line *l)
{
    size_t at[LEVELS + 1] = {0};
    struct line other = {0};
    vec_reserve(&other.list, l->list.n);
    for (size_t i = 0; i < l->list.n; i++)
        at[l->list.v[i].level + 1]++;
    for (size_t i = 1; i <= LEVELS; i++)
        at[i] += at[i - 1];
    for (size_t i = 0; i < l->list.n; i++)
        other.list.v[at[l->list.v[i].level]++] = l->list.v[i];
    other.list.n = l->list.n;
    vec_free(&l->list);
    *l = other;
}

static void line_sort(struct line *l)
{
    if (!is_sorted(l) && has_levels(l))
        sort_levels(l);
    if (!is_sorted(l))
        qsort(l->list.v, l->list.n, sizeof *l->list.v, by_rank);
}

static struct line take_line(struct line *l)
{
    struct line taken = *l;
    *l = (struct line){0};
    return taken;
}

static void lines_init(struct prio *p)
{
    struct sched *s = p->s;
    for (size_t i = 0; p->aux && i < s->pool->groups.n; i++)
        if (s->pool->groups.v[i]->size == 0)
            rank_group(s, &p->waiting, &p->running, s->pool->groups.v[i]);
    if (!p->aux) {
        p->waiting = take_line(&s->waits);
        p->running = take_line(&s->runs);
    }
    line_sort(&p->waiting);
    line_sort(&p->running);
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
        if (v->group == 0 || !is_behind(p->running.list.v[v->group - 1].g, wait))
            return NULL;
        v->at = p->running.list.v[--v->group].g->running.last;
    }
    if (!is_behind(p->running.list.v[v->group].g, wait))
        return NULL;
    struct alloc *a = v->at;
    v->at = a->prev;
    return a;
}

/* Could the free slots and all victims' be enough? Spares the search where they are not. */
static bool is_enough(const struct prio *p, const struct group *wait)
{
    int64_t slots = fit_free(p->fit);
    for (size_t i = p->running.list.n; slots < wait->size && i-- > 0;) {
        if (!is_behind(p->running.list.v[i].g, wait))
            return false;
        slots += p->running.list.v[i].g->held;
    }
    return slots >= wait->size;
}

static bool take_room(struct prio *p, const struct alloc *a)
{
    if (!fit_place(p->fit, a, &p->s->tmp))
        return false;
    fit_take(p->fit, p->s->tmp.nodes.v, p->s->tmp.nodes.n);
    sched_count(a->kind == KIND_TRIAL ? a->exp->group : &a->pool->collections);
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
        if (take_room(p, a))
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
    for (size_t i = 0; i < p->waiting.list.n; i++) {
        struct group *g = p->waiting.list.v[i].g;
        p->seen = i + 1;
        for (; g->next && sched_may(p->s, g); g->next = g->next->next)
            if (!take_room(p, g->next) && !sched_is_choosy(g->next))
                return;
    }
}

static void give_ending(struct prio *p)
{
    for (size_t i = 0; i < p->s->ending.n; i++)
        for (struct alloc *a = p->s->ending.v[i]->ending.first; a; a = a->next)
            if ((a->slots == 0) == p->aux)
                fit_give(p->fit, a);
}

enum outlook { NOTHING, ROOM_IS_COMING, RELEASED };

static enum outlook serve_waiting(struct prio *p, struct victims *v)
{
    enum outlook out = NOTHING;
    for (size_t i = 0; i < p->waiting.list.n; i++) {
        struct group *g = p->waiting.list.v[i].g;
        p->seen = i + 1 > p->seen ? i + 1 : p->seen;
        for (; g->next; g->next = g->next->next) {
            if (!sched_may(p->s, g))
                break;
            if (sched_is_choosy(g->next))
                continue;
            if (take_room(p, g->next))
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
static enum outlook release_for_waiting(struct prio *p)
{
    size_t mark = fit_mark(p->fit);
    struct victims v = {.group = p->running.list.n};
    take_fitting(p);
    give_ending(p);
    enum outlook out = serve_waiting(p, &v);
    fit_undo(p->fit, mark);
    for (size_t i = 0; i < p->seen; i++) {
        p->waiting.list.v[i].g->next = p->waiting.list.v[i].g->pending.first;
        p->waiting.list.v[i].g->taking = 0;
    }
    quota_taken_back(p->s->c);
    return out;
}

/* Room that is coming for a waiting request must not be taken by what stands behind it. */
static void start_waiting(struct prio *p, enum outlook outlook)
{
    bool is_blocked = false;
    int held_back = 0; /* the level with a waiting request */
    for (size_t i = 0; i < p->waiting.list.n; i++) {
        struct group *g = p->waiting.list.v[i].g;
        int level = p->waiting.list.v[i].level;
        if (is_blocked && !p->aux && fit_free(p->fit) == 0)
            return;
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

static void run_pass(struct sched *s, bool aux)
{
    struct prio p = {.s = s, .fit = &s->pool->fit, .aux = aux};
    bool preemption = s->pool->o.preemption;
    if ((aux ? s->aux.n : s->waiting.n) == 0)
        return;
    lines_init(&p);
    if (!aux && !preemption)
        sched_guard(s);
    enum outlook outlook = preemption ? release_for_waiting(&p) : NOTHING;
    if (outlook != RELEASED)
        start_waiting(&p, outlook);
    vec_free(&p.waiting.list);
    vec_free(&p.running.list);
}

void sched_priority(struct sched *s)
{
    run_pass(s, false);
    run_pass(s, true);
}
