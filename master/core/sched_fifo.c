/* First in, first out: by submission of the job, then of the request. */
#include "scheduler.h"

void sched_fifo(struct sched *s)
{
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        if (g->size == 0)
            continue;
        while (sched_start_next(s, g))
            ;
        if (g->next)
            return;
    }
}
