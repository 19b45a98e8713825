/* What all schedulers do: start, count, release, and take turns. */
#include "scheduler.h"

#include "alloc.h"
#include "avoid.h"
#include "quota.h"

bool sched_start(struct sched *s, struct alloc *a)
{
    if (!fit_place(&s->pool->fit, a, &s->tmp))
        return false;
    struct sched_start st = {
        .alloc = a, .first = s->nodes.n, .n = s->tmp.nodes.n, .is_backfill = s->is_backfill};
    fit_take(&s->pool->fit, s->tmp.nodes.v, s->tmp.nodes.n);
    for (size_t i = 0; i < s->tmp.nodes.n; i++)
        vec_push(&s->nodes, s->tmp.nodes.v[i]);
    vec_push(&s->starts, st);
    return true;
}

bool sched_is_choosy(const struct alloc *a)
{
    return (a->trial && avoid_any(a->trial, AVOID_ANY)) || (a->kind == KIND_GC && a->store);
}

static bool has_room_in_cap(const struct group *g, int64_t taking)
{
    int64_t max = g->max_slots;
    return max < 0 || g->held + g->releasing + taking + g->size <= max;
}

bool sched_may(const struct sched *s, const struct group *g)
{
    if (!g->exp || g->size == 0)
        return true;
    return has_room_in_cap(g, g->taking) && quota_left(s->c, g->user, g->pool) >= g->size;
}

void sched_count(struct group *g)
{
    g->taking += g->size;
    if (g->exp)
        g->user->taking += g->size;
}

bool sched_start_next(struct sched *s, struct group *g)
{
    while (g->next && sched_may(s, g)) {
        struct alloc *a = g->next;
        bool started = sched_start(s, a);
        if (!started && !sched_is_choosy(a))
            return false;
        g->next = a->next;
        if (started) {
            sched_count(g);
            return true;
        }
    }
    g->next = NULL;
    return false;
}

void sched_release(struct sched *s, struct alloc *a, const char *why)
{
    for (size_t i = 0; i < s->releases_guard; i++)
        if (s->releases.v[i].alloc == a)
            return;
    vec_push(&s->releases, (struct sched_release){a, why});
}

static bool is_first(const struct turn *a, const struct turn *b)
{
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

void turns_push(struct turns *t, int64_t key, struct group *g)
{
    struct turn in = {key, g->id, g};
    vec_push(&t->heap, in);
    size_t i = t->heap.n - 1;
    for (; i > 0 && is_first(&in, &t->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap.v[i] = t->heap.v[(i - 1) / 2];
    t->heap.v[i] = in;
}

struct group *turns_pop(struct turns *t)
{
    if (t->heap.n == 0)
        return NULL;
    struct group *first = t->heap.v[0].g;
    struct turn last = t->heap.v[--t->heap.n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < t->heap.n; i = k) {
        if (k + 1 < t->heap.n && is_first(&t->heap.v[k + 1], &t->heap.v[k]))
            k++;
        if (!is_first(&t->heap.v[k], &last))
            break;
        t->heap.v[i] = t->heap.v[k];
    }
    if (t->heap.n)
        t->heap.v[i] = last;
    return first;
}

enum core_wait sched_wait(const struct core *c, const struct group *g)
{
    bool is_dealt = g->exp && g->size > 0;
    if (!g->could)
        return g->has_store ? CORE_WAIT_AGENTS : CORE_WAIT_STORE;
    if (is_dealt && !has_room_in_cap(g, 0))
        return CORE_WAIT_MAX_SLOTS;
    if (is_dealt && quota_left(c, g->user, g->pool) < g->size)
        return CORE_WAIT_QUOTA;
    if (is_dealt && g->pool->o.scheduler == CORE_FAIR_SHARE && g->held + g->size > g->offer)
        return CORE_WAIT_SHARE;
    return CORE_WAIT_ROOM;
}
