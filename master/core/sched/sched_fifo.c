/*
 * First in, first out: by submission of the job, then of the request. While the first in line does
 * not fit, those behind it may back-fill slots; they are asked to stop as soon as it could start
 * without them.
 */
#include "scheduler.h"

void sched_fifo(struct sched *s)
{
    for (size_t i = 0; i < s->waiting.n; i++) {
        struct group *g = s->waiting.v[i].g;
        if (s->is_backfill && fit_free(&s->pool->fit) == 0)
            return;
        while (sched_start_next(s, g))
            ;
        if (!g->next || s->is_backfill)
            continue;
        sched_keep_room(s, g->next);
        s->is_backfill = true;
    }
}
