/* What administrators switch off and on: agents and single slots. */
#include "agent.h"

#include "alloc.h"
#include "fit.h"
#include "slots.h"
#include <string.h>

static enum off off_by(const struct core_agent_set *s)
{
    return s->enabled ? NOT_OFF : s->drain ? OFF_DRAINING : OFF_AT_ONCE;
}

static int set_slot(struct core *c, struct agent *a, const struct core_agent_set *s,
                    struct det_err *err)
{
    for (size_t i = 0; i < a->slots.n; i++) {
        struct slot *slot = &a->slots.v[i];
        if (slot->id != s->slot)
            continue;
        slot->off = off_by(s);
        slot_list(&a->slots_off, s->slot, slot->off);
        slot_force(a, slot, s->enabled);
        if (slot->off == OFF_AT_ONCE && slot->holder)
            alloc_kill(c, slot->holder->alloc, KILL_DISABLED, "slot %d of agent %s was disabled",
                       s->slot, a->id);
        return 0;
    }
    return det_fail(err, DET_ENOENT, "slot %d of agent %s not found", s->slot, a->id);
}

static void set_agent(struct core *c, struct agent *a, const struct core_agent_set *s)
{
    a->off = off_by(s);
    if (a->off != OFF_AT_ONCE)
        return;
    for (size_t i = 0; i < a->containers.n; i++)
        alloc_kill(c, a->containers.v[i]->alloc, KILL_DISABLED, "agent %s was disabled", a->id);
}

int agent_set(struct core *c, const struct core_agent_set *s, struct det_err *err)
{
    struct agent *a = agent_find(c, s->agent_id);
    if (!a || a->state == AGENT_ABSENT)
        return det_fail(err, DET_ENOENT, "agent %s not found", s->agent_id ? s->agent_id : "");
    if (a->state == AGENT_LOST)
        return det_fail(err, DET_ESTATE, "agent %s is not connected; wait until it is back or gone",
                        a->id);
    if (s->slot >= 0) {
        int rc = set_slot(c, a, s, err);
        if (rc < 0)
            return rc;
    } else {
        set_agent(c, a, s);
    }
    agent_mark(c, a);
    fit_refresh(a);
    a->pool->dirty = true;
    return 0;
}
