/* What a trial's log policies do to it (docs/contract/trial.md 2). Which line matched which pattern
 * is found where logs come in; it may be told again after a crash, so a repeat changes nothing. */
#include "trial.h"

#include "agent.h"
#include "avoid.h"
#include "effects.h"
#include "fit.h"
#include <string.h>

/* Into the log of the trial, which may have no allocation now. */
#define SAY(c, t, ...)                                                                             \
    fx_log(c, (t)->alloc ? (t)->alloc : &(const struct alloc){.task_id = (t)->task_id}, __VA_ARGS__)

static void cancel_retries(struct core *c, struct trial *t, const char *pattern)
{
    if (t->no_retry)
        return;
    t->no_retry = det_strdup(pattern);
    trial_mark(c, t);
    SAY(c, t, FX_WARNING,
        "A line of this log matches \"%s\" (log policy cancel_retries): trial %lld is not "
        "restarted after its next failure.",
        pattern, (long long)t->id);
}

static bool is_waiting(const struct trial *t)
{
    return t->alloc && t->alloc->state == ALLOC_PENDING;
}

/* Only agents that are known, so that what a trial prints cannot make the list longer than that. */
static void exclude_agent(struct core *c, struct trial *t, const char *agent_id,
                          const char *pattern)
{
    if (!agent_id || avoid_is(t, agent_id, BIT(AVOID_POLICY)) || !agent_find(c, agent_id))
        return;
    det_cleanup(freep) char *why = det_asprintf("a line of the log matched \"%s\"", pattern);
    avoid_add(c, t, agent_id, AVOID_POLICY, why, 0);
    SAY(c, t, FX_WARNING,
        "A line of this log matches \"%s\" (log policy exclude_node): trial %lld is not placed on "
        "agent %s again.",
        pattern, (long long)t->id, agent_id);
    if (is_waiting(t)) /* else its end decides */
        trial_give_up(c, t);
}

void trial_on_log_policy(struct core *c, struct trial *t, const struct core_policy *p,
                         const char *agent_id)
{
    if (trial_state_is_terminal(t->state) || !p->pattern)
        return;
    if (p->action == CORE_CANCEL_RETRIES)
        cancel_retries(c, t, p->pattern);
    else
        exclude_agent(c, t, agent_id, p->pattern);
}

/* Agents that are off or away count. */
static bool lacks_agents(const struct trial *t)
{
    const struct fit *f = &t->exp->pool->fit;
    int64_t slots = t->exp->conf.slots;
    return avoid_any(t, BIT(AVOID_POLICY)) && fit_ever(f, slots) &&
           !fit_ever_for(f, slots, t, BIT(AVOID_POLICY));
}

/* Soon after a start of the master some agents may not have said hello yet: what cannot be taken
 * back is not decided by their absence, but when their time is over. */
bool trial_give_up(struct core *c, struct trial *t)
{
    if (avoid_any(t, BIT(AVOID_POLICY)) && c->now_ms < c->settled_ms)
        timers_set(&c->timers, &c->settled, c->settled_ms);
    if (c->now_ms < c->settled_ms || !lacks_agents(t))
        return false;
    SAY(c, t, FX_ERROR,
        "Trial %lld cannot run again: without the %zu agents that its log policies exclude, "
        "resource pool %s has no room for its %lld slots.",
        (long long)t->id, avoid_count(t, BIT(AVOID_POLICY)), t->exp->pool->name,
        (long long)t->exp->conf.slots);
    trial_set(c, t, TRIAL_STOPPING_ERROR, "its log policies leave too few agents");
    return true;
}

void trial_on_settled(struct core *c)
{
    timers_set(&c->timers, &c->settled, INT64_MAX);
    for (size_t i = 0; i < c->exps.n; i++)
        for (size_t k = 0; k < c->exps.v[i]->trials.n; k++)
            if (is_waiting(c->exps.v[i]->trials.v[k]))
                trial_give_up(c, c->exps.v[i]->trials.v[k]);
}
