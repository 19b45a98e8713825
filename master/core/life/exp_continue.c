/*
 * An experiment that ended goes on (docs/contract/trial.md 4): it is rebuilt from its rows as after
 * a restart, and its trials that are not complete are opened again. Its search was not told of what
 * ended because it was stopped; of the other ends that are taken back it hears now. What the search
 * asked for and was not made before the stop comes from its whole log played again.
 */
#include "exp.h"

#include "conf.h"
#include "effects.h"
#include "fit.h"
#include "pool.h"
#include "quota.h"
#include "restore.h"
#include "trial.h"
#include <string.h>

/* What an override may not touch, and why. */
static const struct {
    const char *section, *key, *why;
} fixed[] = {
    {"searcher", "metric", "the validations so far were judged by it"},
    {"searcher", "smaller_is_better", "the validations so far were judged by it"},
    {"searcher", "source_trial_id", "the trial goes on from its own checkpoint"},
    {"searcher", "source_checkpoint_uuid", "the trial goes on from its own checkpoint"},
    {"reproducibility", "experiment_seed", "the trial was made from it"},
    {"checkpoint_storage", NULL, "the checkpoint to go on from is there"},
    {"workspace", NULL, "an experiment is moved by POST /experiments/{id}/move"},
    {"project", NULL, "an experiment is moved by POST /experiments/{id}/move"},
};

static const json_t *fixed_value(const json_t *config, size_t i)
{
    const json_t *j = json_object_get(config, fixed[i].section);
    return fixed[i].key ? json_object_get(j, fixed[i].key) : j;
}

static int check_fixed(const json_t *old, const json_t *new, struct det_err *err)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(fixed); i++) {
        const json_t *a = fixed_value(old, i), *b = fixed_value(new, i);
        if (a != b && !json_equal((json_t *)a, (json_t *)b))
            return det_fail(err, DET_EINVAL, "overrideConfig: %s%s%s cannot be changed: %s",
                            fixed[i].section, fixed[i].key ? "." : "",
                            fixed[i].key ? fixed[i].key : "", fixed[i].why);
    }
    return 0;
}

/* Nothing to train: the length is in the unit that it was in, and not above what was done. */
static int check_length(const struct core_continue *in, const struct conf *old,
                        const struct conf *new, struct det_err *err)
{
    const struct row_trial *t = &in->trials[0];
    if (in->trials_n == 0 || t->state != TRIAL_COMPLETED || strcmp(old->unit, new->unit) != 0)
        return 0;
    JSON_OWN core = json_parse(t->core, strlen(t->core), NULL);
    int64_t trained = json_int(core, "op_last", 0);
    if (trained < 1 || new->search.max_length > trained)
        return 0;
    return det_fail(err, DET_EINVAL,
                    "trial %lld is complete at %lld %s: give a larger searcher.max_length, in "
                    "overrideConfig or by det's --config searcher.max_length.%s=%lld",
                    (long long)t->id, (long long)trained, new->unit, new->unit,
                    (long long)trained * 2);
}

static int no_log(int64_t exp_id, struct det_err *err)
{
    return det_fail(err, DET_ESTATE,
                    "experiment %lld cannot be continued: the log of its search was not kept",
                    (long long)exp_id);
}

/* The end of a complete trial was told; of those that were stopped nothing was. */
static bool lacks_log(const struct core_continue *in)
{
    for (size_t i = 0; in->events_n == 0 && i < in->trials_n; i++)
        if (in->trials[i].state == TRIAL_COMPLETED)
            return true;
    return in->events_n > 0 && in->events[0].seq != 1;
}

static int check_search(const struct core_continue *in, const struct conf *old,
                        const struct conf *new, struct det_err *err)
{
    bool single = old->search.kind == SEARCH_SINGLE;
    long long id = in->row.id;
    if (!search_may_reopen(old->search.kind))
        return det_fail(err, DET_EINVAL,
                        "experiment %lld cannot be continued: its searcher is none of single, "
                        "random and grid",
                        id);
    if (in->config && !single)
        return det_fail(err, DET_EINVAL,
                        "overrideConfig: experiment %lld is no single search; others continue as "
                        "they are",
                        id);
    if (new->search.kind != old->search.kind)
        return det_fail(err, DET_EINVAL, "overrideConfig: searcher.name cannot be changed");
    if (lacks_log(in))
        return no_log(id, err);
    return single ? check_length(in, old, new, err) : 0;
}

static int check_state(struct core *c, const struct core_continue *in, struct det_err *err)
{
    const struct exp *e = exp_find(c, in->row.id);
    bool ended = in->row.state == EXP_COMPLETED || in->row.state == EXP_CANCELED ||
                 in->row.state == EXP_ERROR;
    if (e || !ended)
        return det_fail(err, DET_ESTATE,
                        "experiment %lld is %s: only one that has ended can be continued",
                        (long long)in->row.id, exp_state_text(e ? e->state : in->row.state));
    if (imap_get(c->edits, (uint64_t)in->row.id))
        return det_fail(err, DET_ESTATE,
                        "experiment %lld is being changed just now; try again in a moment",
                        (long long)in->row.id);
    if (core_exp_revision(c, in->row.id) != in->revision)
        return det_fail(err, DET_ESTATE,
                        "experiment %lld was changed, continued or deleted meanwhile; look at it "
                        "again",
                        (long long)in->row.id);
    return 0;
}

/* Where it lies now, unless the override names another: it may have been moved since it was
 * made. */
static const char *pool_of(const struct core_continue *in, const struct conf *old,
                           const struct conf *new)
{
    return strcmp(old->pool, new->pool) ? new->pool : in->row.resource_pool;
}

static int check_place(struct core *c, const struct core_continue *in, const struct conf *conf,
                       const char *pool, bool *ret_exceeded, struct det_err *err)
{
    JSON_OWN core = json_parse(in->row.core, strlen(in->row.core), NULL);
    int rc = conf_check_max_slots(conf, conf->max_slots, err);
    if (rc == 0)
        rc = core_fits(c, pool, conf->slots, ret_exceeded, err);
    if (rc < 0)
        return rc;
    return quota_check(c, json_str(core, "owner", NULL), pool_find(c, pool), conf->slots, err);
}

static int check_continue(struct core *c, const struct core_continue *in, const json_t *old_config,
                          bool *ret_exceeded, struct det_err *err)
{
    struct conf old, new;
    int rc = check_state(c, in, err);
    if (rc == 0)
        rc = conf_read(old_config, &old, err);
    if (rc == 0)
        rc = conf_read(in->config ? in->config : old_config, &new, err);
    if (rc == 0)
        rc = check_search(in, &old, &new, err);
    if (rc == 0 && in->config)
        rc = check_fixed(old_config, in->config, err);
    return rc < 0 ? rc : check_place(c, in, &new, pool_of(in, &old, &new), ret_exceeded, err);
}

/* As after a restart, by the new configuration. */
static int rebuild_exp(struct core *c, const struct core_continue *in, struct exp **ret,
                       struct det_err *err)
{
    struct row_experiment row = in->row;
    det_cleanup(freep) char *text = in->config ? json_text(in->config) : NULL;
    if (text)
        row.config = text;
    int rc = core_restore_experiment(c, &row, err);
    if (rc < 0)
        return rc;
    struct exp *e = *ret = exp_find(c, row.id);
    e->todo_owed = true; /* all that the search ever asked for is wanted */
    for (size_t i = 0; rc == 0 && i < in->events_n; i++)
        rc = core_restore_search_event(c, &in->events[i], err);
    if (rc == 0)
        restore_beginning(e);
    for (size_t i = 0; rc == 0 && i < in->trials_n; i++)
        rc = core_restore_trial(c, &in->trials[i], err);
    if (rc < 0)
        exp_drop(c, e);
    return rc;
}

/* Request id -> hyperparameters, of all trials that the search asked for. */
static struct map *asked_for(const struct exp *e)
{
    struct map *m = map_create();
    for (size_t i = 0; i < e->todo.ops.n; i++)
        if (e->todo.ops.v[i].kind == SEARCH_CREATE)
            map_put(m, e->todo.ops.v[i].request_id, e->todo.ops.v[i].hparams);
    return m;
}

static bool goes_on(const struct exp *e, const struct trial *t)
{
    return e->conf.search.kind == SEARCH_SINGLE || t->state != TRIAL_COMPLETED;
}

/* What a finished trial does not hold. asked NULL: the search, played again, did not make it. */
static int give_hparams(struct trial *t, const struct core_continue *in, const char *text,
                        json_t *asked, struct det_err *err)
{
    if (!asked && in->config)
        return det_fail(err, DET_EINVAL,
                        "overrideConfig: hyperparameters: trial %lld was drawn at random "
                        "otherwise; change constants only",
                        (long long)t->id);
    if (!asked)
        return no_log(t->exp->id, err);
    t->hparams = in->config ? json_incref(asked) : json_parse(text, strlen(text), err);
    t->hparams_changed = in->config != NULL;
    return t->hparams ? 0 : det_wrap(err, DET_ECORRUPT, "trial %lld", (long long)t->id);
}

static int give_all_hparams(struct exp *e, const struct core_continue *in, struct det_err *err)
{
    struct map *asked = asked_for(e);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < e->trials.n; i++)
        if (goes_on(e, e->trials.v[i]))
            rc = give_hparams(e->trials.v[i], in, in->trials[i].hparams,
                              map_get(asked, e->trials.v[i]->request_id), err);
    map_destroy(asked);
    return rc;
}

/* What the override says of its place, where people have not said otherwise since. */
static void follow_config(struct core *c, struct exp *e, const struct core_continue *in,
                          const json_t *old_config)
{
    struct conf old;
    if (!in->config || conf_read(old_config, &old, NULL) < 0)
        return;
    e->config_changed = true;
    if (strcmp(old.pool, e->conf.pool))
        e->pool = pool_find(c, e->conf.pool);
    if (old.priority != e->conf.priority)
        e->group->priority = e->conf.priority;
    if (old.weight < e->conf.weight || old.weight > e->conf.weight)
        e->group->weight = e->conf.weight;
    if (old.max_slots != e->conf.max_slots)
        e->group->max_slots = e->conf.max_slots;
}

static void reopen_trial(struct core *c, struct exp *e, struct trial *t)
{
    struct search_event ev = {.kind = SEARCH_EV_REOPENED,
                              .request_id = t->request_id,
                              .length = e->conf.search.max_length,
                              .reason = t->exit_reason >= 0 ? (enum search_exit)t->exit_reason
                                                            : SEARCH_USER_STOP};
    trial_reopen(c, t);
    exp_tell(c, e, &ev);
}

static void revive_exp(struct core *c, struct exp *e)
{
    VEC(struct trial *) again = {0};
    exp_goto(c, e, EXP_ACTIVE);
    e->end_us = 0;
    for (size_t i = 0; i < e->trials.n; i++)
        if (goes_on(e, e->trials.v[i]))
            vec_push(&again, e->trials.v[i]);
    fx_add(c->out, CORE_DELETE_SEARCH_SNAPSHOT)->exp_id = e->id; /* it lacks what is still owed */
    exp_resume_todo(c, e);
    for (size_t i = 0; i < again.n; i++)
        reopen_trial(c, e, again.v[i]);
    vec_free(&again);
    e->progress = search_progress(e->search);
}

static bool has_rest(const struct exp *e)
{
    size_t created = 0, complete = 0;
    for (size_t i = 0; i < e->todo.ops.n; i++)
        created += e->todo.ops.v[i].kind == SEARCH_CREATE;
    for (size_t i = 0; i < e->trials.n; i++)
        complete += !goes_on(e, e->trials.v[i]);
    return complete < created;
}

int exp_continue(struct core *c, const struct core_continue *in, bool *ret_exceeded,
                 struct det_err *err)
{
    struct exp *e = NULL;
    JSON_OWN old_config = json_parse(in->row.config, strlen(in->row.config), err);
    int rc = old_config ? check_continue(c, in, old_config, ret_exceeded, err) : DET_ECORRUPT;
    if (rc == 0)
        rc = rebuild_exp(c, in, &e, err);
    if (rc < 0)
        return rc;
    rc = give_all_hparams(e, in, err);
    if (rc == 0 && !has_rest(e))
        rc = det_fail(err, DET_ESTATE, "all trials of experiment %lld are complete",
                      (long long)e->id);
    if (rc < 0) {
        exp_drop(c, e);
        return rc;
    }
    exp_revise(c, e->id);
    follow_config(c, e, in, old_config);
    revive_exp(c, e);
    return 0;
}
