#include "scheduler.h"

#include "alloc.h"

bool sched_start(struct core *c, struct fit *f, struct alloc *a)
{
    struct placement p = {0};
    bool fits = fit_place(f, a->slots, a->hash, &p);
    if (fits) {
        fit_take(f, &p);
        alloc_place(c, a, &p);
    }
    vec_free(&p.nodes);
    return fits;
}

void sched_pending(const struct pool *p, struct sched_list *ret)
{
    ret->list.n = 0;
    for (size_t i = 0; i < p->pending.n; i++)
        vec_push(&ret->list, p->pending.v[i]);
}

static void start_zero_slot(struct core *c, struct pool *pool)
{
    struct sched_list l = {0};
    struct fit f;
    for (size_t i = 0; i < pool->pending.n; i++)
        if (pool->pending.v[i]->slots == 0)
            vec_push(&l.list, pool->pending.v[i]);
    if (l.list.n)
        fit_begin(&f, c, pool);
    for (size_t i = 0; i < l.list.n; i++)
        if (!sched_start(c, &f, l.list.v[i]))
            break;
    vec_free(&l.list);
}

void sched_run(struct core *c, struct pool *pool)
{
    pool->dirty = false;
    if (pool->pending.n == 0 && c->o.scheduler != CORE_FAIR_SHARE)
        return;
    if (c->o.scheduler == CORE_PRIORITY) {
        sched_priority(c, pool);
        return;
    }
    start_zero_slot(c, pool);
    if (c->o.scheduler == CORE_FIFO)
        sched_fifo(c, pool);
    else
        sched_fair(c, pool);
}
