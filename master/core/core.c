#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "effects.h"
#include "exp.h"
#include "park.h"
#include "pool.h"
#include "queue.h"
#include "quota.h"
#include "reconcile.h"
#include "save.h"
#include "scheduler.h"
#include "store.h"
#include "trial.h"
#include "why_eta.h"
#include <assert.h>
#include <string.h>

const struct core_options core_options_default = {
    .scheduler = CORE_FAIR_SHARE,
    .fitting = CORE_FIT_BEST,
    .default_priority = 42,
    .launch_error = true,
    .max_aux_containers = 100,
    .agent_reconnect_wait_ms = 25000,
    .starvation_wait_ms = 3600000,
    .preempt_timeout_ms = 3600000,
    .kill_resend_ms = 30000,
    .start_resend_ms = 60000,
    .invalid_hp_exit_ms = 10000,
    .ready_timeout_ms = 1800000,
    .gc_timeout_ms = 3600000,
    .default_pool = "default",
};

struct core *core_create(const struct core_options *o)
{
    struct core *c = det_zalloc(sizeof *c);
    c->o = *o;
    c->default_pool = det_strdup(o->default_pool ? o->default_pool : "default");
    c->o.default_pool = c->default_pool;
    c->cluster_id = det_strdup(o->cluster_id ? o->cluster_id : "");
    c->o.cluster_id = c->cluster_id;
    c->groups.bytes = sizeof(struct group);
    c->exp_by_id = imap_create();
    c->trial_by_id = imap_create();
    c->deleted = imap_create();
    c->revisions = imap_create();
    c->edits = imap_create();
    c->alloc_by_id = map_create();
    c->store_by_place = map_create();
    c->agent_by_id = map_create();
    c->settled.kind = TIMER_SETTLED;
    c->waits.kind = TIMER_WAITS;
    c->lifts.kind = TIMER_LIFTS;
    pool_get(c, c->default_pool);
    for (size_t i = 0; i < o->pools_n; i++)
        pool_get(c, o->pools[i].name);
    c->o.pools = NULL; /* the caller's; every pool has its own */
    c->o.pools_n = 0;
    quota_init(c, o->quotas, o->quotas_n);
    return c;
}

static void free_lists(struct core *c)
{
    for (size_t i = 0; i < c->search_rows.n; i++)
        free(c->search_rows.v[i].text);
    vec_free(&c->exps);
    vec_free(&c->allocs);
    vec_free(&c->agents);
    vec_free(&c->pools);
    vec_free(&c->ports);
    vec_free(&c->timers.heap);
    vec_free(&c->dirty_exps);
    vec_free(&c->dirty_trials);
    vec_free(&c->dirty_allocs);
    vec_free(&c->dirty_agents);
    vec_free(&c->dirty_stores);
    vec_free(&c->stores);
    vec_free(&c->search_rows);
}

void core_destroy(struct core *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->exps.n; i++)
        exp_free(c->exps.v[i]);
    for (size_t i = 0; i < c->allocs.n; i++)
        alloc_free(c->allocs.v[i]);
    for (size_t i = 0; i < c->agents.n; i++)
        agent_free(c->agents.v[i]);
    for (size_t i = 0; i < c->pools.n; i++)
        pool_free(c->pools.v[i]);
    for (size_t i = 0; i < c->stores.n; i++)
        store_free(c->stores.v[i]);
    quota_finish(c);
    imap_destroy(c->exp_by_id);
    imap_destroy(c->trial_by_id);
    imap_destroy(c->deleted);
    imap_destroy(c->revisions);
    imap_destroy(c->edits);
    map_destroy(c->alloc_by_id);
    map_destroy(c->store_by_place);
    map_destroy(c->agent_by_id);
    free_lists(c);
    free(c->default_pool);
    free(c->cluster_id);
    free(c);
}

static void begin(struct core *c, int64_t now_ms, int64_t now_us, struct core_effects *out)
{
    c->now_ms = now_ms > c->now_ms ? now_ms : c->now_ms;
    c->now_us = now_us;
    c->made = 0;
    c->out = out;
}

/* Of all that changed: no path needs to think of them. */
static void set_deadlines(struct core *c)
{
    for (size_t i = 0; i < c->dirty_trials.n; i++)
        if (c->dirty_trials.v[i]->alloc)
            alloc_deadlines(c, c->dirty_trials.v[i]->alloc);
    for (size_t i = 0; i < c->dirty_allocs.n; i++)
        if (c->dirty_allocs.v[i]->state != ALLOC_TERMINATED)
            alloc_deadlines(c, c->dirty_allocs.v[i]);
}

/* Until nothing changes any more. */
static void schedule(struct core *c)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < c->pools.n; i++)
            if (c->pools.v[i]->dirty) {
                sched_run(c, c->pools.v[i]);
                again = true;
            }
    }
}

/* Schedules what changed, unless more changes first, and writes the rows. */
static void finish(struct core *c, bool more)
{
    if (!more)
        schedule(c);
    set_deadlines(c);
    save_flush(c);
    c->out = NULL;
}

static void on_timers(struct core *c)
{
    for (struct timer *t; (t = timers_first(&c->timers)) && t->at_ms <= c->now_ms;) {
        if (t->kind == TIMER_POOL)
            pool_on_timer(c, container_of(t, struct pool, timer));
        else if (t->kind == TIMER_LEASE)
            reconcile_lease(c, container_of(t, struct agent, lease));
        else if (t->kind == TIMER_EXP)
            exp_make_more(c, container_of(t, struct exp, more));
        else if (t->kind == TIMER_SETTLED)
            trial_on_settled(c);
        else if (t->kind == TIMER_STORE)
            store_on_timer(c, container_of(t, struct store, timer));
        else if (t->kind == TIMER_WAITS)
            queue_save_waits(c);
        else if (t->kind == TIMER_LIFTS)
            avoid_on_timer(c);
        else
            alloc_on_timer(c, container_of(t, struct alloc, timer));
    }
}

static int on_experiment(struct core *c, const struct core_event *ev, struct core_reply *reply,
                         struct det_err *err)
{
    struct exp *e = exp_find(c, ev->exp_id);
    if (!e)
        return det_fail(err, DET_ENOENT,
                        "experiment %lld not found among those that are not finished",
                        (long long)ev->exp_id);
    if (e->parked)
        return det_fail(err, DET_ESTATE,
                        "experiment %lld is ending in ERROR: the database refused a row of it",
                        (long long)e->id);
    switch (ev->kind) {
    case CORE_EV_EXP_ACTIVATE:
        return exp_activate(c, e, err);
    case CORE_EV_EXP_PAUSE:
        return exp_pause(c, e, err);
    case CORE_EV_EXP_CANCEL:
        return exp_cancel(c, e, err);
    case CORE_EV_EXP_KILL:
        return exp_kill(c, e, err);
    case CORE_EV_SEARCH_EVENTS:
        return exp_search_events(c, e, &reply->data, err);
    case CORE_EV_SEARCH_OPS:
        return exp_search_ops(c, e, ev->search.ack, ev->search.operations, err);
    case CORE_EV_EXP_PATCH:
        return exp_patch(c, e, ev, err);
    default:
        abort(); /* dispatch() sends no other */
    }
}

static int on_trial(struct core *c, const struct core_event *ev, struct core_reply *reply,
                    struct det_err *err)
{
    struct trial *t = trial_find(c, ev->trial_id);
    if (!t)
        return det_fail(err, DET_ENOENT, "trial %lld not found among those that are not finished",
                        (long long)ev->trial_id);
    bool is_judged = ev->kind == CORE_EV_CHECKPOINT; /* by the statement that wrote its row */
    if (ev->run_id && ev->run_id != t->run_id && !is_judged)
        return det_fail(err, DET_ESTALE, "run %lld of trial %lld was replaced by run %lld",
                        (long long)ev->run_id, (long long)t->id, (long long)t->run_id);
    if (t->parked && ev->kind == CORE_EV_OP_COMPLETED) /* it could not be kept */
        return det_fail(err, DET_ESTATE,
                        "trial %lld is ending in ERROR: the database refused a row of it",
                        (long long)t->id);
    switch (ev->kind) {
    case CORE_EV_TRIAL_KILL:
        trial_set(c, t, TRIAL_STOPPING_KILLED, "the trial was killed");
        break;
    case CORE_EV_OP_COMPLETED:
        return trial_on_op_completed(c, t, ev->op.length, ev->op.metric, err);
    case CORE_EV_PROGRESS:
        exp_on_progress(c, t->exp, t, ev->units);
        eta_on_progress(t, ev->units, c->now_ms);
        avoid_on_progress(c, t);
        reply->progress = t->exp->progress;
        break;
    case CORE_EV_EARLY_EXIT:
        trial_on_early_exit(c, t, ev->exit_reason);
        break;
    case CORE_EV_LOG_POLICY:
        trial_on_log_policy(c, t, &ev->policy, ev->agent_id);
        break;
    case CORE_EV_CHECKPOINT:
        trial_on_checkpoint(c, t, ev->checkpoint.uuid, ev->checkpoint.steps);
        break;
    default:
        abort();
    }
    return 0;
}

static int on_alloc(struct core *c, const struct core_event *ev, struct det_err *err)
{
    struct alloc *a = alloc_find(c, ev->alloc_id);
    if (!a)
        return det_fail(err, DET_ENOENT, "allocation %s not found among those that live",
                        ev->alloc_id ? ev->alloc_id : "");
    switch (ev->kind) {
    case CORE_EV_ACK_PREEMPTION:
        alloc_on_ack(c, a);
        break;
    case CORE_EV_RENDEZVOUS:
        return alloc_on_rendezvous(c, a, ev->container, err);
    case CORE_EV_READY:
        alloc_on_ready(c, a);
        break;
    case CORE_EV_WAITING:
        if (a->state == ALLOC_RUNNING)
            alloc_goto(c, a, ALLOC_WAITING);
        break;
    case CORE_EV_DAEMON:
        return alloc_on_daemon(c, a, ev->container, err);
    default:
        abort();
    }
    return 0;
}

static void skip_ids(struct core *c, int64_t exp_id, int64_t trial_id)
{
    c->last_exp = exp_id > c->last_exp ? exp_id : c->last_exp;
    c->last_trial = trial_id > c->last_trial ? trial_id : c->last_trial;
}

static int dispatch(struct core *c, const struct core_event *ev, struct core_reply *reply,
                    struct det_err *err)
{
    switch (ev->kind) {
    case CORE_EV_TICK:
        return 0;
    case CORE_EV_EXP_CREATE:
        return exp_create(c, &ev->create, &reply->id, &reply->slots_exceeded, err);
    case CORE_EV_EXP_CONTINUE:
        reply->id = ev->cont->row.id;
        return exp_continue(c, ev->cont, &reply->slots_exceeded, err);
    case CORE_EV_EXP_EDIT:
        exp_edit(c, ev->exp_id, ev->edit_begins);
        return 0;
    case CORE_EV_EXP_DELETE:
        return gc_delete(c, &ev->gc, err);
    case CORE_EV_EXP_GC:
        return gc_collect(c, &ev->gc, err);
    case CORE_EV_AGENT_SET:
        return agent_set(c, &ev->agent_set, err);
    case CORE_EV_STORE_ADOPT:
        return store_adopt(c, &ev->adopt, err);
    case CORE_EV_IDS_SEEN:
        skip_ids(c, ev->exp_id, ev->trial_id);
        return 0;
    case CORE_EV_EXP_ID:
        reply->id = ++c->last_exp;
        return 0;
    case CORE_EV_TRIAL_ID:
        reply->id = ++c->last_trial;
        return 0;
    case CORE_EV_AGENT_HELLO:
    case CORE_EV_AGENT_STATE:
    case CORE_EV_AGENT_EXIT:
    case CORE_EV_AGENT_STORE:
    case CORE_EV_AGENT_SLOT:
    case CORE_EV_AGENT_LOST:
        return reconcile_event(c, ev, err);
    case CORE_EV_EXP_ACTIVATE:
    case CORE_EV_EXP_PAUSE:
    case CORE_EV_EXP_CANCEL:
    case CORE_EV_EXP_KILL:
    case CORE_EV_EXP_PATCH:
    case CORE_EV_SEARCH_EVENTS:
    case CORE_EV_SEARCH_OPS:
        return on_experiment(c, ev, reply, err);
    case CORE_EV_TRIAL_KILL:
    case CORE_EV_OP_COMPLETED:
    case CORE_EV_PROGRESS:
    case CORE_EV_EARLY_EXIT:
    case CORE_EV_CHECKPOINT:
    case CORE_EV_LOG_POLICY:
        return on_trial(c, ev, reply, err);
    case CORE_EV_ACK_PREEMPTION:
    case CORE_EV_RENDEZVOUS:
    case CORE_EV_READY:
    case CORE_EV_WAITING:
    case CORE_EV_DAEMON:
        return on_alloc(c, ev, err);
    case CORE_EVENT_KIND_COUNT:
        break;
    }
    return det_fail(err, DET_EINVAL, "event of unknown kind %d", (int)ev->kind);
}

/* Before what has ended is dropped. */
static void reply_about(const struct core *c, const struct core_event *ev, struct core_reply *r)
{
    const struct alloc *a = ev->alloc_id ? alloc_find(c, ev->alloc_id) : NULL;
    bool made = ev->kind == CORE_EV_EXP_CREATE || ev->kind == CORE_EV_EXP_CONTINUE;
    bool gc = ev->kind == CORE_EV_EXP_DELETE || ev->kind == CORE_EV_EXP_GC;
    r->exp_id = a ? a->exp_id : made ? r->id : gc ? ev->gc.exp_id : ev->exp_id;
    r->trial_id = a && a->trial ? a->trial->id : ev->trial_id;
    const struct trial *t = trial_find(c, r->trial_id);
    r->exp_id = t ? t->exp->id : r->exp_id;
    r->is_setting = ev->kind == CORE_EV_AGENT_SET || ev->kind == CORE_EV_STORE_ADOPT;
}

int core_step(struct core *c, const struct core_event *ev, struct core_effects *out)
{
    struct core_reply reply = {0};
    struct det_err err = {0};
    begin(c, ev->now_ms, ev->now_us, out);
    on_timers(c);
    int rc = dispatch(c, ev, &reply, &err);
    fx_reply(out, ev->request, rc, "%s", err.text);
    if (ev->request) {
        struct core_reply *r = &out->v[out->n - 1].reply;
        r->id = reply.id;
        r->slots_exceeded = reply.slots_exceeded;
        r->progress = reply.progress;
        r->data = reply.data;
        reply_about(c, ev, r);
    }
    finish(c, ev->more);
    return rc == DET_EINVAL ? rc : 0;
}

bool core_refused(struct core *c, struct core_effects *batch, const struct core_refusal *r,
                  int64_t now_ms, int64_t now_us)
{
    int64_t exp_id = 0, trial_id = 0;
    if (batch->v[r->row].kind == CORE_SAVE_PARKED)
        return false;
    bool owned = park_owner(&batch->v[r->row], &exp_id, &trial_id);
    if (!owned) {
        park_leave_out(batch, r->row, r->words);
        return true;
    }
    begin(c, now_ms, now_us, batch);
    park(c, exp_id, r->whole ? 0 : trial_id, r->words);
    finish(c, false);
    return true;
}

static int64_t settled_ms(const struct core *c)
{
    int64_t wait = 0;
    for (size_t i = 0; i < c->pools.n; i++)
        if (c->pools.v[i]->o.agent_reconnect_wait_ms > wait)
            wait = c->pools.v[i]->o.agent_reconnect_wait_ms;
    return c->now_ms + wait;
}

int core_restored(struct core *c, int64_t now_ms, int64_t now_us, struct core_effects *out)
{
    begin(c, now_ms, now_us, out);
    c->settled_ms = settled_ms(c);
    restore_finish(c);
    for (size_t i = 0; i < c->pools.n; i++)
        c->pools.v[i]->dirty = true;
    finish(c, false);
    return 0;
}

int64_t core_deadline_ms(const struct core *c)
{
    const struct timer *t = timers_first(&c->timers);
    return t ? t->at_ms : INT64_MAX;
}
