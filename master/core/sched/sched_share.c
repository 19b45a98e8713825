#include "sched_share.h"

#include <math.h>

enum { WASTERS_PART = 16 };

static int youngest_first(const void *x, const void *y)
{
    const struct share *a = *(struct share *const *)x, *b = *(struct share *const *)y;
    return (a->at < b->at) - (a->at > b->at);
}

static int oldest_first(const void *x, const void *y)
{
    return youngest_first(y, x);
}

void share_add(struct share_groups *s, struct group *g, size_t at, int64_t demand)
{
    struct share in = {.g = g,
                       .at = (int64_t)at,
                       .size = g->size,
                       .demand = demand,
                       .cap = INT64_MAX,
                       .was_offer = g->offer,
                       .was_excess = g->excess,
                       .held = g->held,
                       .weight = g->weight,
                       .waits = g->next != NULL,
                       .is_capped = g->max_slots >= 0};
    vec_push(&s->list, in);
}

/* ---- By demand: a radix sort, as the list is in order of id, which stays among equals ---- */

static bool is_sorted(const struct share_groups *s)
{
    for (size_t i = 1; i < s->list.n; i++)
        if (s->list.v[i - 1].demand > s->list.v[i].demand)
            return false;
    return true;
}

static size_t radix_digit(const struct share *e, int shift)
{
    return (uint64_t)e->demand >> shift & 255;
}

static void sort_digit(const struct share *from, struct share *to, size_t n, int shift)
{
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++)
        at[radix_digit(&from[i], shift) + 1]++;
    for (size_t i = 1; i < 256; i++)
        at[i] += at[i - 1];
    for (size_t i = 0; i < n; i++)
        to[at[radix_digit(&from[i], shift)]++] = from[i];
}

static void sort_by_demand(struct share_groups *s)
{
    struct share_groups other = {0};
    int64_t most = 0;
    if (is_sorted(s))
        return;
    for (size_t i = 0; i < s->list.n; i++)
        most = s->list.v[i].demand > most ? s->list.v[i].demand : most;
    for (int shift = 0; shift < 64 && most >> shift; shift += 8) {
        vec_reserve(&other.list, s->list.n);
        sort_digit(s->list.v, other.list.v, s->list.n, shift);
        other.list.n = s->list.n;
        struct share_groups was = *s;
        *s = other;
        other = was;
    }
    vec_free(&other.list);
}

/* ---- Dealing ---- */

static int64_t wanted_slots(const struct share *e)
{
    return e->cap < e->demand ? e->cap : e->demand;
}

/* One round of dealing; returns what is left. */
static int64_t deal_round(struct share_groups *s, int64_t left)
{
    double weights = 0;
    int64_t start = left;
    for (size_t i = 0; i < s->list.n; i++)
        if (s->list.v[i].offer < wanted_slots(&s->list.v[i]))
            weights += s->list.v[i].weight;
    if (weights <= 0)
        return 0;
    for (size_t i = 0; i < s->list.n && left > 0; i++) {
        struct share *g = &s->list.v[i];
        int64_t missing = wanted_slots(g) - g->offer;
        if (missing <= 0)
            continue;
        double part = floor((double)start * g->weight / weights);
        int64_t share = !(part >= 1) ? 1 : part < (double)left ? (int64_t)part : left;
        share = share < missing ? share : missing;
        g->offer += share;
        left -= share;
    }
    return left;
}

static void fill_offers(struct share_groups *s, int64_t capacity)
{
    for (size_t i = 0; i < s->list.n; i++)
        s->list.v[i].offer = 0;
    for (int64_t left = capacity; left > 0;)
        left = deal_round(s, left);
}

/* The whole requests in its offer: the rest of it starts nothing. */
static int64_t usable_slots(const struct share *g)
{
    return g->offer - g->offer % g->size;
}

/* Caps the youngest that cannot use their offers; false: all can. */
static bool cap_wasters(const struct share_groups *s)
{
    VEC(struct share *) w = {0};
    for (size_t i = 0; i < s->list.n; i++)
        if (usable_slots(&s->list.v[i]) < s->list.v[i].offer)
            vec_push(&w, &s->list.v[i]);
    if (w.n)
        qsort(w.v, w.n, sizeof *w.v, youngest_first);
    for (size_t i = 0; i < (w.n + WASTERS_PART - 1) / WASTERS_PART; i++)
        w.v[i]->cap = usable_slots(w.v[i]);
    bool any = w.n > 0;
    vec_free(&w);
    return any;
}

/* The group's offer with one more of its requests in it; 0: it has no use for more. */
static int64_t one_more(const struct share *g)
{
    int64_t next = g->offer + g->size;
    return next <= g->demand ? next : 0;
}

/* One request each in a round, the oldest first: a group was capped for what it could not use of a
 * fair share, which may be less than what the caps of others have left. */
static void deal_rest(const struct share_groups *s, int64_t left)
{
    VEC(struct share *) old = {0};
    bool any = left > 0;
    for (size_t i = s->list.n; left > 0 && i-- > 0;)
        if (one_more(&s->list.v[i]))
            vec_push(&old, &s->list.v[i]);
    if (old.n)
        qsort(old.v, old.n, sizeof *old.v, oldest_first);
    while (any) {
        any = false;
        for (size_t i = 0; left > 0 && i < old.n; i++) {
            int64_t next = one_more(old.v[i]), more = next - old.v[i]->offer;
            if (!next || more > left)
                continue;
            old.v[i]->offer = next;
            left -= more;
            any = true;
        }
    }
    vec_free(&old);
}

void share_deal(struct share_groups *s, int64_t capacity)
{
    int64_t left = capacity;
    sort_by_demand(s);
    do
        fill_offers(s, capacity);
    while (cap_wasters(s));
    for (size_t i = 0; i < s->list.n; i++)
        left -= s->list.v[i].offer;
    deal_rest(s, left);
}
