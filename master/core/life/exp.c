#include "exp.h"

#include "agent.h"
#include "conf.h"
#include "effects.h"
#include "fit.h"
#include "pool.h"
#include "quota.h"
#include "store.h"
#include "trial.h"
#include <assert.h>
#include <string.h>

#define STOPS                                                                                      \
    (BIT(EXP_STOPPING_COMPLETED) | BIT(EXP_STOPPING_CANCELED) | BIT(EXP_STOPPING_KILLED) |         \
     BIT(EXP_STOPPING_ERROR))

void exp_goto(struct core *c, struct exp *e, enum exp_state to)
{
    e->state = edges_go(c, MACHINE_EXP, e->state, to);
    free(e->held);
    free(e->undeleted);
    e->held = e->undeleted = NULL;
    exp_mark(c, e);
    if (e->conf.search.kind == SEARCH_CUSTOM)
        fx_add(c->out, CORE_SEARCH_WAKE)->exp_id = e->id;
}

void exp_mark(struct core *c, struct exp *e)
{
    if (!e->dirty)
        vec_push(&c->dirty_exps, e);
    e->dirty = true;
}

struct exp *exp_find(const struct core *c, int64_t id)
{
    return id > 0 ? imap_get(c->exp_by_id, (uint64_t)id) : NULL;
}

void exp_enlist(struct core *c, struct exp *e)
{
    e->by_request = map_create();
    e->group->user = quota_user(c, e->owner_id, e->owner);
    e->group->store = store_of(c, e->config, e->owner_id);
    JSON_OWN whole = e->config;
    e->config = conf_trim(whole);
    e->more.kind = TIMER_EXP;
    imap_put(c->exp_by_id, (uint64_t)e->id, e);
    vec_push(&c->exps, e);
    size_t i = c->exps.n - 1;
    for (; i > 0 && c->exps.v[i - 1]->id > e->id; i--)
        c->exps.v[i] = c->exps.v[i - 1];
    c->exps.v[i] = e;
}

struct exp *exp_make(struct core *c)
{
    struct exp *e = det_zalloc(sizeof *e);
    e->group = slab_get(&c->groups);
    return e;
}

void exp_destroy(struct exp *e)
{
    if (!e)
        return;
    search_destroy(e->search);
    for (size_t i = e->todo_at; i < e->todo.ops.n; i++)
        search_op_finish(&e->todo.ops.v[i]);
    vec_free(&e->todo.ops);
    for (size_t i = 0; i < e->trials.n; i++)
        trial_destroy(e->trials.v[i]);
    vec_free(&e->trials);
    map_destroy(e->by_request);
    json_decref(e->config);
    free(e->config_text);
    free(e->job_id);
    free(e->owner);
    free(e->held);
    free(e->undeleted);
    free(e->warm_start);
    slab_put(e->group);
    free(e);
}

/* The place of an id in the list. */
static size_t place_of(const struct core *c, int64_t id)
{
    return vec_bound(&c->exps, e, (*e)->id < id);
}

void exp_drop(struct core *c, struct exp *e)
{
    for (size_t i = 0; i < e->trials.n; i++)
        imap_del(c->trial_by_id, (uint64_t)e->trials.v[i]->id);
    imap_del(c->exp_by_id, (uint64_t)e->id);
    vec_remove(&c->exps, place_of(c, e->id));
    exp_destroy(e);
}

uint64_t core_exp_revision(const struct core *c, int64_t exp_id)
{
    return (uint64_t)(uintptr_t)imap_get(c->revisions, (uint64_t)exp_id);
}

void exp_revise(struct core *c, int64_t exp_id)
{
    imap_put(c->revisions, (uint64_t)exp_id, (void *)(uintptr_t)(core_exp_revision(c, exp_id) + 1));
}

void exp_edit(struct core *c, int64_t exp_id, bool begins)
{
    uintptr_t n = (uintptr_t)imap_get(c->edits, (uint64_t)exp_id);
    assert(begins || n > 0);
    n = begins ? n + 1 : n - 1;
    if (n > 0)
        imap_put(c->edits, (uint64_t)exp_id, (void *)n);
    else
        imap_del(c->edits, (uint64_t)exp_id);
    if (!begins)
        exp_revise(c, exp_id);
}

static int check_create(struct core *c, const struct core_create *in, struct exp *e,
                        bool *ret_exceeded, struct det_err *err)
{
    if (!in->config || !in->job_id)
        return det_fail(err, DET_EINVAL, "an experiment needs a configuration and a job id");
    int rc = conf_read(in->config, &e->conf, err);
    if (rc < 0)
        return rc;
    rc = conf_check_max_slots(&e->conf, e->conf.max_slots, err);
    if (rc < 0)
        return rc;
    rc = core_fits(c, e->conf.pool, e->conf.slots, ret_exceeded, err);
    if (rc == 0)
        rc = quota_check(c, in->owner, pool_find(c, e->conf.pool), e->conf.slots, err);
    if (rc < 0)
        return rc;
    return search_create(&e->conf.search, &e->search, err);
}

static void fill_exp(struct core *c, struct exp *e, const struct core_create *in)
{
    e->id = ++c->last_exp;
    e->job_id = det_strdup(in->job_id);
    e->owner_id = in->owner_id;
    e->owner = det_strdup(in->owner);
    e->project_id = in->project_id;
    e->parent_id = in->parent_id;
    e->config = json_incref(in->config);
    e->config_text = json_text(in->config);
    e->submission = in->submission;
    e->warm_start = det_strdup(in->warm_start);
    e->state = in->activate ? EXP_ACTIVE : EXP_PAUSED;
    e->start_us = c->now_us;
    e->pool = pool_find(c, e->conf.pool);
    e->group->priority = e->conf.priority;
    e->group->weight = e->conf.weight;
    e->group->max_slots = e->conf.max_slots;
    e->group->position = (double)e->id;
    e->is_new = true;
}

DET_DEFINE_CLEANUP(struct exp *, exp_destroy)

int exp_create(struct core *c, const struct core_create *in, int64_t *ret_id, bool *ret_exceeded,
               struct det_err *err)
{
    det_cleanup(exp_destroyp) struct exp *made = exp_make(c);
    int rc = check_create(c, in, made, ret_exceeded, err);
    if (rc < 0)
        return rc;
    struct exp *e = det_take(made);
    fill_exp(c, e, in);
    exp_enlist(c, e);
    exp_mark(c, e);
    *ret_id = e->id;
    exp_tell(c, e, &(struct search_event){.kind = SEARCH_EV_INITIAL});
    return 0;
}

void exp_stop(struct core *c, struct exp *e, enum exp_state to, const char *reason)
{
    static const enum trial_state trial_stop[EXP_STATE_COUNT] = {
        [EXP_STOPPING_COMPLETED] = TRIAL_STOPPING_COMPLETED,
        [EXP_STOPPING_CANCELED] = TRIAL_STOPPING_CANCELED,
        [EXP_STOPPING_KILLED] = TRIAL_STOPPING_KILLED,
        [EXP_STOPPING_ERROR] = TRIAL_STOPPING_ERROR,
    };
    exp_goto(c, e, to);
    exp_drop_todo(c, e);
    for (size_t i = 0; i < e->trials.n; i++)
        trial_set(c, e->trials.v[i], trial_stop[to], reason);
    exp_maybe_finish(c, e);
}

void exp_hold(struct core *c, struct exp *e, char *why)
{
    exp_goto(c, e, EXP_PAUSED);
    e->held = why;
    for (size_t i = 0; i < e->trials.n; i++)
        if (e->trials.v[i]->state == TRIAL_ACTIVE)
            trial_set(c, e->trials.v[i], TRIAL_PAUSED,
                      "the search is held: the first of its trials to fail failed alike");
}

/* It may go on some day, and then as if it had never been stopped. */
static bool is_kept_for_later(const struct exp *e)
{
    const unsigned stopped =
        BIT(EXP_STOPPING_CANCELED) | BIT(EXP_STOPPING_KILLED) | BIT(EXP_STOPPING_ERROR);
    return (BIT(e->state) & stopped) && search_may_reopen(e->conf.search.kind);
}

static void tell_end(struct core *c, struct exp *e, const struct trial *t)
{
    if (t->exit_reason >= 0)
        exp_tell(c, e,
                 &(struct search_event){.kind = SEARCH_EV_EXITED,
                                        .request_id = t->request_id,
                                        .reason = (enum search_exit)t->exit_reason});
    exp_tell(c, e, &(struct search_event){.kind = SEARCH_EV_CLOSED, .request_id = t->request_id});
}

void exp_on_trial_end(struct core *c, struct exp *e, struct trial *t)
{
    if (!t->is_new && !t->hparams_changed) {
        json_decref(t->hparams);
        t->hparams = NULL;
    }
    if (!is_kept_for_later(e))
        tell_end(c, e, t);
    if (!exp_has_ended(e))
        e->progress = search_progress(e->search);
    exp_maybe_finish(c, e);
}

static enum exp_state end_of(enum exp_state stopping)
{
    if (stopping == EXP_STOPPING_COMPLETED)
        return EXP_COMPLETED;
    return stopping == EXP_STOPPING_ERROR ? EXP_ERROR : EXP_CANCELED;
}

void exp_maybe_finish(struct core *c, struct exp *e)
{
    if (e->open > 0 || !(BIT(e->state) & STOPS))
        return;
    exp_goto(c, e, end_of(e->state));
    e->end_us = fx_end_us(c, e->start_us);
    e->progress = e->state == EXP_COMPLETED ? 1 : e->progress;
    fx_add(c->out, CORE_GC_WANTED)->exp_id = e->id;
}

bool exp_may(const struct exp *e, enum exp_state to)
{
    return edges_may(MACHINE_EXP, e->state, to);
}

bool exp_has_ended(const struct exp *e)
{
    return exp_state_is_terminal(e->state) && e->state != EXP_DELETING;
}
