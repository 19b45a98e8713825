#include "park.h"

#include "alloc.h"
#include "effects.h"
#include "exp.h"
#include "save.h"
#include "trial.h"

bool park_owner(const struct core_effect *f, int64_t *ret_exp, int64_t *ret_trial)
{
    *ret_trial = 0;
    switch (f->kind) {
    case CORE_SAVE_EXPERIMENT: *ret_exp = f->experiment.id; return true;
    case CORE_SAVE_EXP_STATE: *ret_exp = f->exp_state.id; return true;
    case CORE_SAVE_SEARCH_EVENT: *ret_exp = f->search_event.experiment_id; return true;
    case CORE_SAVE_SEARCH_SNAPSHOT: *ret_exp = f->search_snapshot.experiment_id; return true;
    case CORE_DELETE_SEARCH_SNAPSHOT:
    case CORE_DELETE_EXPERIMENT: *ret_exp = f->exp_id; return true;
    case CORE_SAVE_TRIAL:
        *ret_exp = f->trial.experiment_id;
        *ret_trial = f->trial.id;
        return true;
    case CORE_SAVE_ALLOCATION:
        *ret_exp = f->allocation.experiment_id;
        *ret_trial = f->allocation.trial_id;
        return true;
    case CORE_SAVE_AGENT:
    case CORE_SAVE_STORE:
    case CORE_SAVE_TIMELINE:
    case CORE_SAVE_PARKED:
    case CORE_ANY_SENT:
    case CORE_TASK_LOG:
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT: break;
    }
    return false;
}

static void drop_effect(struct core_effects *fx, size_t i)
{
    fx->v[i].kind = CORE_NOTHING;
}

struct owner {
    int64_t exp_id, trial_id; /* trial 0: all of the experiment */
};

static bool is_owned(const struct owner *o, int64_t exp_id, int64_t trial_id)
{
    return o->trial_id ? trial_id == o->trial_id : exp_id == o->exp_id;
}

/* An effect that must not be carried out without the rows it follows from. */
static bool is_of(const struct core_effect *f, const struct owner *o)
{
    int64_t exp_id, trial_id;
    if (f->kind == CORE_ORDER_START)
        return is_owned(o, f->start.exp_id, f->start.trial_id);
    if (f->kind == CORE_PURGE)
        return is_owned(o, f->exp_id, 0);
    if (f->kind == CORE_SAVE_TIMELINE)
        return is_owned(o, f->timeline.experiment_id, f->timeline.trial_id);
    return park_owner(f, &exp_id, &trial_id) && is_owned(o, exp_id, trial_id);
}

static void refuse_reply(struct core_effects *out, struct core_reply *r, const char *why)
{
    if (r->code == 0)
        *r = (struct core_reply){
            .request = r->request, .code = DET_EINVAL, .text = fx_str(out, why)};
}

/* Requests to change a setting are not told that it is kept. */
void park_leave_out(struct core_effects *fx, size_t i, const char *words)
{
    bool setting = fx->v[i].kind == CORE_SAVE_AGENT || fx->v[i].kind == CORE_SAVE_STORE;
    det_cleanup(freep) char *why = det_asprintf(
        "The database refused the setting, which holds until the master restarts: %s", words);
    for (size_t k = 0; setting && k < fx->n; k++)
        if (fx->v[k].kind == CORE_REPLY && fx->v[k].reply.is_setting)
            refuse_reply(fx, &fx->v[k].reply, why);
    drop_effect(fx, i);
}

static void take_out(struct core_effects *fx, const struct owner *o, const char *why)
{
    for (size_t i = 0; i < fx->n; i++) {
        struct core_effect *f = &fx->v[i];
        if (f->kind == CORE_REPLY && is_owned(o, f->reply.exp_id, f->reply.trial_id))
            refuse_reply(fx, &f->reply, why);
        if (is_of(f, o))
            drop_effect(fx, i);
    }
}

static void park_alloc(struct core *c, struct alloc *a, const char *why)
{
    a->parked = true;
    alloc_kill(c, a, KILL_USER, "%s", why);
}

/* The words go into its log whole; those of a kill are cut. */
static void log_reason(struct core *c, struct trial *t, const char *why)
{
    const struct alloc none = {.task_id = t->task_id};
    fx_log(c, t->alloc ? t->alloc : &none, FX_ERROR, "%s", why);
}

static void park_trial(struct core *c, struct trial *t, const char *why)
{
    t->parked = true;
    trial_mark(c, t);
    if (trial_state_is_terminal(t->state))
        return;
    log_reason(c, t, why);
    if (t->alloc)
        t->alloc->parked = true;
    trial_set(c, t, TRIAL_STOPPING_ERROR, "the database refused a row of it");
}

static void park_exp(struct core *c, struct exp *e, const char *why)
{
    e->parked = true;
    exp_mark(c, e);
    for (size_t i = 0; i < e->trials.n; i++) {
        struct trial *t = e->trials.v[i];
        t->parked = true;
        if (t->alloc)
            t->alloc->parked = true;
        if (!trial_state_is_terminal(t->state))
            log_reason(c, t, why);
    }
    gc_purged(c, e, NULL); /* nobody was told to purge it: that was taken out, too */
    if (exp_may(e, EXP_STOPPING_ERROR))
        exp_stop(c, e, EXP_STOPPING_ERROR, "the database refused a row of its experiment");
}

/* Collections of its checkpoints. */
static void park_collections(struct core *c, int64_t exp_id, const char *why)
{
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct alloc *a = c->allocs.v[i];
        if (a->kind == KIND_GC && a->exp_id == exp_id && a->state != ALLOC_TERMINATED)
            park_alloc(c, a, why);
    }
}

/* What ended in this batch is here no more. */
static void park_gone(struct core *c, const struct owner *o)
{
    save_parked(c, o->exp_id, o->trial_id, true);
    if (!o->trial_id)
        imap_del(c->deleted, (uint64_t)o->exp_id); /* its rows are still there */
}

/* Without its first row its experiment would be left with a search that has asked for it. */
static bool is_new_trial(const struct core_effects *fx, int64_t id)
{
    for (size_t i = 0; i < fx->n; i++)
        if (fx->v[i].kind == CORE_SAVE_TRIAL && fx->v[i].trial.id == id && fx->v[i].trial.is_new)
            return true;
    return false;
}

void park(struct core *c, int64_t exp_id, int64_t trial_id, const char *words)
{
    if (is_new_trial(c->out, trial_id))
        trial_id = 0;
    const struct owner o = {exp_id, trial_id};
    struct trial *t = trial_find(c, trial_id);
    struct exp *e = exp_find(c, exp_id);
    det_cleanup(freep) char *why = det_asprintf(
        "The database refused a row of %s %lld, which therefore ends in ERROR: %s",
        trial_id ? "trial" : "experiment", (long long)(trial_id ? trial_id : exp_id), words);
    take_out(c->out, &o, why);
    if (t)
        park_trial(c, t, why);
    else if (e && !trial_id)
        park_exp(c, e, why);
    else
        park_gone(c, &o);
    if (!trial_id)
        park_collections(c, exp_id, why);
}
