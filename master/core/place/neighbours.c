#include "neighbours.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Slots with the same key are a group; what is of no island, or no node, is one of its own. */
enum by { BY_ISLAND, BY_NODE };
enum { ALONE = 1 << 20 };

struct group_of_slots {
    size_t at, n; /* v[at], the lowest, and those after it */
};

static int key_of(const struct neighbour *s, enum by by)
{
    int key = by == BY_ISLAND ? s->island : s->numa;
    return key >= 0 ? key : ALONE + s->slot;
}

static int order_slots(const struct neighbour *a, const struct neighbour *b, enum by by)
{
    int x = key_of(a, by), y = key_of(b, by);
    return x != y ? (x > y) - (x < y) : (a->slot > b->slot) - (a->slot < b->slot);
}

static int order_by_island(const void *a, const void *b)
{
    return order_slots(a, b, BY_ISLAND);
}

static int order_by_node(const void *a, const void *b)
{
    return order_slots(a, b, BY_NODE);
}

static struct group_of_slots group_at(const struct neighbour *v, size_t n, size_t at, enum by by)
{
    size_t end = at + 1;
    while (end < n && key_of(&v[end], by) == key_of(&v[at], by))
        end++;
    return (struct group_of_slots){at, end - at};
}

/* Enough for k before too few; of those with enough the smallest, else the largest. */
static bool is_better(const struct neighbour *v, struct group_of_slots a, struct group_of_slots b,
                      size_t k)
{
    const struct neighbour *x = &v[a.at], *y = &v[b.at];
    bool is_enough = a.n >= k;
    if (is_enough != (b.n >= k))
        return is_enough;
    if (a.n != b.n)
        return is_enough ? a.n < b.n : a.n > b.n;
    return x->node_free != y->node_free ? x->node_free < y->node_free : x->slot < y->slot;
}

/* The best group for k; n > 0. Sorts v. */
static struct group_of_slots find_group(struct neighbour *v, size_t n, size_t k, enum by by)
{
    qsort(v, n, sizeof *v, by == BY_ISLAND ? order_by_island : order_by_node);
    struct group_of_slots best = group_at(v, n, 0, by);
    for (size_t i = best.n; i < n;) {
        struct group_of_slots g = group_at(v, n, i, by);
        if (is_better(v, g, best, k))
            best = g;
        i += g.n;
    }
    return best;
}

/* Leaves only the best group, if it has enough for k. */
static bool narrow_to_group(struct neighbour **v, size_t *n, size_t k, enum by by)
{
    struct group_of_slots g = find_group(*v, *n, k, by);
    if (g.n < k)
        return false;
    *v += g.at;
    *n = g.n;
    return true;
}

/* Whether it matters which; fills in node_free. */
static bool count_nodes(struct neighbour *v, size_t n)
{
    bool any = false;
    qsort(v, n, sizeof *v, order_by_node);
    for (size_t i = 0; i < n;) {
        struct group_of_slots g = group_at(v, n, i, BY_NODE);
        for (; i < g.at + g.n; i++) {
            v[i].node_free = g.n;
            any |= v[i].island >= 0 || v[i].numa >= 0;
        }
    }
    return any;
}

static void take_lowest(const struct neighbour *v, size_t k, bool *taken)
{
    for (size_t i = 0; i < k; i++)
        taken[v[i].slot] = true;
}

void neighbours_pick(struct neighbour *v, size_t n, size_t k, bool *taken)
{
    assert(k <= n);
    if (!count_nodes(v, n) || k == n) {
        take_lowest(v, k, taken);
        return;
    }
    while (k > 0) {
        bool is_one = narrow_to_group(&v, &n, k, BY_ISLAND);
        narrow_to_group(&v, &n, k, BY_NODE);
        struct group_of_slots g = find_group(v, n, k, is_one ? BY_NODE : BY_ISLAND);
        if (g.n == 1) /* none that are left are joined */
            g = find_group(v, n, k, BY_NODE);
        size_t some = g.n < k ? g.n : k;
        take_lowest(v + g.at, some, taken);
        memmove(v + g.at, v + g.at + g.n, (n - g.at - g.n) * sizeof *v);
        n -= g.n;
        k -= some;
    }
}
