#include "timers.h"

static void put_timer(struct timers *h, size_t i, struct timer *t)
{
    h->heap.v[i] = t;
    t->pos = i + 1;
}

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->turn < b->turn;
}

static void sift_up(struct timers *h, size_t i)
{
    struct timer *t = h->heap.v[i];
    while (i > 0 && is_before(t, h->heap.v[(i - 1) / 2])) {
        put_timer(h, i, h->heap.v[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put_timer(h, i, t);
}

static void sift_down(struct timers *h, size_t i)
{
    struct timer *t = h->heap.v[i];
    for (size_t k; (k = 2 * i + 1) < h->heap.n; i = k) {
        if (k + 1 < h->heap.n && is_before(h->heap.v[k + 1], h->heap.v[k]))
            k++;
        if (is_before(t, h->heap.v[k]))
            break;
        put_timer(h, i, h->heap.v[k]);
    }
    put_timer(h, i, t);
}

static void disarm_timer(struct timers *h, struct timer *t)
{
    size_t i = t->pos - 1;
    struct timer *last = h->heap.v[--h->heap.n];
    t->pos = 0;
    if (last == t)
        return;
    put_timer(h, i, last);
    sift_up(h, i);
    sift_down(h, last->pos - 1);
}

void timers_set(struct timers *h, struct timer *t, int64_t at_ms)
{
    if (t->pos && t->at_ms == at_ms)
        return;
    if (t->pos)
        disarm_timer(h, t);
    t->at_ms = at_ms;
    if (at_ms == INT64_MAX)
        return;
    t->turn = ++h->turns;
    vec_push(&h->heap, t);
    sift_up(h, h->heap.n - 1);
}

struct timer *timers_first(const struct timers *h)
{
    return h->heap.n ? h->heap.v[0] : NULL;
}
