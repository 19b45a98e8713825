#include "loop.h"

#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_profile.h"
#include "loop_report.h"
#include "preempt.h"
#include "reporter.h"
#include "storage.h"

#include <string.h>

#define LINGER_MS 3000 /* what a crash leaves unsent, det-task sends from the spool */

/* ---- Accessors ------------------------------------------------------------------------------- */

const struct det_loop_config *loop_config(const struct loop *l)
{
    return l->c;
}

struct comm *loop_comm(struct loop *l)
{
    return l->comm;
}

int64_t loop_batch_idx(const struct loop *l)
{
    return l ? l->batch_idx : -1;
}

int64_t loop_epoch_idx(const struct loop *l)
{
    return l && l->epoch_len && l->batch_idx >= 0 ? l->batch_idx / l->epoch_len : 0;
}

int64_t loop_epoch_len(const struct loop *l)
{
    return l ? l->epoch_len : 0;
}

int64_t loop_batches_trained(const struct loop *l)
{
    return l->state.batches_trained;
}

void loop_set_stop_requested(struct loop *l, bool stop)
{
    if (l)
        l->stop_requested = stop;
}

bool loop_get_stop_requested(const struct loop *l)
{
    return l && l->stop_requested;
}

int loop_exit_code(int rc)
{
    return rc == 0 ? 0 : rc == DET_ESTALE ? 75 : 1;
}

void loop_config_finish(struct det_loop_config *c)
{
    char **strings[] = {&c->task_id,           &c->allocation_id,   &c->cluster_id,
                        &c->latest_checkpoint, &c->searcher_metric, &c->code_dir,
                        &c->spool_path,        &c->trial_cls_spec,  &c->trial_type,
                        &c->framework,         &c->checkpoint_dir,  &c->tensorboard_dir,
                        &c->store_id};
    for (size_t i = 0; i < DET_ARRAY_LEN(strings); i++) {
        free(*strings[i]);
        *strings[i] = NULL;
    }
    json_decref(c->experiment_config);
    json_decref(c->hparams);
    json_decref(c->checkpoint_storage);
    c->experiment_config = c->hparams = c->checkpoint_storage = NULL;
}

/* ---- Before the trial ------------------------------------------------------------------------ */

static int check_config(const struct det_loop_config *c, struct det_err *err)
{
    if (c->reporting_period.n < 1 && !c->reporting_period.at)
        return det_fail(err, DET_EINVAL, "scheduling_unit must be at least 1");
    if (c->aggregation_frequency < 1)
        return det_fail(err, DET_EINVAL, "aggregation_frequency must be at least 1");
    if (c->length_unit == LOOP_LEN_RECORDS && c->global_batch_size < 1)
        return det_fail(err, DET_EINVAL,
                        "a length in records needs the hyperparameter global_batch_size");
    if (!c->managed && !c->test_mode && c->max_length < 1)
        return det_fail(err, DET_EINVAL, "local training needs a max_length of at least 1");
    if (c->managed && c->test_mode)
        return det_fail(err, DET_EINVAL, "test mode is for local training");
    if (c->managed && !c->http.call)
        return det_fail(err, DET_EINVAL, "a managed trial needs a way to reach the master");
    return 0;
}

static int check_trial(const struct det_loop_trial_type *t, struct det_err *err)
{
    bool saves = t->snapshot ? t->write_snapshot && t->free_snapshot : t->save != NULL;
    if (!t->create || !t->build_training_loader || !t->build_validation_loader || !t->train_batch ||
        !t->set_training || !saves || !t->load)
        return det_fail(err, DET_EINVAL, "the trial lacks a required hook");
    if (!t->evaluate_batch == !t->evaluate_all)
        return det_fail(err, DET_EINVAL,
                        "a trial must have exactly one of evaluate_batch and "
                        "evaluate_full_dataset");
    return 0;
}

static int open_reporter(struct loop *l, struct det_err *err)
{
    const struct det_loop_config *c = l->c;
    struct reporter_options o = {.http = c->http, .spool_path = c->spool_path, .run_id = c->run_id};
    return reporter_open(&o, &l->reporter, err);
}

/* The reporter first: the group's own thread may have something to report. */
static int join_group(struct loop *l, struct det_err *err)
{
    struct comm_options o = l->c->ranks;
    bool reports = l->c->managed && o.rank == 0;
    o.on_unheard = loop_invalid_hp_unheard;
    o.arg = l;
    int rc = reports ? open_reporter(l, err) : 0;
    if (rc == 0)
        rc = comm_open(&o, &l->comm, err);
    if (rc == 0 && reports)
        rc = preempt_start(&l->c->http, l->c->allocation_id, &l->preempt, err);
    return rc;
}

static int open_run(struct loop *l, struct det_err *err)
{
    int rc = check_config(l->c, err);
    if (rc == 0)
        rc = check_trial(l->t, err);
    if (rc == 0)
        rc = join_group(l, err);
    if (rc < 0)
        return rc;
    comm_set_timeout(l->comm, LOOP_PATIENCE_MS);
    l->rank = comm_rank(l->comm);
    l->size = comm_size(l->comm);
    l->chief = l->rank == 0;
    return 0;
}

/* ---- The trial ------------------------------------------------------------------------------- */

static int take_parts(struct loop *l, struct det_err *err)
{
    int rc = 0;
    if (l->t->callbacks)
        rc = l->t->callbacks(l->self, &l->callbacks, &l->n_callbacks, err);
    if (rc == 0 && l->t->reducers)
        rc = l->t->reducers(l->self, &l->reducers, &l->n_reducers, err);
    if (rc == 0 && l->t->lr_schedulers)
        rc = l->t->lr_schedulers(l->self, &l->lrs, &l->n_lrs, err);
    for (size_t i = 0; rc == 0 && i < l->n_lrs; i++)
        if (l->lrs[i].frequency < 1)
            return det_fail(err, DET_EINVAL, "LR scheduler %zu: frequency must be at least 1", i);
    return rc;
}

static int build_loaders(struct loop *l, struct det_err *err)
{
    struct loop_agreed a = {0};
    int rc = l->t->build_training_loader(l->self, &l->train, err);
    if (rc < 0)
        return det_wrap(err, rc, "build_training_data_loader");
    rc = l->t->build_validation_loader(l->self, &l->valid, err);
    if (rc < 0)
        return det_wrap(err, rc, "build_validation_data_loader");
    if (l->train.batches < 1)
        return det_fail(err, DET_EINVAL, "the training data has no batch");
    if (l->train.batches < l->size)
        return det_fail(err, DET_EINVAL,
                        "the training data has %lld batches for %d ranks, so that some have none: "
                        "take a smaller global_batch_size, or fewer slots",
                        (long long)l->train.batches, l->size);
    a.n[0] = l->train.batches == INT64_MAX ? INT64_MAX
                                           : sampler_shard_length(l->train.batches, l->size, 0);
    rc = loop_agree(l, &a, err); /* the chief's length is everybody's */
    l->epoch_len = a.n[0];
    return rc;
}

static int start_training_data(struct loop *l, struct det_err *err)
{
    struct sampler_plan p = {.batches = l->train.batches,
                             .repeat = true,
                             .size = l->size,
                             .rank = l->rank,
                             .skip = l->state.batches_trained};
    int rc = l->train.type->start ? l->train.type->start(l->train.self, &p, err) : 0;
    return rc < 0 ? det_wrap(err, rc, "training data") : 0;
}

static int step_zero(struct loop *l, struct det_err *err)
{
    bool wanted =
        l->c->step_zero_validation && l->state.batches_trained == 0 && l->known_validation < 0;
    return wanted ? loop_validate(l, err) : 0;
}

/* Its disk may be the slowest. */
static int take_from_chief(struct loop *l, struct det_err *err)
{
    loop_alive_wait(!l->chief);
    int rc = l->t->broadcast(l->self, l->comm, err);
    loop_alive_wait(false);
    return rc;
}

/* Everything between on_trial_startup and on_trial_shutdown. */
static int run_trial(struct loop *l, struct det_err *err)
{
    const char *uuid = l->latest[0] ? l->latest : NULL;
    int rc = LOOP_CALLBACKS(l, on_trial_startup, l->state.batches_trained, uuid, err);
    if (rc == 0)
        rc = build_loaders(l, err);
    loop_alive(PROGRESS_STARTING, 0);
    if (rc == 0)
        rc = loop_restore_load(l, err);
    if (rc == 0 && l->size > 1 && l->t->broadcast)
        rc = take_from_chief(l, err);
    if (rc == 0)
        rc = start_training_data(l, err);
    loop_alive(PROGRESS_STARTING, 0);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_training_start, err);
    if (rc == 0)
        rc = step_zero(l, err);
    return rc < 0 ? rc : loop_run_ops(l, err);
}

/* In reverse order, all of them; a failure counts only if nothing failed before. */
static int shutdown_hooks(struct loop *l, int rc, struct det_err *err)
{
    for (size_t i = l->n_callbacks; i-- > 0;) {
        const struct loop_callback *cb = &l->callbacks[i];
        struct det_err e = {0};
        int r = cb->on_trial_shutdown ? cb->on_trial_shutdown(cb->self, &e) : 0;
        if (r < 0 && rc == 0)
            rc = det_fail(err, r, "on_trial_shutdown: %s", e.text);
    }
    return rc;
}

static int run_started(struct loop *l, struct det_err *err)
{
    int rc = l->chief ? loop_ask_trial(l, err) : 0;
    struct loop_agreed a = {.n = {l->known_validation}};
    loop_agreed_fail(&a, rc, err);
    rc = loop_agree(l, &a, err);
    l->known_validation = a.n[0];
    if (rc == 0)
        rc = loop_restore_choose(l, err);
    if (rc < 0)
        return rc;
    if ((rc = loop_profile_open(l, err)) < 0)
        return rc;
    l->started = true;
    return run_trial(l, err);
}

static int run_created(struct loop *l, struct det_err *err)
{
    int rc = loop_check_storage(l, err);
    if (rc == 0 && (rc = l->t->create(l->self, l, err)) < 0)
        det_wrap(err, rc, "create");
    if (rc == 0)
        rc = take_parts(l, err);
    if (rc == 0)
        rc = loop_checkpoint_init(l, err);
    if (rc == 0)
        rc = run_started(l, err);
    rc = loop_invalid_hp(l, rc, err);
    if (l->started)
        rc = shutdown_hooks(l, rc, err);
    loop_checkpoint_abandon(l, rc);
    if (rc == 0 && l->t->between_batches)
        l->t->between_batches(l->self, true);
    loop_profile_close(l);
    if (rc != DET_ESTALE)
        loop_tensorboard_keep(l);
    return rc == DET_EINVALIDHP ? loop_invalid_hp_report(l, err) : rc;
}

/* ---- After it -------------------------------------------------------------------------------- */

static int close_run(struct loop *l, int rc, struct det_err *err)
{
    if (rc == 0 && l->reporter)
        rc = reporter_flush(l->reporter, err);
    if (rc == 0 && l->comm && l->size > 1) {
        comm_set_timeout(l->comm, 10000);
        det_ignore(comm_barrier(l->comm, NULL), "nobody needs anything of anybody any more");
    }
    comm_close(l->comm); /* first: the others wait for us no longer than until we hang up */
    reporter_close(l->reporter, rc == 0 ? 0 : LINGER_MS);
    preempt_stop(l->preempt);
    storage_close(l->storage);
    loop_rows_finish(&l->rows);
    loop_rows_finish(&l->outs);
    return rc;
}

int loop_run(const struct det_loop_config *c, const struct det_loop_trial *t, struct det_err *err)
{
    struct det_err local = {0};
    struct loop l = {.c = c,
                     .t = t->type,
                     .self = t->self,
                     .batch_idx = -1,
                     .known_validation = -1,
                     .state = {.trial_id = c->trial_id}};
    err = err ? err : &local;
    loop_alive(PROGRESS_STARTING, 0);
    int rc = open_run(&l, err);
    if (rc == 0) {
        rc = run_created(&l, err);
        if (t->type->destroy)
            t->type->destroy(t->self);
    }
    loop_storage_note(&l, rc, err);
    return close_run(&l, rc, err);
}
