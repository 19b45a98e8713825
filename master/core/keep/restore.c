/* Rebuilding the core from its rows. */
#include "agent.h"
#include "alike.h"
#include "alloc.h"
#include "avoid.h"
#include "conf.h"
#include "exp.h"
#include "pool.h"
#include "queue.h"
#include "restore.h"
#include "save.h"
#include "store.h"
#include "trial.h"
#include <stdio.h>
#include <string.h>

void core_set_life(struct core *c, int64_t epoch, const char *nonce)
{
    c->epoch = epoch;
    snprintf(c->nonce, sizeof c->nonce, "%s", nonce);
}

void core_restore_ids(struct core *c, int64_t last_exp_id, int64_t last_trial_id)
{
    c->last_exp = last_exp_id;
    c->last_trial = last_trial_id;
}

int core_restore_agent(struct core *c, const struct row_agent *r, struct det_err *err)
{
    JSON_OWN off = json_parse(r->slots_disabled, strlen(r->slots_disabled), err);
    JSON_OWN forced = json_parse(r->slots_forced, strlen(r->slots_forced), err);
    if (!json_is_array(off) || !json_is_array(forced))
        return det_fail(err, DET_ECORRUPT, "agent %s: slots_%s is no array", r->agent_id,
                        json_is_array(off) ? "forced" : "disabled");
    struct agent *a = agent_get(c, r->agent_id);
    a->off = r->enabled ? NOT_OFF : r->draining ? OFF_DRAINING : OFF_AT_ONCE;
    for (size_t i = 0; i < json_array_size(off); i++)
        vec_push(&a->slots_off.v, (int)json_integer_value(json_array_get(off, i)));
    for (size_t i = 0; i < json_array_size(forced); i++)
        vec_push(&a->slots_forced.v, (int)json_integer_value(json_array_get(forced, i)));
    return 0;
}

int core_restore_store(struct core *c, const struct row_store *r, struct det_err *err)
{
    JSON_OWN known = r->known ? json_parse(r->known, strlen(r->known), err) : NULL;
    if (!r->place || store_find(c, r->place) || (r->id && !uuid_is_valid(r->id)) ||
        (r->known && !json_is_array(known)))
        return det_fail(err, DET_ECORRUPT, "checkpoint store %s, id %s",
                        r->place ? r->place : "(no place)", r->id ? r->id : "(none)");
    struct store *s = det_zalloc(sizeof *s);
    s->place = det_strdup(r->place);
    if (r->id)
        memcpy(s->id, r->id, sizeof s->id);
    s->known = det_take(known);
    s->made_on = det_strdup(r->made_on);
    s->owner_id = r->owner_id;
    s->used_us = r->used_us;
    s->timer.kind = TIMER_STORE;
    map_put(c->store_by_place, s->place, s);
    vec_push(&c->stores, s);
    return 0;
}

DET_DEFINE_CLEANUP(struct exp *, exp_destroy)
DET_DEFINE_CLEANUP(struct trial *, trial_destroy)

static json_t *object_of(const char *text, struct det_err *err)
{
    json_t *j = json_parse(text ? text : "{}", strlen(text ? text : "{}"), err);
    if (j && !json_is_object(j)) {
        json_decref(j);
        det_fail(err, DET_ECORRUPT, "expected a JSON object");
        return NULL;
    }
    return j;
}

static void fill_exp(struct core *c, struct exp *e, const struct row_experiment *r,
                     const json_t *core)
{
    e->id = r->id;
    e->job_id = det_strdup(r->job_id);
    e->owner_id = r->owner_id;
    e->project_id = r->project_id;
    e->parent_id = r->parent_id;
    e->config_text = json_text(e->config);
    e->state = r->state;
    e->start_us = r->start_us;
    e->end_us = r->end_us;
    e->progress = r->progress > 0 ? r->progress : 0;
    e->pool = pool_get(c, r->resource_pool);
    e->group->priority = r->priority;
    e->group->weight = r->weight > 0 ? r->weight : 1;
    e->group->max_slots = r->max_slots;
    e->group->position = r->queue_position;
    e->state_only = r->state == EXP_DELETING;
    load_exp_core(e, core);
}

int core_restore_experiment(struct core *c, const struct row_experiment *r, struct det_err *err)
{
    det_cleanup(exp_destroyp) struct exp *e = exp_make(c);
    JSON_OWN core = object_of(r->core, err);
    e->config = object_of(r->config, err);
    if (!core || !e->config || exp_find(c, r->id))
        return det_wrap(err, DET_ECORRUPT, "experiment %lld", (long long)r->id);
    fill_exp(c, e, r, core);
    e->conf.name = json_str(e->config, "name", "");
    if (r->state != EXP_DELETING) {
        int rc = conf_read(e->config, &e->conf, err);
        if (rc == 0)
            rc = search_create(&e->conf.search, &e->search, err);
        if (rc < 0)
            return det_wrap(err, rc, "experiment %lld", (long long)r->id);
    }
    if (r->id > c->last_exp)
        c->last_exp = r->id;
    exp_enlist(c, det_take(e));
    return 0;
}

/* Operations are not carried out again: their results are rows. Where trials are owed, some are. */
static void replay_event(struct exp *e, const struct search_event *ev)
{
    struct search_ops out = {0};
    search_step(e->search, ev, e->todo_owed ? &e->todo : &out);
    search_ops_finish(&out);
}

void restore_beginning(struct exp *e)
{
    if (e->search && e->search_seq == 0)
        replay_event(e, &(struct search_event){.kind = SEARCH_EV_INITIAL});
}

int core_restore_search_snapshot(struct core *c, const struct row_search_snapshot *r,
                                 struct det_err *err)
{
    struct exp *e = exp_find(c, r->experiment_id);
    if (e && !e->search)
        return 0;
    if (!e || e->search_seq > 0)
        return det_fail(err, DET_ECORRUPT,
                        "a searcher snapshot of experiment %lld, which has no use for it",
                        (long long)r->experiment_id);
    JSON_OWN j = object_of(r->snapshot, err);
    int rc = j ? search_restore(e->search, j, err) : DET_ECORRUPT;
    if (rc < 0)
        return det_wrap(err, rc, "experiment %lld", (long long)e->id);
    e->search_seq = e->snap_seq = r->seq;
    return 0;
}

int core_restore_search_event(struct core *c, const struct row_search_event *r, struct det_err *err)
{
    struct exp *e = exp_find(c, r->experiment_id);
    if (!e || !e->search)
        return 0;
    if (r->seq <= e->search_seq)
        return 0;
    if (r->seq != e->search_seq + 1)
        return det_fail(err, DET_ECORRUPT, "experiment %lld: searcher event %lld follows %lld",
                        (long long)e->id, (long long)r->seq, (long long)e->search_seq);
    restore_beginning(e);
    JSON_OWN j = object_of(r->event, err);
    struct search_event ev;
    int rc = j ? search_event_from_json(j, &ev, err) : DET_ECORRUPT;
    if (rc < 0)
        return det_wrap(err, rc, "experiment %lld, searcher event %lld", (long long)e->id,
                        (long long)r->seq);
    replay_event(e, &ev);
    e->search_seq = r->seq;
    return 0;
}

/* An open trial goes the way of its experiment, or ends before it. */
static int check_trial(const struct row_trial *r, const struct exp *e, struct det_err *err)
{
    bool goes = r->state == TRIAL_ACTIVE   ? e->state == EXP_ACTIVE
                : r->state == TRIAL_PAUSED ? e->state == EXP_PAUSED
                                           : e->state != EXP_DELETING;
    if (trial_state_is_terminal(r->state) || (goes && r->restarts <= e->conf.max_restarts))
        return 0;
    return det_fail(err, DET_ECORRUPT,
                    "trial %lld: %s after %lld restarts, in an experiment that is %s",
                    (long long)r->id, trial_state_text(r->state), (long long)r->restarts,
                    exp_state_text(e->state));
}

int core_restore_trial(struct core *c, const struct row_trial *r, struct det_err *err)
{
    struct exp *e = exp_find(c, r->experiment_id);
    if (!e || trial_find(c, r->id) || !r->request_id || strlen(r->request_id) >= UUID_STR_MAX)
        return det_fail(err, DET_ECORRUPT, "trial %lld: experiment %lld, request id %s",
                        (long long)r->id, (long long)r->experiment_id,
                        r->request_id ? r->request_id : "(none)");
    int rc = check_trial(r, e, err);
    if (rc < 0)
        return rc;
    det_cleanup(trial_destroyp) struct trial *t = det_zalloc(sizeof *t);
    JSON_OWN core = object_of(r->core, err);
    t->hparams = trial_state_is_terminal(r->state) ? NULL : object_of(r->hparams, err);
    if (!core || (!t->hparams && !trial_state_is_terminal(r->state)))
        return det_wrap(err, DET_ECORRUPT, "trial %lld", (long long)r->id);
    t->id = r->id;
    t->exp = e;
    memcpy(t->request_id, r->request_id, strlen(r->request_id));
    t->task_id = det_strdup(r->task_id);
    t->state = r->state;
    t->run_id = r->run_id;
    t->restarts = r->restarts;
    t->seed = r->seed;
    t->start_us = r->start_us;
    t->end_us = r->end_us;
    t->warm_start = det_strdup(r->warm_start_checkpoint);
    t->latest = det_strdup(r->latest_checkpoint);
    t->latest_steps = r->latest_steps;
    load_trial_core(t, core);
    if (t->id > c->last_trial)
        c->last_trial = t->id;
    trial_enlist(c, det_take(t));
    return 0;
}

/* As check.c has it: containers that live, and a kill, are what its state says. */
static int check_loaded(const struct alloc *a, struct det_err *err)
{
    int64_t slots = 0;
    for (size_t i = 0; i < a->containers.n; i++)
        slots += (int64_t)a->containers.v[i]->slots.n;
    if (!edges_may(MACHINE_ALLOC, a->state, ALLOC_TERMINATED))
        return det_fail(err, DET_ECORRUPT, "%s, which none that lives ever is",
                        alloc_state_text(a->state));
    if ((a->state == ALLOC_PENDING) != (a->live == 0))
        return det_fail(err, DET_ECORRUPT, "%s with %zu containers that live",
                        alloc_state_text(a->state), a->live);
    if ((a->state == ALLOC_TERMINATING) != (a->kill != KILL_NONE))
        return det_fail(err, DET_ECORRUPT, "%s, and it is %s", alloc_state_text(a->state),
                        a->kill == KILL_NONE ? "not killed" : "killed");
    if (a->live > 0 && slots != a->slots)
        return det_fail(err, DET_ECORRUPT, "%lld slots, and its containers have %lld",
                        (long long)a->slots, (long long)slots);
    return 0;
}

/* A trial has one run, which ends when the trial is to stop. */
static bool may_have(const struct trial *t, const struct alloc *a)
{
    bool ends = alloc_is_ending(a) || a->acked || trial_op_done(t);
    return !t->alloc && t->run_id == a->run_id && !trial_state_is_terminal(t->state) &&
           (t->state == TRIAL_ACTIVE || ends);
}

static int link_alloc(struct core *c, struct alloc *a, int64_t trial_id, struct det_err *err)
{
    struct exp *e = exp_find(c, a->exp_id);
    a->trial = a->kind == KIND_TRIAL ? trial_find(c, trial_id) : NULL;
    if (a->kind == KIND_TRIAL && (!a->trial || a->trial->exp != e || !may_have(a->trial, a)))
        return det_fail(err, DET_ECORRUPT, "trial %lld cannot have it", (long long)trial_id);
    if (a->kind == KIND_TRIAL && a->slots != e->conf.slots)
        return det_fail(err, DET_ECORRUPT, "%lld slots, where its experiment asks for %lld",
                        (long long)a->slots, (long long)e->conf.slots);
    if (a->kind == KIND_TRIAL) {
        a->trial->alloc = a;
        a->exp = e;
        a->pool = e->pool; /* it may have been moved since the row was made */
    } else if (e && a->deletes && e->state == EXP_DELETING && !e->gc) {
        e->gc = a;
        a->exp = e;
    }
    for (size_t i = 0; i < a->containers.n; i++) {
        struct container *k = a->containers.v[i];
        if (k->state != ALLOC_TERMINATED && !agent_reattach(c, agent_get(c, k->agent_id), k))
            return det_fail(err, DET_ECORRUPT, "a slot of agent %s is held twice", k->agent_id);
    }
    return 0;
}

static void take_port(struct core *c, int port)
{
    while (port >= 0 && (size_t)port >= c->ports.n)
        vec_push(&c->ports, false);
    if (port >= 0)
        c->ports.v[port] = true;
}

/* Places in the queue are in order of request, and each is one allocation's. */
static bool is_place_taken(const struct core *c, uint64_t seq)
{
    size_t i = c->allocs.n;
    while (i > 0 && c->allocs.v[i - 1]->seq > seq)
        i--;
    return i > 0 && c->allocs.v[i - 1]->seq == seq;
}

int core_restore_allocation(struct core *c, const struct row_allocation *r, struct det_err *err)
{
    if (alloc_find(c, r->id))
        return det_fail(err, DET_ECORRUPT, "allocation %s is there twice", r->id);
    struct alloc *a = det_zalloc(sizeof *a);
    JSON_OWN core = object_of(r->core, err);
    a->id = det_strdup(r->id);
    a->task_id = det_strdup(r->task_id);
    a->kind = strcmp(r->kind, "TRIAL") == 0 ? KIND_TRIAL : KIND_GC;
    a->state = r->state;
    a->exp_id = r->experiment_id;
    a->run_id = r->run_id;
    a->slots = r->slots;
    a->pool = pool_get(c, r->resource_pool);
    a->is_ready = r->is_ready;
    a->start_us = r->start_us;
    a->placed_us = r->placed_us;
    a->hold_ms = a->preempt_ms = a->kill_ms = a->start_ms = a->exit_ms = INT64_MAX;
    a->ready_ms = a->done_ms = INT64_MAX;
    a->shield_ms = INT64_MAX;
    int rc = core ? load_alloc_core(a, core, err) : DET_ECORRUPT;
    if (a->seq == 0 || is_place_taken(c, a->seq)) /* written before rows had it */
        a->seq = c->last_alloc + 1;
    c->last_alloc = a->seq > c->last_alloc ? a->seq : c->last_alloc;
    alloc_enlist(c, a);
    if (rc == 0)
        rc = check_loaded(a, err);
    if (rc == 0)
        rc = link_alloc(c, a, r->trial_id, err);
    if (a->gc_config)
        a->store = store_of(c, a->gc_config, a->owner_id);
    if (rc == 0)
        queue_update(c, a);
    take_port(c, a->port);
    return rc < 0 ? det_wrap(err, rc, "allocation %s", r->id) : 0;
}

static void restart_deadlines(struct core *c, struct alloc *a)
{
    if (a->preempt && a->kill == KILL_NONE)
        a->preempt_ms = c->now_ms + c->o.preempt_timeout_ms;
    if (a->kill != KILL_NONE)
        a->kill_ms = c->now_ms + c->o.kill_resend_ms;
    else if (a->state != ALLOC_PENDING)
        a->start_ms = c->now_ms + c->o.start_resend_ms;
    if (a->trial && a->trial->exit_reason >= 0 && a->kill == KILL_NONE)
        a->exit_ms = c->now_ms + c->o.invalid_hp_exit_ms;
    if (a->hold_ms != INT64_MAX)
        a->hold_ms = c->now_ms + a->hold_for_ms;
    if (a->shield_ms != INT64_MAX)
        a->shield_ms = c->now_ms + a->pool->o.starvation_wait_ms;
    alloc_deadlines(c, a);
}

/* Rows come in any order; what an agent has is gone through by age. */
static void order_containers(struct core *c)
{
    for (size_t i = 0; i < c->agents.n; i++)
        c->agents.v[i]->containers.n = 0;
    for (size_t i = 0; i < c->allocs.n; i++)
        for (size_t k = 0; k < c->allocs.v[i]->containers.n; k++) {
            struct container *held = c->allocs.v[i]->containers.v[k];
            if (held->agent)
                vec_push(&held->agent->containers, held);
        }
}

/* Rows of it are missing, or say another thing than the log of its search: it would wait for ever.
 */
static bool is_stuck(const struct exp *e)
{
    bool runs = false;
    for (size_t i = 0; i < e->trials.n; i++)
        runs |= e->trials.v[i]->alloc != NULL;
    return e->search && e->conf.search.kind != SEARCH_CUSTOM && !e->more.pos &&
           ((e->state == EXP_ACTIVE && !runs) || (e->state == EXP_PAUSED && e->open == 0));
}

void restore_finish(struct core *c)
{
    order_containers(c);
    for (size_t i = 0; i < c->allocs.n; i++)
        restart_deadlines(c, c->allocs.v[i]);
    queue_restart_waits(c);
    for (size_t i = 0; i < c->allocs.n; i++)
        store_want(c, c->allocs.v[i]);
    for (size_t i = 0; i < c->agents.n; i++)
        if (c->agents.v[i]->containers.n)
            agent_goto(c, c->agents.v[i], AGENT_LOST);
    for (size_t i = 0; i < c->exps.n; i++) {
        struct exp *e = c->exps.v[i];
        restore_beginning(e);
        alike_restored(e);
        if (e->todo_owed)
            exp_resume_todo(c, e);
        for (size_t k = 0; k < e->trials.n; k++) {
            if (avoid_any(e->trials.v[k], AVOID_ANY)) /* too early to judge it */
                timers_set(&c->timers, &c->settled, c->settled_ms);
            avoid_restored(c, e->trials.v[k]);
            trial_reconsider(c, e->trials.v[k]);
        }
        if (is_stuck(e))
            exp_stop(c, e, EXP_STOPPING_ERROR, "its rows contradict one another");
        exp_maybe_finish(c, e);
        gc_delete_idle(c, e);
    }
}
