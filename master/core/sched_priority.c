/*
 * Priority (rest-api.md 5.4): level by level, most important first; inside a level by queue
 * position. A request that does not fit lets others of its level pass, but holds back the less
 * important levels, unless preemption is on: then they may back-fill, and are released again when a
 * waiting request would fit without them. In a step that releases nothing further starts.
 */
#include "scheduler.h"

#include "alloc.h"
#include "queue.h"

struct prio {
    struct core *c;
    struct pool *pool;
    bool aux;              /* this pass: requests without slots */
    struct sched_list pending, running;
    struct sched_list waiting;
};

/* Collection has no experiment: it goes first. */
static int level(const struct core *c, const struct alloc *a)
{
    return a->exp ? queue_priority(c, a->exp) : 0;
}

struct ranked {
    struct alloc *a;
    int level;
    double position;
};

static int by_rank(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return (a->a->seq > b->a->seq) - (a->a->seq < b->a->seq);
}

static void sort(const struct core *c, struct sched_list *l)
{
    VEC(struct ranked) r = {0};
    for (size_t i = 0; i < l->list.n; i++) {
        struct alloc *a = l->list.v[i];
        vec_push(&r, (struct ranked){a, level(c, a), a->exp ? a->exp->position : 0});
    }
    if (r.n)
        qsort(r.v, r.n, sizeof *r.v, by_rank);
    for (size_t i = 0; i < r.n; i++)
        l->list.v[i] = r.v[i].a;
    vec_free(&r);
}

static void collect(struct prio *s)
{
    for (size_t i = 0; i < s->pool->pending.n; i++)
        if ((s->pool->pending.v[i]->slots == 0) == s->aux)
            vec_push(&s->pending.list, s->pool->pending.v[i]);
    for (size_t i = 0; i < s->pool->placed.n; i++) {
        struct alloc *a = s->pool->placed.v[i];
        if ((a->slots == 0) == s->aux && alloc_is_preemptible(a) && !alloc_is_ending(a))
            vec_push(&s->running.list, a);
    }
    sort(s->c, &s->pending);
    sort(s->c, &s->running);
}

static bool is_behind(const struct core *c, const struct alloc *run, const struct alloc *wait)
{
    int lr = level(c, run), lw = level(c, wait);
    if (lr != lw)
        return lr > lw;
    return run->exp && wait->exp && run->exp->position > wait->exp->position;
}

/* Releases the fewest, least important first, that make room for `wait`; none if that is not
 * enough. */
static bool make_room(struct prio *s, struct fit *f, struct alloc *wait)
{
    struct placement p = {0};
    size_t i = s->running.list.n;
    bool fits = false;
    while (!fits && i > 0 && is_behind(s->c, s->running.list.v[i - 1], wait)) {
        fit_give(f, s->running.list.v[--i]);
        fits = fit_place(f, wait->slots, wait->hash, &p);
    }
    if (fits) {
        fit_take(f, &p);
        for (size_t k = i; k < s->running.list.n; k++)
            alloc_preempt(s->c, s->running.list.v[k], KILL_SCHEDULER,
                          "its slots are needed by more important work");
        s->running.list.n = i;
    }
    vec_free(&p.nodes);
    return fits;
}

/* The scratch as it will be: what can start now has, and what is ending is gone. */
static void foresee(struct prio *s, struct fit *f)
{
    struct placement p = {0};
    fit_begin(f, s->c, s->pool);
    for (size_t i = 0; i < s->pending.list.n; i++)
        if (fit_place(f, s->pending.list.v[i]->slots, s->pending.list.v[i]->hash, &p))
            fit_take(f, &p);
    vec_free(&p.nodes);
    for (size_t i = 0; i < s->pool->placed.n; i++)
        if (alloc_is_ending(s->pool->placed.v[i]))
            fit_give(f, s->pool->placed.v[i]);
}

enum outlook { NOTHING, ROOM_IS_COMING, RELEASED };

/* A request that what is ending makes room for needs nobody else's. */
static enum outlook release(struct prio *s)
{
    struct fit f;
    struct placement p = {0};
    enum outlook out = NOTHING;
    foresee(s, &f);
    for (size_t i = 0; i < s->waiting.list.n; i++) {
        struct alloc *wait = s->waiting.list.v[i];
        if (fit_place(&f, wait->slots, wait->hash, &p)) {
            fit_take(&f, &p);
            out = out == NOTHING ? ROOM_IS_COMING : out;
        } else if (make_room(s, &f, wait)) {
            out = RELEASED;
        } else {
            break;
        }
    }
    vec_free(&p.nodes);
    return out;
}

/* Requests that do not fit now, found on the scratch. */
static void find_waiting(struct prio *s)
{
    struct fit f;
    struct placement p = {0};
    fit_begin(&f, s->c, s->pool);
    for (size_t i = 0; i < s->pending.list.n; i++) {
        struct alloc *a = s->pending.list.v[i];
        if (fit_place(&f, a->slots, a->hash, &p))
            fit_take(&f, &p);
        else
            vec_push(&s->waiting.list, a);
    }
    vec_free(&p.nodes);
}

/* Room that is coming for a waiting request must not be taken by what stands behind it. */
static void start(struct prio *s, enum outlook outlook)
{
    struct fit f;
    int held_back = -1; /* the level with a waiting request */
    fit_begin(&f, s->c, s->pool);
    for (size_t i = 0; i < s->pending.list.n; i++) {
        struct alloc *a = s->pending.list.v[i];
        bool behind = held_back >= 0 && level(s->c, a) > held_back;
        if (behind && !(s->c->o.preemption && alloc_is_preemptible(a)))
            break;
        if (sched_start(s->c, &f, a))
            continue;
        if (outlook == ROOM_IS_COMING)
            break;
        if (held_back < 0)
            held_back = level(s->c, a);
    }
}

static void pass(struct core *c, struct pool *pool, bool aux)
{
    struct prio s = {.c = c, .pool = pool, .aux = aux};
    collect(&s);
    if (c->o.preemption)
        find_waiting(&s);
    enum outlook outlook = s.waiting.list.n ? release(&s) : NOTHING;
    if (outlook != RELEASED)
        start(&s, outlook);
    vec_free(&s.pending.list);
    vec_free(&s.running.list);
    vec_free(&s.waiting.list);
}

void sched_priority(struct core *c, struct pool *pool)
{
    pass(c, pool, false);
    pass(c, pool, true);
}
