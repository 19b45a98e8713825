#include "driver_rows.h"

#include "db.h"
#include "db_logs.h"
#include "db_rows.h"
#include "db_timeline.h"
#include "driver.h"
#include "map.h"
#include "mem.h"
#include "rowtable.h"
#include "vec.h"

#include <stdlib.h>
#include <string.h>

/* What waits to be written; the maps give a row's place, plus one, by its id. */
struct rows {
    struct db_tx *tx;
    VEC(struct row_experiment) exps; /* changed, not new */
    VEC(struct row_search_event) events;
    VEC(struct row_trial) trials;
    VEC(struct row_allocation) allocs;
    VEC(struct row_timeline) timeline;
    VEC(struct db_log_line) logs;
    VEC(char *) texts; /* of logs */
    struct imap *exp_at, *trial_at;
    struct map *alloc_at;
};

static void rows_begin(struct rows *r)
{
    r->exp_at = imap_create();
    r->trial_at = imap_create();
    r->alloc_at = map_create();
}

static void rows_empty(struct rows *r)
{
    for (size_t i = 0; i < r->texts.n; i++)
        free(r->texts.v[i]);
    imap_destroy(r->exp_at);
    imap_destroy(r->trial_at);
    map_destroy(r->alloc_at);
    vec_free(&r->exps);
    vec_free(&r->events);
    vec_free(&r->trials);
    vec_free(&r->allocs);
    vec_free(&r->timeline);
    vec_free(&r->logs);
    vec_free(&r->texts);
}

static void events_flush(struct rows *r)
{
    if (r->events.n > 0)
        db_save_search_events(r->tx, r->events.v, r->events.n);
    r->events.n = 0;
}

static void flush_rows(struct rows *r)
{
    for (size_t i = 0; i < r->exps.n; i++)
        db_save_experiment(r->tx, &r->exps.v[i], NULL);
    events_flush(r);
    db_save_trials(r->tx, r->trials.v, r->trials.n);
    db_save_allocations(r->tx, r->allocs.v, r->allocs.n);
    if (r->timeline.n > 0)
        db_save_timeline(r->tx, r->timeline.v, r->timeline.n);
    if (r->logs.n > 0)
        db_logs_add(r->tx, r->logs.v, r->logs.n);
    rows_empty(r);
    rows_begin(r);
}

static void add_experiment(struct rows *r, const struct row_experiment *e)
{
    const struct exp_submission *p = e->submission;
    struct db_experiment_extra x = {0};
    if (p)
        x = (struct db_experiment_extra){p->original_config, p->model_def, p->model_def_len,
                                         p->parent_model_def};
    if (e->is_new) {
        db_save_experiment(r->tx, e, &x);
        return;
    }
    uintptr_t at = (uintptr_t)imap_get(r->exp_at, (uint64_t)e->id);
    if (at > 0) {
        rowtable_update(ROW_EXPERIMENT, &r->exps.v[at - 1], e);
        return;
    }
    vec_push(&r->exps, *e);
    imap_put(r->exp_at, (uint64_t)e->id, (void *)(uintptr_t)r->exps.n);
}

/* A row that is new in this batch stays new: only it has what is set once. */
static void add_trial(struct rows *r, const struct row_trial *t)
{
    uintptr_t at = (uintptr_t)imap_get(r->trial_at, (uint64_t)t->id);
    if (at > 0) {
        rowtable_update(ROW_TRIAL, &r->trials.v[at - 1], t);
        return;
    }
    vec_push(&r->trials, *t);
    imap_put(r->trial_at, (uint64_t)t->id, (void *)(uintptr_t)r->trials.n);
}

static void add_allocation(struct rows *r, const struct row_allocation *a)
{
    uintptr_t at = (uintptr_t)map_get(r->alloc_at, a->id);
    if (at > 0) {
        rowtable_update(ROW_ALLOCATION, &r->allocs.v[at - 1], a);
        return;
    }
    vec_push(&r->allocs, *a);
    map_put(r->alloc_at, a->id, (void *)(uintptr_t)r->allocs.n);
}

static void log_line(struct rows *r, const struct core_log *l)
{
    char *text = det_asprintf("%s\n", l->text);
    struct db_log_line line = {.task_id = l->task_id,
                               .allocation_id = l->alloc_id,
                               .source = "master",
                               .stdtype = "stdout",
                               .rank = -1,
                               .level = l->level,
                               .time_us = l->now_us,
                               .log = text,
                               .log_len = strlen(text),
                               .offset = -1};
    vec_push(&r->texts, text);
    vec_push(&r->logs, line);
}

/* Kinds whose place among the others matters: all that waits goes out before them. */
static void in_order(struct rows *r, const struct core_effect *f)
{
    flush_rows(r);
    if (f->kind == CORE_SAVE_EXP_STATE)
        db_save_exp_state(r->tx, f->exp_state.id, f->exp_state.state, f->exp_state.undeleted);
    else if (f->kind == CORE_DELETE_SEARCH_SNAPSHOT)
        db_delete_search_snapshot(r->tx, f->exp_id);
    else
        db_delete_experiment(r->tx, f->exp_id);
}

static void save_row(struct rows *r, const struct core_effect *f)
{
    switch (f->kind) {
    case CORE_SAVE_EXPERIMENT: add_experiment(r, &f->experiment); break;
    case CORE_SAVE_SEARCH_EVENT: vec_push(&r->events, f->search_event); break;
    case CORE_SAVE_SEARCH_SNAPSHOT: /* of the events before it */
        events_flush(r);
        db_save_search_snapshot(r->tx, &f->search_snapshot);
        break;
    case CORE_SAVE_TRIAL: add_trial(r, &f->trial); break;
    case CORE_SAVE_ALLOCATION: add_allocation(r, &f->allocation); break;
    case CORE_SAVE_AGENT: db_save_agent(r->tx, &f->agent); break;
    case CORE_SAVE_STORE: db_save_store(r->tx, &f->store); break;
    case CORE_SAVE_PARKED: /* what it replaces is not there any more */
        db_save_parked(r->tx, &f->parked);
        break;
    case CORE_SAVE_TIMELINE: vec_push(&r->timeline, f->timeline); break;
    case CORE_TASK_LOG: log_line(r, &f->log); break;
    case CORE_SAVE_EXP_STATE:
    case CORE_DELETE_SEARCH_SNAPSHOT:
    case CORE_DELETE_EXPERIMENT: in_order(r, f); break;
    case CORE_ANY_SENT:
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT: break;
    }
}

/* Each kept back as little as can be: what is written after effect i, before the next, is its. */
static void save_singly(struct rows *r, const struct core_effects *f, struct driver_rows *ret)
{
    ret->first = db_tx_size(r->tx);
    ret->effects = det_reallocarray(NULL, f->n, sizeof *ret->effects);
    for (size_t i = 0; i < f->n; i++) {
        save_row(r, &f->v[i]);
        flush_rows(r);
        ret->effects[i] = db_tx_size(r->tx);
    }
    ret->n = f->n;
}

void driver_rows_save(struct db_tx *tx, const struct core_effects *f, struct driver_rows *singly)
{
    struct rows r = {.tx = tx};
    rows_begin(&r);
    for (size_t i = 0; !singly && i < f->n; i++)
        save_row(&r, &f->v[i]);
    if (singly)
        save_singly(&r, f, singly);
    flush_rows(&r);
    rows_empty(&r);
}

size_t driver_rows_find(const struct driver_rows *r, size_t stmt)
{
    size_t i = stmt < r->first ? r->n : 0;
    while (i < r->n && r->effects[i] <= stmt)
        i++;
    return i;
}

void driver_rows_finish(struct driver_rows *r)
{
    free(r->effects);
    *r = (struct driver_rows){0};
}
