/* What is live, counted: for the master's gauges. */
#include "agent.h"
#include "model.h"

static void count_agents(const struct core *c, struct core_counts *n)
{
    for (size_t i = 0; i < c->agents.n; i++) {
        const struct agent *a = c->agents.v[i];
        if (a->state == AGENT_ABSENT)
            continue;
        struct agent_slots s = agent_slots(a);
        n->agents_connected += a->state == AGENT_UP;
        n->agents_lost += a->state == AGENT_LOST;
        n->slots_free += s.free;
        n->slots_used += s.used;
        n->slots_disabled += s.disabled;
    }
}

void core_count(const struct core *c, struct core_counts *ret)
{
    *ret = (struct core_counts){.oldest_pending_us = INT64_MAX};
    for (size_t i = 0; i < c->exps.n; i++) {
        const struct exp *e = c->exps.v[i];
        ret->experiments[e->state]++;
        for (size_t k = 0; k < e->trials.n; k++)
            ret->trials[e->trials.v[k]->state]++;
    }
    for (size_t i = 0; i < c->allocs.n; i++) {
        const struct alloc *a = c->allocs.v[i];
        ret->allocations[a->state]++;
        if (a->state == ALLOC_PENDING && a->start_us < ret->oldest_pending_us)
            ret->oldest_pending_us = a->start_us;
    }
    count_agents(c, ret);
}
