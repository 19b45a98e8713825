#include "queue.h"

static size_t find(struct alloc **v, size_t n, uint64_t seq)
{
    size_t lo = 0;
    while (lo < n) {
        size_t mid = lo + (n - lo) / 2;
        if (v[mid]->seq < seq)
            lo = mid + 1;
        else
            n = mid;
    }
    return lo;
}

#define ADD(list, a)                                                                               \
    do {                                                                                           \
        size_t at_ = find((list)->v, (list)->n, (a)->seq);                                         \
        vec_push(list, a);                                                                         \
        memmove((list)->v + at_ + 1, (list)->v + at_, ((list)->n - 1 - at_) * sizeof *(list)->v);  \
        (list)->v[at_] = (a);                                                                      \
    } while (0)
#define REMOVE(list, a)                                                                            \
    do {                                                                                           \
        size_t at_ = find((list)->v, (list)->n, (a)->seq);                                         \
        if (at_ < (list)->n && (list)->v[at_] == (a))                                              \
            vec_remove(list, at_);                                                                 \
    } while (0)

void queue_add_pending(struct alloc *a)
{
    ADD(&a->pool->pending, a);
    a->pool->dirty = true;
}

void queue_add_placed(struct alloc *a)
{
    ADD(&a->pool->placed, a);
}

void queue_remove(struct alloc *a)
{
    REMOVE(&a->pool->pending, a);
    REMOVE(&a->pool->placed, a);
}

int queue_priority(const struct core *c, const struct exp *e)
{
    return e->priority ? e->priority : c->o.default_priority;
}

int queue_cmp(const struct core *c, const struct exp *a, const struct exp *b)
{
    int pa = queue_priority(c, a), pb = queue_priority(c, b);
    if (c->o.scheduler == CORE_PRIORITY && pa != pb)
        return pa < pb ? -1 : 1;
    if (c->o.scheduler == CORE_PRIORITY && a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}
