#include "dispatch.h"

#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "exp.h"
#include "reconcile.h"
#include "slots.h"
#include "store.h"
#include "trial.h"
#include "why_eta.h"
#include <assert.h>

/* What every function of an event gets beside whom it is about. */
struct step {
    const struct core_event *ev;
    struct core_reply *reply;
    struct det_err *err;
};

/* ---- about none that is live ---- */

static int do_nothing(struct core *c, const struct step *s)
{
    (void)c, (void)s;
    return 0;
}

static int create_exp(struct core *c, const struct step *s)
{
    return exp_create(c, &s->ev->create, &s->reply->id, &s->reply->slots_exceeded, s->err);
}

static int continue_exp(struct core *c, const struct step *s)
{
    s->reply->id = s->ev->cont->row.id;
    return exp_continue(c, s->ev->cont, &s->reply->slots_exceeded, s->err);
}

static int edit_exp(struct core *c, const struct step *s)
{
    exp_edit(c, s->ev->exp_id, s->ev->edit_begins);
    return 0;
}

static int delete_exp(struct core *c, const struct step *s)
{
    return gc_delete(c, &s->ev->gc, s->err);
}

static int note_purged(struct core *c, struct exp *e, const struct step *s)
{
    gc_purged(c, e, s->ev->purge_failed);
    return 0;
}

static int collect_exp(struct core *c, const struct step *s)
{
    return gc_collect(c, &s->ev->gc, s->err);
}

static int set_agent(struct core *c, const struct step *s)
{
    return agent_set(c, &s->ev->agent_set, s->err);
}

static int adopt_store(struct core *c, const struct step *s)
{
    return store_adopt(c, &s->ev->adopt, s->err);
}

static int skip_ids(struct core *c, const struct step *s)
{
    c->last_exp = s->ev->exp_id > c->last_exp ? s->ev->exp_id : c->last_exp;
    c->last_trial = s->ev->trial_id > c->last_trial ? s->ev->trial_id : c->last_trial;
    return 0;
}

static int next_exp_id(struct core *c, const struct step *s)
{
    s->reply->id = ++c->last_exp;
    return 0;
}

static int next_trial_id(struct core *c, const struct step *s)
{
    s->reply->id = ++c->last_trial;
    return 0;
}

static int greet_agent(struct core *c, const struct step *s)
{
    return reconcile_hello(c, s->ev, s->err);
}

/* ---- about an agent ---- */

static int note_state(struct core *c, struct agent *a, const struct step *s)
{
    reconcile_state(c, a, &s->ev->task);
    return 0;
}

static int note_exit(struct core *c, struct agent *a, const struct step *s)
{
    reconcile_exit(c, a, &s->ev->task);
    return 0;
}

static int note_store(struct core *c, struct agent *a, const struct step *s)
{
    return reconcile_store(c, a, &s->ev->store, s->err);
}

static int note_slot(struct core *c, struct agent *a, const struct step *s)
{
    return slots_on_sight(c, a, &s->ev->sight, s->err);
}

static int lose_agent(struct core *c, struct agent *a, const struct step *s)
{
    (void)s;
    if (a->state == AGENT_UP)
        agent_goto(c, a, AGENT_LOST);
    return 0;
}

/* ---- about an experiment ---- */

static int patch_exp(struct core *c, struct exp *e, const struct step *s)
{
    return exp_patch(c, e, s->ev, s->err);
}

static int give_events(struct core *c, struct exp *e, const struct step *s)
{
    return exp_search_events(c, e, &s->reply->data, s->err);
}

static int take_operations(struct core *c, struct exp *e, const struct step *s)
{
    return exp_search_ops(c, e, s->ev->search.ack, s->ev->search.operations, s->err);
}

/* ---- about a trial ---- */

static int kill_trial(struct core *c, struct trial *t, const struct step *s)
{
    (void)s;
    trial_set(c, t, TRIAL_STOPPING_KILLED, "the trial was killed");
    return 0;
}

static int complete_operation(struct core *c, struct trial *t, const struct step *s)
{
    return trial_on_op_completed(c, t, s->ev->op.length, s->ev->op.metric, s->err);
}

static int note_progress(struct core *c, struct trial *t, const struct step *s)
{
    exp_on_progress(c, t->exp, t, s->ev->units);
    eta_on_progress(t, s->ev->units, c->now_ms);
    avoid_on_progress(c, t);
    s->reply->progress = t->exp->progress;
    return 0;
}

static int exit_early(struct core *c, struct trial *t, const struct step *s)
{
    trial_on_early_exit(c, t, s->ev->exit_early.reason, s->ev->exit_early.text);
    return 0;
}

static int note_checkpoint(struct core *c, struct trial *t, const struct step *s)
{
    trial_on_checkpoint(c, t, s->ev->checkpoint.uuid, s->ev->checkpoint.steps);
    return 0;
}

static int follow_policy(struct core *c, struct trial *t, const struct step *s)
{
    trial_on_log_policy(c, t, &s->ev->policy, s->ev->agent_id);
    return 0;
}

/* ---- about an allocation ---- */

static int note_ack(struct core *c, struct alloc *a, const struct step *s)
{
    (void)s;
    alloc_on_ack(c, a);
    return 0;
}

static int join_rendezvous(struct core *c, struct alloc *a, const struct step *s)
{
    return alloc_on_rendezvous(c, a, s->ev->container, s->ev->ports, s->err);
}

static int note_ready(struct core *c, struct alloc *a, const struct step *s)
{
    (void)s;
    alloc_on_ready(c, a);
    return 0;
}

static int note_waiting(struct core *c, struct alloc *a, const struct step *s)
{
    (void)s;
    if (a->state == ALLOC_RUNNING)
        alloc_goto(c, a, ALLOC_WAITING);
    return 0;
}

static int note_daemon(struct core *c, struct alloc *a, const struct step *s)
{
    return alloc_on_daemon(c, a, s->ev->container, s->err);
}

/* ---- which is for which ---- */

/* An event's kind, whom it is about, its function. */
#define HANDLERS(X)                                                                                \
    X(TICK, none, do_nothing)                                                                      \
    X(EXP_CREATE, none, create_exp)                                                                \
    X(EXP_CONTINUE, none, continue_exp)                                                            \
    X(EXP_EDIT, none, edit_exp)                                                                    \
    X(EXP_DELETE, none, delete_exp)                                                                \
    X(EXP_GC, none, collect_exp)                                                                   \
    X(AGENT_SET, none, set_agent)                                                                  \
    X(STORE_ADOPT, none, adopt_store)                                                              \
    X(IDS_SEEN, none, skip_ids)                                                                    \
    X(EXP_ID, none, next_exp_id)                                                                   \
    X(TRIAL_ID, none, next_trial_id)                                                               \
    X(AGENT_HELLO, none, greet_agent)                                                              \
    X(AGENT_STATE, agent, note_state)                                                              \
    X(AGENT_EXIT, agent, note_exit)                                                                \
    X(AGENT_STORE, agent, note_store)                                                              \
    X(AGENT_SLOT, agent, note_slot)                                                                \
    X(AGENT_LOST, agent, lose_agent)                                                               \
    X(EXP_ACTIVATE, change, exp_activate)                                                          \
    X(EXP_PAUSE, change, exp_pause)                                                                \
    X(EXP_CANCEL, change, exp_cancel)                                                              \
    X(EXP_KILL, change, exp_kill)                                                                  \
    X(EXP_PATCH, exp, patch_exp)                                                                   \
    X(EXP_PURGED, exp, note_purged)                                                                \
    X(SEARCH_EVENTS, exp, give_events)                                                             \
    X(SEARCH_OPS, exp, take_operations)                                                            \
    X(TRIAL_KILL, trial, kill_trial)                                                               \
    X(OP_COMPLETED, trial, complete_operation)                                                     \
    X(PROGRESS, trial, note_progress)                                                              \
    X(EARLY_EXIT, trial, exit_early)                                                               \
    X(CHECKPOINT, trial, note_checkpoint)                                                          \
    X(LOG_POLICY, trial, follow_policy)                                                            \
    X(ACK_PREEMPTION, alloc, note_ack)                                                             \
    X(RENDEZVOUS, alloc, join_rendezvous)                                                          \
    X(READY, alloc, note_ready)                                                                    \
    X(WAITING, alloc, note_waiting)                                                                \
    X(DAEMON, alloc, note_daemon)

/* One of them is set. */
struct handler {
    int (*none)(struct core *c, const struct step *s);
    int (*agent)(struct core *c, struct agent *a, const struct step *s);
    int (*exp)(struct core *c, struct exp *e, const struct step *s);
    int (*change)(struct core *c, struct exp *e, struct det_err *err); /* of its state */
    int (*trial)(struct core *c, struct trial *t, const struct step *s);
    int (*alloc)(struct core *c, struct alloc *a, const struct step *s);
};
static const struct handler handlers[CORE_EVENT_KIND_COUNT] = {
#define X(kind, whom, function) [CORE_EV_##kind] = {.whom = function},
    HANDLERS(X)
#undef X
};
/* As many as there are kinds, and the compiler refuses one that stands twice: none is left out. */
#define X(kind, whom, function) +1
static_assert(0 HANDLERS(X) == CORE_EVENT_KIND_COUNT, "each kind of event has its function");
#undef X

static int handle_agent(struct core *c, const struct handler *h, const struct step *s)
{
    struct agent *a = agent_find(c, s->ev->agent_id);
    if (!a || a->state == AGENT_ABSENT)
        return det_fail(s->err, DET_ENOENT, "agent %s not found; it must say hello",
                        s->ev->agent_id ? s->ev->agent_id : "");
    return h->agent(c, a, s);
}

static int handle_exp(struct core *c, const struct handler *h, const struct step *s)
{
    struct exp *e = exp_find(c, s->ev->exp_id);
    if (!e)
        return det_fail(s->err, DET_ENOENT,
                        "experiment %lld not found among those that are not finished",
                        (long long)s->ev->exp_id);
    if (e->parked)
        return det_fail(s->err, DET_ESTATE,
                        "experiment %lld is ending in ERROR: the database refused a row of it",
                        (long long)e->id);
    return h->change ? h->change(c, e, s->err) : h->exp(c, e, s);
}

static int handle_trial(struct core *c, const struct handler *h, const struct step *s)
{
    const struct core_event *ev = s->ev;
    struct trial *t = trial_find(c, ev->trial_id);
    if (!t)
        return det_fail(s->err, DET_ENOENT,
                        "trial %lld not found among those that are not finished",
                        (long long)ev->trial_id);
    bool is_judged = ev->kind == CORE_EV_CHECKPOINT; /* by the statement that wrote its row */
    if (ev->run_id && ev->run_id != t->run_id && !is_judged)
        return det_fail(s->err, DET_ESTALE, "run %lld of trial %lld was replaced by run %lld",
                        (long long)ev->run_id, (long long)t->id, (long long)t->run_id);
    if (t->parked && ev->kind == CORE_EV_OP_COMPLETED) /* it could not be kept */
        return det_fail(s->err, DET_ESTATE,
                        "trial %lld is ending in ERROR: the database refused a row of it",
                        (long long)t->id);
    return h->trial(c, t, s);
}

static int handle_alloc(struct core *c, const struct handler *h, const struct step *s)
{
    struct alloc *a = alloc_find(c, s->ev->alloc_id);
    if (!a)
        return det_fail(s->err, DET_ENOENT, "allocation %s not found among those that live",
                        s->ev->alloc_id ? s->ev->alloc_id : "");
    return h->alloc(c, a, s);
}

int dispatch_event(struct core *c, const struct core_event *ev, struct core_reply *reply,
                   struct det_err *err)
{
    if ((unsigned)ev->kind >= CORE_EVENT_KIND_COUNT)
        return det_fail(err, DET_EINVAL, "event of unknown kind %d", (int)ev->kind);
    const struct handler *h = &handlers[ev->kind];
    struct step s = {.ev = ev, .reply = reply, .err = err};
    return h->none    ? h->none(c, &s)
           : h->agent ? handle_agent(c, h, &s)
           : h->alloc ? handle_alloc(c, h, &s)
           : h->trial ? handle_trial(c, h, &s)
                      : handle_exp(c, h, &s);
}
