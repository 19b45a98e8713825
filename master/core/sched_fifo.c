/* First in, first out: by submission of the job, then of the request; nothing overtakes. */
#include "scheduler.h"

#include "queue.h"

static int order(const void *x, const void *y)
{
    const struct alloc *a = *(struct alloc *const *)x, *b = *(struct alloc *const *)y;
    if (a->exp_id != b->exp_id)
        return a->exp_id < b->exp_id ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

void sched_fifo(struct core *c, struct pool *pool)
{
    struct sched_list l = {0};
    struct fit f;
    sched_pending(pool, &l);
    if (l.list.n)
        qsort(l.list.v, l.list.n, sizeof *l.list.v, order);
    fit_begin(&f, c, pool);
    for (size_t i = 0; i < l.list.n; i++)
        if (l.list.v[i]->slots > 0 && !sched_start(c, &f, l.list.v[i]))
            break;
    vec_free(&l.list);
}
