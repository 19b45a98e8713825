#include "slots.h"

#include "agent.h"
#include "effects.h"
#include "fit.h"
#include <string.h>

bool slot_is_out(const struct slot *s)
{
    return s->off || (s->state != CORE_SLOT_USABLE && !s->forced);
}

bool slot_is_listed(const struct slot_ids *ids, int id)
{
    for (size_t i = 0; i < ids->v.n; i++)
        if (ids->v.v[i] == id)
            return true;
    return false;
}

void slot_list(struct slot_ids *ids, int id, bool listed)
{
    for (size_t i = 0; i < ids->v.n; i++)
        if (ids->v.v[i] == id) {
            if (!listed)
                vec_remove(&ids->v, i);
            return;
        }
    if (listed)
        vec_push(&ids->v, id);
}

/* What nobody has looked at yet may be in any state: enabling it adds no override and ends none. */
void slot_force(struct agent *a, struct slot *s, bool enabled)
{
    s->forced =
        enabled && s->state != CORE_SLOT_USABLE && (s->forced || s->state != CORE_SLOT_UNSEEN);
    slot_list(&a->slots_forced, s->id, s->forced);
}

/* A task on it may suffer from it: its log says what its host has seen. */
static void tell_holder(struct core *c, const struct agent *a, const struct slot *s)
{
    if (!s->holder || s->state == CORE_SLOT_UNSEEN)
        return;
    if (s->state == CORE_SLOT_USABLE)
        fx_log(c, s->holder->alloc, FX_INFO, "Slot %d of agent %s is usable again.", s->id, a->id);
    else
        fx_log(c, s->holder->alloc, FX_WARNING, "Slot %d of agent %s, which this run has: %s.",
               s->id, a->id, s->why);
}

/* True where the state is another: which process has it, or how much is held, may change often. */
static bool judge_slot(struct slot *s, enum core_slot_state state, const char *why)
{
    bool is_news = s->state != state;
    char *copy = det_strdup(why);
    free(s->why);
    s->why = copy;
    s->state = state;
    return is_news;
}

/* The override was of what it had then. */
static void end_override(struct core *c, struct agent *a, struct slot *s)
{
    if (!s->forced || s->state != CORE_SLOT_USABLE)
        return;
    slot_force(a, s, false);
    agent_mark(c, a);
}

/* True where the state is another. */
static bool set_sight(struct core *c, struct agent *a, struct slot *s,
                      const struct core_slot_sight *in)
{
    bool was_unseen = s->state == CORE_SLOT_UNSEEN;
    bool usable = in->state == CORE_SLOT_USABLE;
    bool is_news = judge_slot(s, in->state, !usable && in->text ? in->text : "");
    if (is_news && !(usable && was_unseen))
        tell_holder(c, a, s);
    end_override(c, a, s);
    return is_news;
}

static const struct core_slot_sight *find_sight(const struct core_hello *h, int id)
{
    for (size_t i = 0; i < h->unfit_n; i++)
        if (h->unfit[i].slot == id)
            return &h->unfit[i];
    return NULL;
}

void slots_on_hello(struct core *c, struct agent *a, const struct core_hello *h)
{
    for (size_t i = 0; i < a->slots.n; i++) {
        struct slot *s = &a->slots.v[i];
        const struct core_slot_sight *in = find_sight(h, s->id);
        if (!h->judges)
            judge_slot(s, CORE_SLOT_USABLE, "");
        else
            set_sight(c, a, s, in ? in : &(struct core_slot_sight){s->id, CORE_SLOT_USABLE, ""});
    }
}

int slots_on_sight(struct core *c, struct agent *a, const struct core_slot_sight *in,
                   struct det_err *err)
{
    if (in->state >= CORE_SLOT_STATE_COUNT)
        return det_fail(err, DET_EINVAL, "slot %d of agent %s is in state %d", in->slot, a->id,
                        (int)in->state);
    for (size_t i = 0; i < a->slots.n; i++)
        if (a->slots.v[i].id == in->slot) {
            if (set_sight(c, a, &a->slots.v[i], in)) {
                fit_refresh(a);
                a->pool->dirty = true;
            }
            return 0;
        }
    return det_fail(err, DET_ENOENT, "slot %d of agent %s not found", in->slot, a->id);
}
