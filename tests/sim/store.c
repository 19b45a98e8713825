#include "sim.h"

#include "hash.h"
#include <string.h>

void store_init(struct store *s)
{
    *s = (struct store){.alloc_by_id = map_create()};
}

static void free_exp(struct stored_exp *e)
{
    free((char *)e->r.job_id);
    free((char *)e->r.config);
    free((char *)e->r.resource_pool);
    free((char *)e->r.core);
    free(e->snapshot);
    for (size_t i = 0; i < e->events.n; i++)
        free((char *)e->events.v[i].event);
    for (size_t i = 0; i < e->log.n; i++)
        free(e->log.v[i]);
    vec_free(&e->events);
    vec_free(&e->log);
    free(e);
}

static void free_trial(struct stored_trial *t)
{
    free((char *)t->r.request_id);
    free((char *)t->r.task_id);
    free((char *)t->r.hparams);
    free((char *)t->r.core);
    free((char *)t->r.latest_checkpoint);
    free(t);
}

static void free_alloc(struct stored_alloc *a)
{
    free((char *)a->r.id);
    free((char *)a->r.task_id);
    free((char *)a->r.kind);
    free((char *)a->r.resource_pool);
    free((char *)a->r.core);
    free(a);
}

void store_finish(struct store *s)
{
    for (size_t i = 0; i < s->exps.n; i++)
        free_exp(s->exps.v[i]);
    for (size_t i = 0; i < s->trials.n; i++)
        free_trial(s->trials.v[i]);
    for (size_t i = 0; i < s->allocs.n; i++)
        free_alloc(s->allocs.v[i]);
    for (size_t i = 0; i < s->agents.n; i++) {
        free((char *)s->agents.v[i].agent_id);
        free((char *)s->agents.v[i].slots_disabled);
    }
    vec_free(&s->exps);
    vec_free(&s->trials);
    vec_free(&s->allocs);
    vec_free(&s->agents);
    map_destroy(s->alloc_by_id);
}

static void set(const char **field, const char *value)
{
    free((char *)*field);
    *field = det_strdup(value);
}

struct stored_trial *store_trial(struct store *s, int64_t id)
{
    return id >= 1 && (size_t)id <= s->trials.n ? s->trials.v[id - 1] : NULL;
}

struct stored_exp *store_exp(struct store *s, int64_t id)
{
    return id >= 1 && (size_t)id <= s->exps.n ? s->exps.v[id - 1] : NULL;
}

static void apply_exp(struct sim *m, const struct row_experiment *r)
{
    struct stored_exp *e = store_exp(&m->store, r->id);
    if (r->is_new) {
        if (e || (size_t)r->id != m->store.exps.n + 1)
            sim_fail(m, "experiment %lld is inserted twice or out of order", (long long)r->id);
        e = det_zalloc(sizeof *e);
        vec_push(&m->store.exps, e);
        e->r.id = r->id;
        e->r.owner_id = r->owner_id;
        e->r.start_us = r->start_us;
        set(&e->r.job_id, r->job_id);
        set(&e->r.config, r->config);
    }
    if (!e)
        sim_fail(m, "experiment %lld is updated before it exists", (long long)r->id);
    e->r.state = r->state;
    e->r.end_us = r->end_us;
    e->r.progress = r->progress;
    e->r.priority = r->priority;
    e->r.weight = r->weight;
    e->r.max_slots = r->max_slots;
    e->r.queue_position = r->queue_position;
    set(&e->r.resource_pool, r->resource_pool);
    set(&e->r.core, r->core);
}

static void apply_trial(struct sim *m, const struct row_trial *r)
{
    struct stored_trial *t = store_trial(&m->store, r->id);
    if (r->is_new) {
        if (t || (size_t)r->id != m->store.trials.n + 1 || !store_exp(&m->store, r->experiment_id))
            sim_fail(m, "trial %lld: insert out of order", (long long)r->id);
        t = det_zalloc(sizeof *t);
        vec_push(&m->store.trials, t);
        t->r.id = r->id;
        t->r.experiment_id = r->experiment_id;
        t->r.seed = r->seed;
        t->r.start_us = r->start_us;
        set(&t->r.request_id, r->request_id);
        set(&t->r.task_id, r->task_id);
        set(&t->r.hparams, r->hparams);
    }
    if (!t)
        sim_fail(m, "trial %lld is updated before it exists", (long long)r->id);
    if (r->run_id < t->r.run_id)
        sim_fail(m, "trial %lld: its run falls from %lld to %lld", (long long)r->id,
                 (long long)t->r.run_id, (long long)r->run_id);
    if (r->restarts > t->crashes)
        sim_fail(m, "trial %lld: %lld restarts are counted, it crashed %lld times",
                 (long long)r->id, (long long)r->restarts, (long long)t->crashes);
    if (trial_state_is_terminal(t->r.state) && t->r.state != r->state && !r->is_new)
        sim_fail(m, "trial %lld leaves its terminal state", (long long)r->id);
    if (r->state == TRIAL_COMPLETED && !t->final)
        sim_fail(m, "trial %lld is COMPLETED without its last checkpoint", (long long)r->id);
    t->r.state = r->state;
    t->r.run_id = r->run_id;
    t->r.restarts = r->restarts;
    t->r.end_us = r->end_us;
    set(&t->r.core, r->core);
}

static void apply_alloc(struct sim *m, const struct row_allocation *r)
{
    struct stored_alloc *a = map_get(m->store.alloc_by_id, r->id);
    const struct stored_exp *e = store_exp(&m->store, r->experiment_id);
    if (e && e->deleted && !r->is_new)
        return; /* gone with its experiment */
    if (r->is_new) {
        if (a || !e || e->deleted)
            sim_fail(m, "allocation %s is inserted twice, or for nothing", r->id);
        a = det_zalloc(sizeof *a);
        vec_push(&m->store.allocs, a);
        a->r = (struct row_allocation){.experiment_id = r->experiment_id, .trial_id = r->trial_id,
                                       .run_id = r->run_id, .slots = r->slots,
                                       .start_us = r->start_us};
        set(&a->r.id, r->id);
        set(&a->r.task_id, r->task_id);
        set(&a->r.kind, r->kind);
        set(&a->r.resource_pool, r->resource_pool);
        map_put(m->store.alloc_by_id, r->id, a);
    }
    if (!a || a->r.state > r->state)
        sim_fail(m, "allocation %s goes back or never was", r->id);
    a->r.state = r->state;
    a->r.is_ready = r->is_ready;
    a->r.end_us = r->end_us;
    set(&a->r.core, r->core);
}

static void apply_agent(struct sim *m, const struct row_agent *r)
{
    struct row_agent *a = NULL;
    for (size_t i = 0; i < m->store.agents.n; i++)
        if (strcmp(m->store.agents.v[i].agent_id, r->agent_id) == 0)
            a = &m->store.agents.v[i];
    if (!a) {
        vec_push(&m->store.agents, (struct row_agent){0});
        a = &m->store.agents.v[m->store.agents.n - 1];
        set(&a->agent_id, r->agent_id);
    }
    a->enabled = r->enabled;
    a->draining = r->draining;
    set(&a->slots_disabled, r->slots_disabled);
}

static void apply_event(struct sim *m, const struct row_search_event *r)
{
    struct stored_exp *e = store_exp(&m->store, r->experiment_id);
    vec_push(&e->events, (struct row_search_event){r->experiment_id, r->seq, det_strdup(r->event)});
    vec_push(&e->log, det_strdup(r->event));
}

static void drop_search(struct stored_exp *e, int64_t up_to)
{
    while (e->events.n && e->events.v[0].seq <= up_to) {
        free((char *)e->events.v[0].event);
        vec_remove(&e->events, 0);
    }
}

static void apply_snapshot(struct sim *m, const struct row_search_snapshot *r)
{
    struct stored_exp *e = store_exp(&m->store, r->experiment_id);
    free(e->snapshot);
    e->snapshot = det_strdup(r->snapshot);
    e->snapshot_seq = r->seq;
    drop_search(e, r->seq);
}

/* And what hangs on it. */
static void delete_exp(struct sim *m, int64_t id)
{
    store_exp(&m->store, id)->deleted = true;
    store_exp(&m->store, id)->r.state = EXP_DELETED;
    for (size_t i = 0; i < m->store.allocs.n; i++)
        if (m->store.allocs.v[i]->r.experiment_id == id)
            m->store.allocs.v[i]->r.state = ALLOC_TERMINATED;
}

void store_apply(struct sim *m, const struct core_effect *e)
{
    switch (e->kind) {
    case CORE_SAVE_EXPERIMENT:
        apply_exp(m, &e->experiment);
        break;
    case CORE_SAVE_EXP_STATE:
        store_exp(&m->store, e->exp_state.id)->r.state = e->exp_state.state;
        break;
    case CORE_SAVE_SEARCH_EVENT:
        apply_event(m, &e->search_event);
        break;
    case CORE_SAVE_SEARCH_SNAPSHOT:
        apply_snapshot(m, &e->search_snapshot);
        break;
    case CORE_DELETE_SEARCH:
        drop_search(store_exp(&m->store, e->exp_id), INT64_MAX);
        break;
    case CORE_SAVE_TRIAL:
        apply_trial(m, &e->trial);
        break;
    case CORE_SAVE_ALLOCATION:
        apply_alloc(m, &e->allocation);
        break;
    case CORE_SAVE_AGENT:
        apply_agent(m, &e->agent);
        break;
    case CORE_DELETE_EXPERIMENT:
        delete_exp(m, e->exp_id);
        break;
    default:
        break;
    }
}

bool store_write(struct sim *m, int64_t trial, int64_t run, double steps, bool checkpoint)
{
    struct stored_trial *t = store_trial(&m->store, trial);
    if (!t || t->r.run_id != run)
        return false;
    det_cleanup(freep) char *alloc = det_asprintf("%s.%lld", t->r.task_id, (long long)run);
    const struct stored_alloc *a = map_get(m->store.alloc_by_id, alloc);
    if (a && a->r.state == ALLOC_TERMINATED)
        sim_fail(m, "allocation %s writes after its end", alloc);
    if (run < t->last_write_run)
        sim_fail(m, "trial %lld: run %lld writes after run %lld did", (long long)trial,
                 (long long)run, (long long)t->last_write_run);
    t->last_write_run = run;
    if (checkpoint && (!t->r.latest_checkpoint || steps >= (double)t->r.latest_steps)) {
        det_cleanup(freep) char *uuid =
            det_asprintf("cp-%lld-%lld", (long long)trial, (long long)steps);
        set(&t->r.latest_checkpoint, uuid);
        t->r.latest_steps = (int64_t)steps;
    }
    return true;
}

static void restore_exp(struct sim *m, struct core *c, const struct stored_exp *e)
{
    struct det_err err = {0};
    int rc = core_restore_experiment(c, &e->r, &err);
    if (rc == 0 && e->snapshot && e->r.state != EXP_DELETING)
        rc = core_restore_search_snapshot(
            c, &(struct row_search_snapshot){e->r.id, e->snapshot_seq, e->snapshot}, &err);
    for (size_t i = 0; rc == 0 && i < e->events.n; i++)
        rc = core_restore_search_event(c, &e->events.v[i], &err);
    if (rc < 0)
        sim_fail(m, "rebuild: %s", err.text);
}

static bool is_live(const struct stored_exp *e)
{
    return !exp_state_is_terminal(e->r.state) || e->r.state == EXP_DELETING;
}

struct core *store_rebuild(struct sim *m, const struct core_options *o)
{
    struct det_err err = {0};
    struct store *s = &m->store;
    struct core *c = core_create(o);
    int rc = 0;
    core_restore_ids(c, (int64_t)s->exps.n, (int64_t)s->trials.n);
    for (size_t i = 0; rc == 0 && i < s->agents.n; i++)
        rc = core_restore_agent(c, &s->agents.v[i], &err);
    for (size_t i = 0; i < s->exps.n; i++)
        if (is_live(s->exps.v[i]))
            restore_exp(m, c, s->exps.v[i]);
    for (size_t i = 0; rc == 0 && i < s->trials.n; i++)
        if (is_live(store_exp(s, s->trials.v[i]->r.experiment_id)))
            rc = core_restore_trial(c, &s->trials.v[i]->r, &err);
    for (size_t i = 0; rc == 0 && i < s->allocs.n; i++)
        if (s->allocs.v[i]->r.state != ALLOC_TERMINATED)
            rc = core_restore_allocation(c, &s->allocs.v[i]->r, &err);
    if (rc < 0)
        sim_fail(m, "rebuild: %s", err.text);
    return c;
}
