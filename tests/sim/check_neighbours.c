/* What is given to a container: of all slots that were free no others are nearer to each other. */
#include "sim.h"

#include <string.h>

enum { COST_NODE = 64, COST_ANY = 128, TRIED_MAX = 12 }; /* hosts of more slots are not tried */

typedef int (*group_fn)(const struct sim_host *h, int slot);

/* How many of the free ones are of the group that all of the mask are of; 0: they are of several.
 * One that is of none is a group. */
static int group_size(const struct sim_host *h, group_fn of, unsigned free, unsigned mask)
{
    int n = 0, group = of(h, __builtin_ctz(mask));
    if (group < 0)
        return (mask & (mask - 1)) == 0;
    for (int i = 0; i < h->slots; i++) {
        if (mask >> i & 1 && of(h, i) != group)
            return 0;
        n += free >> i & 1 && of(h, i) == group;
    }
    return n;
}

static int cost_of(const struct sim_host *h, unsigned free, unsigned mask)
{
    int island = group_size(h, hosts_island, free, mask);
    int node = group_size(h, hosts_numa, free, mask);
    return island ? island : node ? COST_NODE + node : COST_ANY;
}

static void check_choice(const struct sim *m, const struct sim_host *h, unsigned free, unsigned got)
{
    int cost = cost_of(h, free, got), n = __builtin_popcount(got);
    for (unsigned i = free; i && h->slots <= TRIED_MAX; i = (i - 1) & free)
        if (__builtin_popcount(i) == n && cost_of(h, free, i) < cost)
            sim_fail(m, "of slots %#x of %s %#x are given, %#x are nearer to each other", free,
                     h->id, got, i);
}

/* Those that it has, and those that are free now. */
static unsigned slots_of(const struct sim_master *s, const struct core_start *o, unsigned *free)
{
    struct core_slot_view v;
    unsigned got = 0;
    *free = 0;
    for (size_t i = 0; core_slot_at(s->core, o->agent_id, i, &v); i++) {
        bool is_usable = v.state == CORE_SLOT_USABLE || v.forced;
        if (v.container && strcmp(v.container, o->container) == 0)
            got |= 1u << v.id;
        else if (!v.container && v.enabled && is_usable)
            *free |= 1u << v.id;
    }
    return got;
}

/* From the last to the first: what was given later was free then. */
void check_neighbours(struct sim *m, const struct sim_master *s, size_t from)
{
    for (int i = 0; i < m->hosts_n; i++)
        m->hosts[i].given = 0;
    for (size_t i = s->batch.effects.n; i-- > from;) {
        const struct core_effect *e = &s->batch.effects.v[i];
        if (e->kind != CORE_ORDER_START || map_put(m->placed, e->start.container, m))
            continue;
        struct sim_host *h = &m->hosts[hosts_find(m, e->start.agent_id)];
        unsigned free, got = slots_of(s, &e->start, &free);
        h->given |= got;
        if (got)
            check_choice(m, h, free | h->given, got);
    }
}
