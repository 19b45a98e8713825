#include "sched_share.h"

#include <math.h>

enum { WASTERS_PART = 16 };

static int by_demand(const void *x, const void *y)
{
    const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;
    if (a->demand != b->demand)
        return a->demand < b->demand ? -1 : 1;
    return (a->exp->id > b->exp->id) - (a->exp->id < b->exp->id);
}

static int youngest_first(const void *x, const void *y)
{
    const struct group *a = *(struct group *const *)x, *b = *(struct group *const *)y;
    return (a->exp->id < b->exp->id) - (a->exp->id > b->exp->id);
}

static int oldest_first(const void *x, const void *y)
{
    return youngest_first(y, x);
}

static int64_t wanted(const struct group *g)
{
    return g->cap < g->demand ? g->cap : g->demand;
}

/* One round of dealing; returns what is left. */
static int64_t deal(struct share_groups *s, int64_t left)
{
    double weights = 0;
    int64_t start = left;
    for (size_t i = 0; i < s->list.n; i++)
        if (s->list.v[i]->offer < wanted(s->list.v[i]))
            weights += s->list.v[i]->exp->weight;
    if (weights <= 0)
        return 0;
    for (size_t i = 0; i < s->list.n && left > 0; i++) {
        struct group *g = s->list.v[i];
        int64_t missing = wanted(g) - g->offer;
        if (missing <= 0)
            continue;
        double part = floor((double)start * g->exp->weight / weights);
        int64_t share = !(part >= 1) ? 1 : part < (double)left ? (int64_t)part : left;
        share = share < missing ? share : missing;
        g->offer += share;
        left -= share;
    }
    return left;
}

static void fill(struct share_groups *s, int64_t capacity)
{
    for (size_t i = 0; i < s->list.n; i++)
        s->list.v[i]->offer = 0;
    for (int64_t left = capacity; left > 0;)
        left = deal(s, left);
}

/* The whole requests in its offer: the rest of it starts nothing. */
static int64_t usable(const struct group *g)
{
    return g->offer - g->offer % g->size;
}

/* Caps the youngest that cannot use their offers; false: all can. */
static bool cap_wasters(const struct share_groups *s)
{
    struct share_groups w = {0};
    for (size_t i = 0; i < s->list.n; i++)
        if (usable(s->list.v[i]) < s->list.v[i]->offer)
            vec_push(&w.list, s->list.v[i]);
    if (w.list.n)
        qsort(w.list.v, w.list.n, sizeof *w.list.v, youngest_first);
    for (size_t i = 0; i < (w.list.n + WASTERS_PART - 1) / WASTERS_PART; i++)
        w.list.v[i]->cap = usable(w.list.v[i]);
    bool any = w.list.n > 0;
    vec_free(&w.list);
    return any;
}

static bool is_sorted(const struct share_groups *s)
{
    for (size_t i = 1; i < s->list.n; i++)
        if (by_demand(&s->list.v[i - 1], &s->list.v[i]) > 0)
            return false;
    return true;
}

/* The group's offer with one more of its requests in it; 0: it has no use for more. */
static int64_t one_more(const struct group *g)
{
    int64_t next = g->offer + g->size;
    return next <= g->demand ? next : 0;
}

/* One request each in a round, the oldest first: a group was capped for what it could not use of a
 * fair share, which may be less than what the caps of others have left. */
static void deal_rest(const struct share_groups *s, int64_t left)
{
    struct share_groups old = {0};
    bool any = left > 0;
    for (size_t i = s->list.n; left > 0 && i-- > 0;)
        if (one_more(s->list.v[i]))
            vec_push(&old.list, s->list.v[i]);
    if (old.list.n)
        qsort(old.list.v, old.list.n, sizeof *old.list.v, oldest_first);
    while (any) {
        any = false;
        for (size_t i = 0; left > 0 && i < old.list.n; i++) {
            int64_t next = one_more(old.list.v[i]), more = next - old.list.v[i]->offer;
            if (!next || more > left)
                continue;
            old.list.v[i]->offer = next;
            left -= more;
            any = true;
        }
    }
    vec_free(&old.list);
}

void share_deal(struct share_groups *s, int64_t capacity)
{
    int64_t left = capacity;
    if (!is_sorted(s))
        qsort(s->list.v, s->list.n, sizeof *s->list.v, by_demand);
    do
        fill(s, capacity);
    while (cap_wasters(s));
    for (size_t i = 0; i < s->list.n; i++)
        left -= s->list.v[i]->offer;
    deal_rest(s, left);
}
