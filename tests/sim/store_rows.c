/* The rows of the core, as the statements of db/ apply them. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

/* Copies of the texts are the store's own: is_new: those of a row that is nothing yet, too. */
static void keep(enum row_kind kind, void *row, const void *by, bool is_new)
{
    const struct row_column *v[ROW_COLUMNS_MAX];
    size_t n = rowtable_written(kind, true, v);
    for (size_t i = 0; i < n; i++) {
        char *at = (char *)row + v[i]->at;
        const char *from = (const char *)by + v[i]->at;
        const char *text = v[i]->type == COL_TEXT ? *(const char *const *)(const void *)from : NULL;
        bool is_given = v[i]->when == COL_GIVEN && text;
        if (!is_new && v[i]->when != COL_CHANGES && !is_given)
            continue;
        if (v[i]->type != COL_TEXT) {
            memcpy(at, from, v[i]->size);
            continue;
        }
        free(*(char **)(void *)at);
        *(char **)(void *)at = det_strdup(text);
    }
}

void sim_store_clear_row(enum row_kind kind, void *row)
{
    const struct row_table *t = &row_tables[kind];
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].type == COL_TEXT)
            free(*(char **)(void *)((char *)row + t->v[i].at));
}

/* Ids of what was refused as it was made are given out no more. */
static void skip_exps(struct sim *m, int64_t id)
{
    while ((size_t)id > m->store.exps.n + 1) {
        struct stored_exp *e = det_zalloc(sizeof *e);
        vec_push(&m->store.exps, e);
        e->r.id = (int64_t)m->store.exps.n;
        e->r.state = EXP_DELETED;
        e->deleted = true;
    }
}

static void skip_trials(struct sim *m, int64_t id, int64_t exp_id)
{
    while ((size_t)id > m->store.trials.n + 1) {
        struct stored_trial *t = det_zalloc(sizeof *t);
        vec_push(&m->store.trials, t);
        t->r.id = (int64_t)m->store.trials.n;
        t->r.experiment_id = exp_id;
        t->r.state = TRIAL_ERROR;
    }
}

static void check_parked(struct sim *m, int64_t parked, const char *what, int64_t id)
{
    if (parked == m->store.epoch)
        sim_fail(m, "a row of %s %lld, which is parked", what, (long long)id);
}

static void apply_exp(struct sim *m, const struct row_experiment *r)
{
    struct stored_exp *e = sim_store_exp(&m->store, r->id);
    if (r->is_new) {
        skip_exps(m, r->id);
        if (e || (size_t)r->id != m->store.exps.n + 1)
            sim_fail(m, "experiment %lld is inserted twice or out of order", (long long)r->id);
        e = det_zalloc(sizeof *e);
        vec_push(&m->store.exps, e);
        JSON_OWN config = json_parse(r->config, strlen(r->config), NULL);
        e->is_custom = strcmp(json_str(json_obj(config, "searcher"), "name", ""), "custom") == 0;
    }
    if (!e)
        sim_fail(m, "experiment %lld is updated before it exists", (long long)r->id);
    if (r->state == EXP_ACTIVE && exp_state_is_terminal(e->r.state))
        e->parked = 0;
    check_parked(m, e->parked, "experiment", r->id);
    if (e->purged > 0)
        sim_fail(m, "experiment %lld lives on without rows that are deleted", (long long)r->id);
    e->continued |= exp_state_is_terminal(e->r.state) && r->state == EXP_ACTIVE;
    keep(ROW_EXPERIMENT, &e->r, r, r->is_new);
}

/* Its client ended the search: what runs ends where it is. The row comes before its trials'. */
static bool is_shut_down(struct sim *m, const struct stored_trial *t)
{
    const struct stored_exp *e = sim_store_exp(&m->store, t->r.experiment_id);
    return e->is_custom && (e->r.state == EXP_STOPPING_COMPLETED || e->r.state == EXP_COMPLETED);
}

/* It was stopped by its searcher where it is, or has the checkpoint of all it was asked for. */
static void check_completed(struct sim *m, const struct stored_trial *t, const struct row_trial *r)
{
    JSON_OWN core = json_parse(r->core, strlen(r->core), NULL);
    int64_t length = json_int(core, "op_length", -1);
    bool lacks = length >= 0 && (!t->r.latest_checkpoint || t->r.latest_steps < length);
    if (lacks && !is_shut_down(m, t))
        sim_fail(m, "trial %lld is COMPLETED without its last checkpoint", (long long)r->id);
}

static void apply_trial(struct sim *m, const struct row_trial *r)
{
    struct stored_trial *t = sim_store_trial(&m->store, r->id);
    if (r->is_new) {
        skip_trials(m, r->id, r->experiment_id);
        if (t || (size_t)r->id != m->store.trials.n + 1 ||
            !sim_store_exp(&m->store, r->experiment_id))
            sim_fail(m, "trial %lld: insert out of order", (long long)r->id);
        t = det_zalloc(sizeof *t);
        vec_push(&m->store.trials, t);
        t->r.experiment_id = r->experiment_id;
        vec_push(&sim_store_exp(&m->store, r->experiment_id)->trials, r->id);
    }
    if (!t)
        sim_fail(m, "trial %lld is updated before it exists", (long long)r->id);
    if (r->state == TRIAL_ACTIVE && trial_state_is_terminal(t->r.state))
        t->parked = 0;
    check_parked(m, t->parked, "trial", r->id);
    check_parked(m, sim_store_exp(&m->store, t->r.experiment_id)->parked, "trial", r->id);
    if (r->run_id < t->r.run_id)
        sim_fail(m, "trial %lld: its run falls from %lld to %lld", (long long)r->id,
                 (long long)t->r.run_id, (long long)r->run_id);
    if (r->restarts > t->crashes)
        sim_fail(m, "trial %lld: %lld restarts are counted, it crashed %lld times",
                 (long long)r->id, (long long)r->restarts, (long long)t->crashes);
    bool goes_on =
        r->state == TRIAL_ACTIVE && sim_store_exp(&m->store, t->r.experiment_id)->continued;
    if (trial_state_is_terminal(t->r.state) && t->r.state != r->state && !r->is_new && !goes_on)
        sim_fail(m, "trial %lld leaves its terminal state", (long long)r->id);
    if (r->state == TRIAL_COMPLETED && t->r.state != TRIAL_COMPLETED && !t->gave_up)
        check_completed(m, t, r);
    t->gave_up &= !(goes_on && trial_state_is_terminal(t->r.state));
    keep(ROW_TRIAL, &t->r, r, r->is_new);
}

static void apply_alloc(struct sim *m, const struct row_allocation *r)
{
    struct stored_alloc *a = map_get(m->store.alloc_by_id, r->id);
    const struct stored_exp *e = sim_store_exp(&m->store, r->experiment_id);
    if (e && e->deleted && !r->is_new)
        return; /* gone with its experiment */
    if (r->is_new) {
        if (a || !e || e->deleted)
            sim_fail(m, "allocation %s is inserted twice, or for nothing", r->id);
        a = det_zalloc(sizeof *a);
        vec_push(&m->store.allocs, a);
        map_put(m->store.alloc_by_id, r->id, a);
        if (sim_store_trial(&m->store, r->trial_id))
            sim_store_trial(&m->store, r->trial_id)->alloc = a;
    }
    if (!a || a->r.state > r->state)
        sim_fail(m, "allocation %s goes back or never was", r->id);
    keep(ROW_ALLOCATION, &a->r, r, r->is_new);
}

static void apply_agent(struct sim *m, const struct row_agent *r)
{
    struct row_agent *a = NULL;
    for (size_t i = 0; i < m->store.agents.n; i++)
        if (strcmp(m->store.agents.v[i].agent_id, r->agent_id) == 0)
            a = &m->store.agents.v[i];
    bool is_new = !a;
    if (is_new) {
        vec_push(&m->store.agents, (struct row_agent){0});
        a = &m->store.agents.v[m->store.agents.n - 1];
    }
    keep(ROW_AGENT, a, r, is_new);
}

static void apply_event(struct sim *m, const struct row_search_event *r)
{
    struct stored_exp *e = sim_store_exp(&m->store, r->experiment_id);
    m->store.searched = r->experiment_id;
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
    struct stored_exp *e = sim_store_exp(&m->store, r->experiment_id);
    free(e->snapshot);
    e->snapshot = det_strdup(r->snapshot);
    e->snapshot_seq = r->seq;
    drop_search(e, r->seq);
}

/* What was before the snapshot is read again. */
static void delete_snapshot(struct sim *m, int64_t exp_id)
{
    struct stored_exp *e = sim_store_exp(&m->store, exp_id);
    drop_search(e, INT64_MAX);
    free(e->snapshot);
    e->snapshot = NULL;
    e->snapshot_seq = 0;
    for (size_t i = 0; i < e->log.n; i++)
        vec_push(&e->events,
                 (struct row_search_event){exp_id, (int64_t)i + 1, det_strdup(e->log.v[i])});
}

/* And what hangs on it. */
static void delete_exp(struct sim *m, int64_t id)
{
    if (!sim_store_exp(&m->store, id)->is_purged)
        sim_fail(m, "all rows of experiment %lld are deleted at once", (long long)id);
    sim_store_exp(&m->store, id)->deleted = true;
    sim_store_exp(&m->store, id)->r.state = EXP_DELETED;
    for (size_t i = 0; i < m->store.allocs.n; i++)
        if (m->store.allocs.v[i]->r.experiment_id == id)
            m->store.allocs.v[i]->r.state = ALLOC_TERMINATED;
}

/* Once known it is known for good: nobody adopts another here. */
static void apply_ckpt_store(struct sim *m, const struct row_store *r)
{
    if (strcmp(r->place, SIM_STORE) != 0 || (m->store.ckpt_id[0] && !r->id))
        sim_fail(m, "store %s is forgotten or made up", r->place);
    if (m->store.ckpt_id[0] && strcmp(m->store.ckpt_id, r->id) != 0)
        sim_fail(m, "store %s was %s and is taken for %s", r->place, m->store.ckpt_id, r->id);
    snprintf(m->store.ckpt_id, sizeof m->store.ckpt_id, "%s", r->id ? r->id : "");
}

static void park_allocs(struct sim *m, const struct row_parked *r)
{
    for (size_t i = 0; i < m->store.allocs.n; i++) {
        struct row_allocation *a = &m->store.allocs.v[i]->r;
        if (r->trial_id ? a->trial_id == r->trial_id : a->experiment_id == r->experiment_id)
            a->state = ALLOC_TERMINATED;
    }
}

static void park_trial(struct stored_trial *t, bool has_ended)
{
    if (!trial_state_is_terminal(t->r.state))
        t->r.state = has_ended ? TRIAL_ERROR : TRIAL_STOPPING_ERROR;
}

static enum exp_state parked_state(const struct stored_exp *e, bool has_ended)
{
    if (e->r.state == EXP_DELETING)
        return has_ended ? EXP_DELETE_FAILED : EXP_DELETING;
    if (exp_state_is_terminal(e->r.state))
        return e->r.state;
    return has_ended ? EXP_ERROR : EXP_STOPPING_ERROR;
}

static void apply_parked(struct sim *m, const struct row_parked *r)
{
    struct stored_trial *t = sim_store_trial(&m->store, r->trial_id);
    struct stored_exp *e = r->trial_id ? NULL : sim_store_exp(&m->store, r->experiment_id);
    park_allocs(m, r);
    if (t) {
        park_trial(t, r->has_ended);
        t->parked = m->store.epoch;
    }
    for (size_t i = 0; e && i < e->trials.n; i++)
        park_trial(sim_store_trial(&m->store, e->trials.v[i]), r->has_ended);
    if (e) {
        e->r.state = parked_state(e, r->has_ended);
        e->parked = m->store.epoch;
    }
}

void sim_store_apply(struct sim *m, const struct core_effect *e)
{
    switch (e->kind) {
    case CORE_SAVE_EXPERIMENT: apply_exp(m, &e->experiment); break;
    case CORE_SAVE_EXP_STATE:
        sim_store_exp(&m->store, e->exp_state.id)->r.state = e->exp_state.state;
        break;
    case CORE_SAVE_SEARCH_EVENT: apply_event(m, &e->search_event); break;
    case CORE_SAVE_SEARCH_SNAPSHOT: apply_snapshot(m, &e->search_snapshot); break;
    case CORE_SAVE_TRIAL: apply_trial(m, &e->trial); break;
    case CORE_SAVE_ALLOCATION: apply_alloc(m, &e->allocation); break;
    case CORE_SAVE_STORE: apply_ckpt_store(m, &e->store); break;
    case CORE_SAVE_AGENT: apply_agent(m, &e->agent); break;
    case CORE_SAVE_PARKED: apply_parked(m, &e->parked); break;
    case CORE_DELETE_SEARCH_SNAPSHOT: delete_snapshot(m, e->exp_id); break;
    case CORE_DELETE_EXPERIMENT: delete_exp(m, e->exp_id); break;
    case CORE_SAVE_TIMELINE: /* nothing is decided by it; the others are no rows */
    case CORE_ANY_SENT:
    case CORE_TASK_LOG:
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT: break;
    }
}
