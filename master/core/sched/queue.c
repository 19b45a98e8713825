#include "queue.h"

#include "alloc.h"
#include "exp.h"
#include "quota.h"
#include "store.h"

static enum queue_as class_of(const struct alloc *a)
{
    if (a->state == ALLOC_TERMINATED)
        return QUEUE_NONE;
    if (a->state == ALLOC_PENDING)
        return a->hold_ms == INT64_MAX ? QUEUE_PENDING : QUEUE_NONE;
    return alloc_is_ending(a) ? QUEUE_ENDING : QUEUE_RUNNING;
}

static struct group *group_of(const struct alloc *a)
{
    return a->kind == KIND_TRIAL ? a->exp->group : &a->pool->collections;
}

static size_t group_at(const struct pool *p, int64_t id)
{
    return vec_bound(&p->groups, g, (*g)->id < id);
}

static void list_add(struct alloc_list *l, struct alloc *a)
{
    struct alloc *before = l->last;
    while (before && before->seq > a->seq)
        before = before->prev;
    a->prev = before;
    a->next = before ? before->next : l->first;
    *(a->prev ? &a->prev->next : &l->first) = a;
    *(a->next ? &a->next->prev : &l->last) = a;
    l->n++;
}

static void list_del(struct alloc_list *l, struct alloc *a)
{
    *(a->prev ? &a->prev->next : &l->first) = a->next;
    *(a->next ? &a->next->prev : &l->last) = a->prev;
    a->prev = a->next = NULL;
    l->n--;
}

static void count_alloc(struct core *c, struct group *g, const struct alloc *a, int64_t by)
{
    if (a->queued_as != QUEUE_PENDING && a->kind == KIND_TRIAL && a->slots)
        quota_count(c, a->exp->group->user, g->pool, by * a->slots);
    if (a->queued_as == QUEUE_RUNNING)
        g->held += by * a->slots;
    if (a->queued_as == QUEUE_RUNNING)
        g->backfilled += a->is_backfill ? (unsigned)by : 0;
    else if (a->queued_as == QUEUE_ENDING)
        g->releasing += by * a->slots;
    else
        g->pool->pending_n += (size_t)by;
}

static struct alloc_list *list_of(struct group *g, enum queue_as as)
{
    if (as == QUEUE_PENDING)
        return &g->pending;
    return as == QUEUE_RUNNING ? &g->running : &g->ending;
}

enum { SAVE_WAITS_MS = 300000 };

static void begin_wait(struct core *c, struct group *g)
{
    g->waits_ms = c->now_ms;
    if (!c->waits.pos)
        timers_set(&c->timers, &c->waits, c->now_ms + SAVE_WAITS_MS);
}

int64_t queue_waited_ms(const struct group *g, int64_t now_ms)
{
    bool waits = g->pool && g->exp && g->pending.n && !g->running.n && !g->ending.n;
    return waits ? now_ms - g->waits_ms : 0;
}

void queue_save_waits(struct core *c)
{
    bool any = false;
    for (size_t i = 0; i < c->pools.n; i++)
        for (size_t k = 0; k < c->pools.v[i]->groups.n; k++) {
            struct group *g = c->pools.v[i]->groups.v[k];
            if (queue_waited_ms(g, c->now_ms) == 0)
                continue;
            any = true;
            if (c->pools.v[i]->o.starvation_wait_ms)
                exp_mark(c, g->exp);
        }
    timers_set(&c->timers, &c->waits, any ? c->now_ms + SAVE_WAITS_MS : INT64_MAX);
}

void queue_restart_waits(struct core *c)
{
    for (size_t i = 0; i < c->pools.n; i++)
        for (size_t k = 0; k < c->pools.v[i]->groups.n; k++) {
            struct group *g = c->pools.v[i]->groups.v[k];
            g->waits_ms = c->now_ms - (g->exp ? g->exp->waited_ms : 0);
        }
    timers_set(&c->timers, &c->waits, c->now_ms + SAVE_WAITS_MS);
}

static void enter_group(struct core *c, struct group *g, struct alloc *a, enum queue_as as)
{
    if (!g->pool) {
        g->pool = a->pool;
        g->size = a->slots;
        g->exp = a->kind == KIND_TRIAL ? a->exp : NULL;
        g->id = g->exp ? g->exp->id : 0;
        begin_wait(c, g);
        vec_insert(&g->pool->groups, group_at(g->pool, g->id), g);
    }
    a->queued_as = as;
    if (as == QUEUE_RUNNING && g->exp && g->exp->waited_ms > 0)
        exp_mark(c, g->exp); /* its row says that it waits */
    list_add(list_of(g, as), a);
    count_alloc(c, g, a, 1);
    a->pool->dirty = true;
    if (c->out) /* else it is put back after a question */
        store_want(c, a);
}

/* The group stays listed. */
static void leave_group(struct core *c, struct group *g, struct alloc *a)
{
    a->pool->dirty = true;
    count_alloc(c, g, a, -1);
    list_del(list_of(g, a->queued_as), a);
    if (a->queued_as != QUEUE_PENDING && !g->running.n && !g->ending.n)
        begin_wait(c, g);
    a->queued_as = QUEUE_NONE;
    if (g->pool->guarded == a)
        g->pool->guarded = NULL;
}

void queue_leave(struct core *c, struct alloc *a)
{
    struct group *g = group_of(a);
    if (a->queued_as == QUEUE_NONE)
        return;
    leave_group(c, g, a);
    if (g->pending.n || g->running.n || g->ending.n)
        return;
    vec_remove(&g->pool->groups, group_at(g->pool, g->id));
    g->pool = NULL;
}

void queue_update(struct core *c, struct alloc *a)
{
    enum queue_as as = class_of(a);
    if (as == a->queued_as)
        return;
    if (as == QUEUE_NONE) {
        queue_leave(c, a);
        return;
    }
    if (a->queued_as != QUEUE_NONE)
        leave_group(c, group_of(a), a);
    enter_group(c, group_of(a), a, as);
}

int queue_priority(const struct exp *e)
{
    return e->group->priority ? e->group->priority : e->pool->o.default_priority;
}

int queue_cmp(const struct exp *a, const struct exp *b)
{
    if (a->pool->o.scheduler == CORE_PRIORITY) {
        int pa = queue_priority(a), pb = queue_priority(b);
        if (pa != pb)
            return pa < pb ? -1 : 1;
        if (a->group->position != b->group->position)
            return a->group->position < b->group->position ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

int queue_group_level(const struct group *g)
{
    return g->exp ? queue_priority(g->exp) : 0;
}

int queue_group_cmp(const struct group *a, const struct group *b)
{
    if (!a->exp || !b->exp)
        return (a->exp != NULL) - (b->exp != NULL);
    return queue_cmp(a->exp, b->exp);
}
