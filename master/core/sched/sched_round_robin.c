/* Round robin: one allocation per group in turn. Whose turn it is follows from what is placed: the
 * group with the fewest allocations, the oldest first. Nothing is asked to stop. */
#include "scheduler.h"

static int64_t count_placed(const struct group *g)
{
    return (int64_t)(g->running.n + g->ending.n) + g->taking / g->size;
}

void sched_round_robin(struct sched *s)
{
    struct turns t = {0};
    for (size_t i = 0; fit_free(&s->pool->fit) > 0 && i < s->waiting.n; i++)
        if (s->waiting.v[i].g->next)
            turns_push(&t, count_placed(s->waiting.v[i].g), s->waiting.v[i].g);
    for (struct group *g; fit_free(&s->pool->fit) > 0 && (g = turns_pop(&t));)
        if (sched_start_next(s, g) && g->next)
            turns_push(&t, count_placed(g), g);
    vec_free(&t.heap);
}
