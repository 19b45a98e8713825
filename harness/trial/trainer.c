#include "det/trainer.h"

#include "dataset.h"
#include "loop_env.h"
#include "run_progress.h"
#include "run_resume.h"
#include "trial_context.h"
#include "trial_crash.h"
#include "trial_loop.h"

#include <string.h>

struct det_trainer {
    struct det_loop_config config; /* each fit fills in its part */
    struct trial_extra extra;
    char *kwargs, *chief_host, *checkpoint_dir, *checkpoint;
    struct trial_run *run;
    struct run_progress progress;
};

/* ---- creating ---- */

/* *ret: the object of a text; NULL for NULL. */
static int parse_object(const char *text, const char *what, json_t **ret, struct det_err *err)
{
    *ret = NULL;
    if (!text)
        return 0;
    *ret = json_parse(text, strlen(text), err);
    if (!*ret)
        return det_wrap(err, DET_EINVAL, "det_trainer_create: %s", what);
    if (json_is_object(*ret))
        return 0;
    return det_fail(err, DET_EINVAL, "det_trainer_create: %s must be a JSON object", what);
}

static void set_ranks(struct det_trainer *t, const struct det_distributed *d)
{
    t->chief_host = det_strdup(d->chief_host);
    t->config.ranks = (struct comm_options){.rank = d->rank,
                                            .size = d->size,
                                            .local_rank = d->local_rank,
                                            .local_size = d->local_size,
                                            .chief_host = t->chief_host,
                                            .port = d->port};
}

static int configure_local(struct det_trainer *t, const struct det_trainer_options *o,
                           struct det_err *err)
{
    struct det_loop_config *c = &t->config;
    c->seed = o->seed;
    c->code_dir = det_strdup(".");
    c->tensorboard_dir = det_strdup(o->tensorboard_dir);
    if (o->distributed) {
        set_ranks(t, o->distributed);
        return 0;
    }
    return comm_options_from_env(&c->ranks, err);
}

static int configure_loop(struct det_trainer *t, const struct det_trainer_options *o,
                          struct det_err *err)
{
    struct det_loop_config *c = &t->config;
    json_t *hparams = NULL, *conf = NULL;
    int rc = parse_object(o->hparams, "hparams", &hparams, err);
    if (rc == 0)
        rc = parse_object(o->exp_conf, "exp_conf", &conf, err);
    if (rc == 0)
        rc = loop_env_managed() ? loop_env_config(c, err) : configure_local(t, o, err);
    if (hparams) {
        json_decref(c->hparams);
        c->hparams = hparams;
    }
    if (c->experiment_config)
        json_decref(conf);
    else
        c->experiment_config = conf;
    c->aggregation_frequency = o->aggregation_frequency ? o->aggregation_frequency : 1;
    c->average_aggregated_gradients = true;
    c->global_batch_size = json_int(c->hparams, "global_batch_size", 0);
    c->trial_type = det_strdup("CTrial");
    c->framework = det_strdup("det-" DET_VERSION);
    return rc;
}

int det_trainer_create(const struct det_trial_type *type, const struct det_trainer_options *options,
                       struct det_trainer **ret, struct det_err *err)
{
    static const struct det_trainer_options none;
    const struct det_trainer_options *o = options ? options : &none;
    *ret = NULL;
    int rc = trial_type_check(type, "the trial", err);
    if (rc < 0)
        return rc;
    struct det_trainer *t = det_zalloc(sizeof *t);
    t->config = (struct det_loop_config)LOOP_CONFIG_INIT;
    t->checkpoint_dir = det_strdup(o->checkpoint_dir);
    t->kwargs = det_strdup(o->kwargs);
    t->extra = (struct trial_extra){.arg = o->arg, .kwargs = t->kwargs};
    t->run = trial_run_create_with(type, &t->extra);
    trial_run_keep(t->run);
    if ((rc = configure_loop(t, o, err)) < 0) {
        det_trainer_destroy(t);
        return rc;
    }
    *ret = t;
    return 0;
}

void det_trainer_destroy(struct det_trainer *t)
{
    if (!t)
        return;
    trial_run_destroy(t->run);
    run_progress_finish(&t->progress);
    loop_config_finish(&t->config);
    free(t->kwargs);
    free(t->chief_host);
    free(t->checkpoint_dir);
    free(t->checkpoint);
    free(t);
}

/* ---- fitting ---- */

static int convert_unit(const struct det_loop_config *c, const struct det_unit *u, const char *what,
                        struct loop_unit *ret, struct det_err *err)
{
    *ret = (struct loop_unit){.n = u->n, .at = u->at, .n_at = u->n_at};
    if (u->kind == DET_UNIT_EPOCHS)
        ret->kind = LOOP_EPOCHS;
    if (u->kind != DET_UNIT_RECORDS || u->n < 1)
        return 0;
    if (u->at || c->global_batch_size < 1)
        return det_fail(err, DET_EINVAL,
                        u->at ? "%s: a list counts batches or epochs, not records"
                              : "%s: records need the hyperparameter global_batch_size",
                        what);
    int64_t n = u->n / c->global_batch_size;
    ret->n = n > 1 ? n : 1;
    return 0;
}

static int set_periods(struct det_loop_config *c, const struct det_fit_options *o,
                       struct det_err *err)
{
    static const struct det_unit hundred = DET_BATCHES(100);
    bool report = o->reporting_period.n > 0 || o->reporting_period.at;
    int rc =
        convert_unit(c, &o->checkpoint_period, "checkpoint_period", &c->checkpoint_period, err);
    if (rc == 0)
        rc =
            convert_unit(c, &o->validation_period, "validation_period", &c->validation_period, err);
    if (rc == 0)
        rc = convert_unit(c, report ? &o->reporting_period : &hundred, "reporting_period",
                          &c->reporting_period, err);
    return rc;
}

static int parse_policy(const char *name, enum loop_policy *ret, struct det_err *err)
{
    static const char *const names[] = {
        [LOOP_POLICY_BEST] = "best", [LOOP_POLICY_ALL] = "all", [LOOP_POLICY_NONE] = "none"};
    *ret = LOOP_POLICY_BEST;
    for (size_t i = 0; name && i < DET_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum loop_policy)i;
            return 0;
        }
    return name ? det_fail(err, DET_EINVAL, "checkpoint_policy: \"%.40s\" is not best, all or none",
                           name)
                : 0;
}

static int local_length(struct det_loop_config *c, const struct det_fit_options *o,
                        struct det_err *err)
{
    static const enum loop_length_unit kinds[] = {[DET_UNIT_BATCHES] = LOOP_LEN_BATCHES,
                                                  [DET_UNIT_RECORDS] = LOOP_LEN_RECORDS,
                                                  [DET_UNIT_EPOCHS] = LOOP_LEN_EPOCHS};
    c->test_mode = o->test_mode;
    c->length_unit = kinds[o->max_length.kind];
    c->max_length = o->max_length.n;
    c->interrupt = o->interrupt;
    if (o->max_length.n < 1 && !o->test_mode)
        return det_fail(err, DET_EINVAL,
                        "det_trainer_fit: max_length must be given, as in "
                        "det_trainer_fit(t, &err, .max_length = DET_EPOCHS(2))");
    return 0;
}

static int prepare_fit(struct det_trainer *t, const struct det_fit_options *o, struct det_err *err)
{
    struct det_loop_config *c = &t->config;
    int rc = set_periods(c, o, err);
    if (rc == 0)
        rc = parse_policy(o->checkpoint_policy, &c->policy, err);
    c->step_zero_validation = o->step_zero_validation;
    c->observer = run_progress_observer(&t->progress, o->quiet || c->managed);
    if (rc < 0)
        return rc;
    if (c->managed)
        return o->test_mode ? det_fail(err, DET_EINVAL,
                                       "test_mode is for training without a "
                                       "cluster")
                            : 0;
    free(c->checkpoint_dir);
    c->checkpoint_dir = det_strdup(t->checkpoint_dir);
    rc = local_length(c, o, err);
    return rc < 0 ? rc : run_resume(c, o->latest_checkpoint, err);
}

static void note_checkpoint(struct det_trainer *t)
{
    free(t->checkpoint);
    t->checkpoint = NULL;
    if (!t->progress.checkpoint || t->config.managed)
        return;
    det_cleanup(freep) char *root = loop_local_root(&t->config);
    t->checkpoint = det_asprintf("%s/%s", root, t->progress.checkpoint);
}

int det_trainer_fit_opt(struct det_trainer *t, const struct det_fit_options *options,
                        struct det_err *err)
{
    struct det_err local = {0};
    err = err ? err : &local;
    *err = (struct det_err){0};
    int rc = prepare_fit(t, options, err);
    if (rc < 0)
        return rc;
    struct det_loop_trial client = trial_run_client(t->run);
    data_fake(options->fake_data);
    rc = loop_run(&t->config, &client, err);
    data_fake(false);
    run_progress_clear(&t->progress);
    note_checkpoint(t);
    return rc;
}

/* ---- after it ---- */

struct det_trial_context *det_trainer_context(struct det_trainer *t)
{
    return trial_run_context(t->run);
}

void *det_trainer_trial(struct det_trainer *t)
{
    struct det_trial_context *ctx = trial_run_context(t->run);
    return ctx ? ctx->trial : NULL;
}

const char *det_trainer_checkpoint(const struct det_trainer *t)
{
    return t->checkpoint;
}

int det_trainer_exit_code(int rc)
{
    return loop_exit_code(rc);
}
