/* The database: what is left of a master, and what harnesses may write. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

void sim_store_init(struct sim_store *s)
{
    *s = (struct sim_store){.alloc_by_id = map_create()};
}

static void free_exp(struct stored_exp *e)
{
    sim_store_clear_row(ROW_EXPERIMENT, &e->r);
    free(e->snapshot);
    for (size_t i = 0; i < e->events.n; i++)
        free((char *)e->events.v[i].event);
    for (size_t i = 0; i < e->log.n; i++)
        free(e->log.v[i]);
    vec_free(&e->events);
    vec_free(&e->log);
    vec_free(&e->trials);
    free(e);
}

void sim_store_finish(struct sim_store *s)
{
    for (size_t i = 0; i < s->exps.n; i++)
        free_exp(s->exps.v[i]);
    for (size_t i = 0; i < s->trials.n; i++) {
        sim_store_clear_row(ROW_TRIAL, &s->trials.v[i]->r);
        free(s->trials.v[i]);
    }
    for (size_t i = 0; i < s->allocs.n; i++) {
        sim_store_clear_row(ROW_ALLOCATION, &s->allocs.v[i]->r);
        free(s->allocs.v[i]);
    }
    for (size_t i = 0; i < s->agents.n; i++)
        sim_store_clear_row(ROW_AGENT, &s->agents.v[i]);
    vec_free(&s->exps);
    vec_free(&s->trials);
    vec_free(&s->allocs);
    vec_free(&s->agents);
    map_destroy(s->alloc_by_id);
}

struct stored_trial *sim_store_trial(struct sim_store *s, int64_t id)
{
    return id >= 1 && (size_t)id <= s->trials.n ? s->trials.v[id - 1] : NULL;
}

struct stored_exp *sim_store_exp(struct sim_store *s, int64_t id)
{
    return id >= 1 && (size_t)id <= s->exps.n ? s->exps.v[id - 1] : NULL;
}

bool sim_store_is_ending(enum exp_state state)
{
    return state == EXP_STOPPING_COMPLETED || state == EXP_STOPPING_CANCELED ||
           state == EXP_STOPPING_KILLED;
}

bool sim_store_is_live(const struct stored_exp *e)
{
    return !exp_state_is_terminal(e->r.state) || e->r.state == EXP_DELETING;
}

int64_t sim_store_back_ms(const struct sim *m)
{
    const struct sim_store *s = &m->store;
    int64_t back = s->down_until > s->hung_until ? s->down_until : s->hung_until;
    return back > m->now_ms ? back : m->now_ms;
}

bool sim_store_noticed(const struct sim *m)
{
    const struct sim_store *s = &m->store;
    return m->now_ms < s->down_until ||
           (m->now_ms < s->hung_until && m->now_ms >= s->hung_from + NOTICE_MS);
}

/* The run's token dies with its allocation; the statement itself checks the run. */
static bool is_refused(struct sim *m, const struct stored_trial *t, int64_t run)
{
    if (!t || t->r.run_id != run || sim_store_exp(&m->store, t->r.experiment_id)->deleted)
        return true;
    return !t->alloc || t->alloc->r.run_id != run || t->alloc->r.state == ALLOC_TERMINATED;
}

bool sim_store_write(struct sim *m, int64_t trial, int64_t run, double steps, bool checkpoint)
{
    struct stored_trial *t = sim_store_trial(&m->store, trial);
    char uuid[48];
    if (is_refused(m, t, run)) {
        m->got.refused++;
        return false;
    }
    if (run < t->last_write_run)
        sim_fail(m, "I1: trial %lld: run %lld writes after run %lld did", (long long)trial,
                 (long long)run, (long long)t->last_write_run);
    t->last_write_run = run;
    if (checkpoint && (!t->r.latest_checkpoint || steps >= (double)t->r.latest_steps)) {
        snprintf(uuid, sizeof uuid, "cp-%lld-%lld", (long long)trial, (long long)steps);
        free((char *)t->r.latest_checkpoint);
        t->r.latest_checkpoint = det_strdup(uuid);
        t->r.latest_steps = (int64_t)steps;
        t->untold = true;
    }
    return true;
}

void sim_store_ended(struct sim_store *s, const struct stored_exp *e, struct core_continue *ret)
{
    struct row_search_event *events = det_alloc((e->log.n + 1) * sizeof *events);
    struct row_trial *trials = det_alloc((e->trials.n + 1) * sizeof *trials);
    for (size_t i = 0; i < e->log.n; i++)
        events[i] = (struct row_search_event){e->r.id, (int64_t)i + 1, e->log.v[i]};
    for (size_t i = 0; i < e->trials.n; i++)
        trials[i] = sim_store_trial(s, e->trials.v[i])->r;
    *ret = (struct core_continue){.row = e->r,
                                  .events = events,
                                  .events_n = e->log.n,
                                  .trials = trials,
                                  .trials_n = e->trials.n};
}

static int restore_exp(struct core *c, const struct stored_exp *e, bool search, struct det_err *err)
{
    int rc = core_restore_experiment(c, &e->r, err);
    if (!search)
        return rc;
    if (rc == 0 && e->snapshot && e->r.state != EXP_DELETING)
        rc = core_restore_search_snapshot(
            c, &(struct row_search_snapshot){e->r.id, e->snapshot_seq, e->snapshot}, err);
    for (size_t i = 0; rc == 0 && i < e->events.n; i++)
        rc = core_restore_search_event(c, &e->events.v[i], err);
    return rc;
}

/* As the database answers: by start time, which is wall time and may be anything. */
static int by_start(const void *x, const void *y)
{
    const struct row_allocation *a = *(struct row_allocation *const *)x;
    const struct row_allocation *b = *(struct row_allocation *const *)y;
    if (a->start_us != b->start_us)
        return a->start_us < b->start_us ? -1 : 1;
    return strcmp(a->id, b->id);
}

static int restore_allocs(struct core *c, struct sim_store *s, struct det_err *err)
{
    VEC(const struct row_allocation *) live = {0};
    int rc = 0;
    while (s->allocs_live < s->allocs.n && s->allocs.v[s->allocs_live]->r.state == ALLOC_TERMINATED)
        s->allocs_live++;
    for (size_t i = s->allocs_live; i < s->allocs.n; i++)
        if (s->allocs.v[i]->r.state != ALLOC_TERMINATED)
            vec_push(&live, &s->allocs.v[i]->r);
    if (live.n)
        qsort(live.v, live.n, sizeof *live.v, by_start);
    for (size_t i = 0; rc == 0 && i < live.n; i++)
        rc = core_restore_allocation(c, live.v[i], err);
    vec_free(&live);
    return rc;
}

struct core *sim_store_rebuild(struct sim *m, const struct core_options *o, int64_t search_of)
{
    struct det_err err = {0};
    struct sim_store *s = &m->store;
    struct core *c = core_create(o);
    int rc = 0;
    char nonce[UUID_STR_MAX];
    snprintf(nonce, sizeof nonce, "%08llx-of-a-leadership", (long long)s->epoch + 1);
    core_set_life(c, s->epoch + 1, nonce);
    core_restore_ids(c, (int64_t)s->exps.n, (int64_t)s->trials.n);
    for (size_t i = 0; rc == 0 && i < s->agents.n; i++)
        rc = core_restore_agent(c, &s->agents.v[i], &err);
    struct row_store ckpt = {.place = SIM_STORE, .id = s->ckpt_id};
    if (rc == 0 && s->ckpt_id[0])
        rc = core_restore_store(c, &ckpt, &err);
    for (size_t i = 0; rc == 0 && i < s->exps.n; i++)
        if (sim_store_is_live(s->exps.v[i]))
            rc = restore_exp(c, s->exps.v[i], !search_of || search_of == (int64_t)i + 1, &err);
    for (size_t i = 0; rc == 0 && i < s->exps.n; i++) {
        bool is_read = sim_store_is_live(s->exps.v[i]) && s->exps.v[i]->r.state != EXP_DELETING;
        size_t n = is_read ? s->exps.v[i]->trials.n : 0;
        for (size_t k = 0; rc == 0 && k < n; k++)
            rc = core_restore_trial(c, &sim_store_trial(s, s->exps.v[i]->trials.v[k])->r, &err);
    }
    if (rc == 0)
        rc = restore_allocs(c, s, &err);
    if (rc < 0)
        sim_fail(m, "rebuild: %s", err.text);
    return c;
}
