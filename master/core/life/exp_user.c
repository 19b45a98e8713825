/* What people ask of an experiment. */
#include "exp.h"

#include "agent.h"
#include "conf.h"
#include "job.h"
#include "trial.h"
#include <math.h>

static int refuse_action(const struct exp *e, const char *what, struct det_err *err)
{
    return det_fail(err, DET_ESTATE, "experiment %lld is %s: it cannot be %s", (long long)e->id,
                    exp_state_text(e->state), what);
}

/* Trials that are stopping on their own stay so. */
static void set_trials(struct core *c, struct exp *e, enum trial_state to, const char *reason)
{
    for (size_t i = 0; i < e->trials.n; i++)
        if (e->trials.v[i]->state == TRIAL_ACTIVE || e->trials.v[i]->state == TRIAL_PAUSED)
            trial_set(c, e->trials.v[i], to, reason);
}

int exp_activate(struct core *c, struct exp *e, struct det_err *err)
{
    if (e->state == EXP_ACTIVE)
        return 0;
    if (e->state != EXP_PAUSED)
        return refuse_action(e, "activated", err);
    exp_goto(c, e, EXP_ACTIVE);
    set_trials(c, e, TRIAL_ACTIVE, "activated");
    return 0;
}

int exp_pause(struct core *c, struct exp *e, struct det_err *err)
{
    if (e->state == EXP_PAUSED)
        return 0;
    if (e->state != EXP_ACTIVE)
        return refuse_action(e, "paused", err);
    exp_goto(c, e, EXP_PAUSED);
    set_trials(c, e, TRIAL_PAUSED, "the experiment was paused");
    return 0;
}

int exp_cancel(struct core *c, struct exp *e, struct det_err *err)
{
    if (e->state == EXP_DELETING)
        return refuse_action(e, "canceled", err);
    if (e->state == EXP_ACTIVE || e->state == EXP_PAUSED)
        exp_stop(c, e, EXP_STOPPING_CANCELED, "the experiment was canceled");
    return 0;
}

int exp_kill(struct core *c, struct exp *e, struct det_err *err)
{
    if (e->state == EXP_STOPPING_KILLED)
        return 0;
    if (!exp_may(e, EXP_STOPPING_KILLED))
        return refuse_action(e, "killed", err);
    exp_stop(c, e, EXP_STOPPING_KILLED, "the experiment was killed");
    return 0;
}

static int patch_check(const struct core *c, const struct exp *e, const struct core_event *patches,
                       size_t i, struct det_err *err)
{
    const struct core_patch *p = &patches[i].patch;
    if (p->has_priority && (p->priority < 1 || p->priority > 99))
        return det_fail(err, DET_EINVAL, "priority: %d; expected 1 to 99", p->priority);
    if (p->has_weight && !(p->weight > 0 && isfinite(p->weight)))
        return det_fail(err, DET_EINVAL, "weight: %g; expected a number above 0", p->weight);
    int rc = p->has_max_slots ? conf_check_max_slots(&e->conf, p->max_slots, err) : 0;
    return rc < 0 ? rc : job_check(c, e, patches, i, err);
}

int core_patch_check(const struct core *c, const struct core_event *patches, size_t i,
                     struct det_err *err)
{
    const struct exp *e = exp_find(c, patches[i].exp_id);
    if (!e)
        return det_fail(err, DET_ENOENT, "experiment %lld not found", (long long)patches[i].exp_id);
    return patch_check(c, e, patches, i, err);
}

const char *core_patch_pool(const struct core *c, const struct core_event *patches, size_t i)
{
    const struct exp *e = exp_find(c, patches[i].exp_id);
    return e ? job_pool(c, e, patches, i)->name : NULL;
}

int exp_patch(struct core *c, struct exp *e, const struct core_event *ev, struct det_err *err)
{
    const struct core_patch *p = &ev->patch;
    int rc = patch_check(c, e, ev, 0, err);
    if (rc < 0)
        return rc;
    job_move(c, e, p);
    if (p->has_priority && p->priority != e->group->priority) {
        e->group->priority = p->priority;
        e->group->position = (double)e->id;
    }
    if (p->has_weight)
        e->group->weight = p->weight;
    if (p->has_max_slots)
        e->group->max_slots = p->max_slots;
    e->pool->dirty = true;
    exp_mark(c, e);
    return 0;
}
