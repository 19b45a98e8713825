#include "run_local.h"

#include "loop_env.h"
#include "loop_local.h"
#include "run_resume.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the command line changes of it ---- */

/* "2 epochs", "2epochs", "500": batches. */
static int parse_length(const char *option, const char *text, const char **ret_unit, int64_t *ret,
                        struct det_err *err)
{
    static const char *const units[] = {"batches", "records", "epochs"};
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    bool number = end != text && errno == 0 && *ret > 0;
    end += strspn(end, " ");
    *ret_unit = *end ? NULL : units[0];
    for (size_t i = 0; i < DET_ARRAY_LEN(units); i++)
        if (strcmp(end, units[i]) == 0)
            *ret_unit = units[i];
    if (number && *ret_unit)
        return 0;
    return det_fail(err, DET_EINVAL,
                    "--%s=%s: give a length, as 500, \"500 batches\", \"2 epochs\" or \"9000 "
                    "records\"",
                    option, text);
}

static int set_length(json_t *config, const char *option, const char *key, const char *text,
                      struct det_err *err)
{
    const char *unit;
    int64_t n;
    if (!text)
        return 0;
    int rc = parse_length(option, text, &unit, &n, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *line = det_asprintf("%s={%s: %" PRId64 "}", key, unit, n);
    return expconf_override(config, line, err);
}

static int set_each(json_t *config, const char *prefix, const struct opt_list *list,
                    struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        det_cleanup(freep) char *line = det_asprintf("%s%s", prefix, list->v[i]);
        rc = expconf_override(config, line, err);
    }
    return rc;
}

static int change_config(const struct run_options *o, json_t *config, struct det_err *err)
{
    det_cleanup(freep) char *policy =
        o->checkpoint_policy ? det_asprintf("checkpoint_policy=%s", o->checkpoint_policy) : NULL;
    int rc = set_each(config, "", &o->set, err);
    if (rc == 0)
        rc = set_each(config, "hyperparameters.", &o->hparam, err);
    if (rc == 0)
        rc = set_length(config, "max-length", "searcher.max_length", o->max_length, err);
    if (rc == 0)
        rc = set_length(config, "checkpoint-period", "min_checkpoint_period", o->checkpoint_period,
                        err);
    if (rc == 0)
        rc = set_length(config, "validation-period", "min_validation_period", o->validation_period,
                        err);
    if (rc == 0 && policy)
        rc = expconf_override(config, policy, err);
    if (rc == 0 && o->step_zero_validation)
        rc = expconf_override(config, "perform_initial_validation=true", err);
    if (rc == 0 && o->test_mode && !json_path(config, "searcher.max_length"))
        rc = expconf_override(config, "searcher.max_length={batches: 1}", err);
    return rc;
}

static int complete_config(const struct run_options *o, const char *entrypoint, json_t **ret,
                           struct det_err *err)
{
    json_t *raw = NULL;
    int rc = loop_local_read(o->config, &raw, err);
    if (rc == 0)
        rc = change_config(o, raw, err);
    if (rc == 0)
        rc = loop_local_complete(raw, entrypoint, ret, err);
    json_decref(raw);
    return rc;
}

/* ---- together ---- */

/* In batches or epochs, unlike the configuration's scheduling_unit. */
static int set_reporting(const struct run_options *o, struct det_loop_config *c,
                         struct det_err *err)
{
    const char *unit;
    int64_t n;
    if (!o->reporting_period)
        return 0;
    int rc = parse_length("reporting-period", o->reporting_period, &unit, &n, err);
    if (rc < 0)
        return rc;
    c->reporting_period = (struct loop_unit){.n = n};
    if (strcmp(unit, "epochs") == 0)
        c->reporting_period.kind = LOOP_EPOCHS;
    if (strcmp(unit, "records") == 0)
        return det_fail(err, DET_EINVAL, "--reporting-period counts batches or epochs");
    return 0;
}

static int fill_loop_config(const struct run_options *o, const struct expconf *view,
                            struct det_loop_config *c, struct det_err *err)
{
    JSON_OWN hparams = NULL;
    int rc = loop_local_hparams(view, o->point, &hparams, err);
    if (rc < 0 || (rc = loop_config_from_experiment(c, view->config, hparams, err)) < 0)
        return rc;
    if (c->searcher_metric && strcmp(c->searcher_metric, LOOP_LOCAL_NO_METRIC) == 0) {
        free(c->searcher_metric);
        c->searcher_metric = NULL;
    }
    c->seed = view->experiment_seed;
    c->test_mode = o->test_mode;
    c->checkpoint_dir = det_strdup(o->checkpoint_dir);
    c->tensorboard_dir = det_strdup(o->tensorboard_dir);
    c->code_dir = det_strdup(".");
    if ((rc = set_reporting(o, c, err)) < 0 || (rc = comm_options_from_env(&c->ranks, err)) < 0)
        return rc;
    return run_resume(c, o->latest_checkpoint, err);
}

int run_local_config(const struct run_options *o, const char *entrypoint,
                     struct det_loop_config *ret, struct det_err *err)
{
    JSON_OWN config = NULL;
    struct expconf view;
    int rc = complete_config(o, entrypoint, &config, err);
    if (rc < 0 || (rc = expconf_view(config, &view, err)) < 0)
        return rc;
    rc = fill_loop_config(o, &view, ret, err);
    expconf_finish(&view);
    return rc;
}
