#include "run_local.h"

#include "clk.h"
#include "expconf.h"
#include "fsx.h"
#include "hparam.h"
#include "loop_env.h"
#include "run_resume.h"
#include "yamljson.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_MAX ((size_t)4 << 20)
/* Stands for a searcher's metric that nobody named: none is asked for then. */
#define NO_METRIC "(none)"

/* ---- the configuration ---- */

static int read_yaml(const char *path, json_t **ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    *ret = NULL;
    if (!path) {
        *ret = json_object();
        return 0;
    }
    int rc = fsx_read_file(AT_FDCWD, path, CONFIG_MAX, &text, err);
    if (rc < 0)
        return rc;
    rc = yamljson_parse(buf_str(&text), text.len, ret, err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}

/* What a local run does not need to be told. */
static void set_default(json_t *config, const char *key, json_t *value)
{
    if (json_is_object(config) && !json_object_get(config, key))
        json_object_set_new(config, key, value);
    else
        json_decref(value);
}

static void fill_in(json_t *config, const char *entrypoint)
{
    set_default(config, "name", json_string("local"));
    set_default(config, "entrypoint", json_string(entrypoint));
    set_default(config, "hyperparameters", json_object());
    set_default(config, "checkpoint_storage",
                json_make("{s:s,s:s}", "type", "directory", "container_path", "/"));
    set_default(config, "reproducibility", json_make("{s:i}", "experiment_seed", 0));
    set_default(config, "searcher", json_object());
    set_default(json_obj(config, "searcher"), "name", json_string("single"));
    set_default(json_obj(config, "searcher"), "metric", json_string(NO_METRIC));
}

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
                    "records\"", option, text);
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

static int change(const struct run_options *o, json_t *config, struct det_err *err)
{
    det_cleanup(freep) char *policy =
        o->checkpoint_policy ? det_asprintf("checkpoint_policy=%s", o->checkpoint_policy) : NULL;
    int rc = set_each(config, "", &o->set, err);
    if (rc == 0)
        rc = set_each(config, "hyperparameters.", &o->hparam, err);
    if (rc == 0)
        rc = set_length(config, "max-length", "searcher.max_length", o->max_length, err);
    if (rc == 0)
        rc = set_length(config, "checkpoint-period", "min_checkpoint_period",
                        o->checkpoint_period, err);
    if (rc == 0)
        rc = set_length(config, "validation-period", "min_validation_period",
                        o->validation_period, err);
    if (rc == 0 && policy)
        rc = expconf_override(config, policy, err);
    if (rc == 0 && o->step_zero_validation)
        rc = expconf_override(config, "perform_initial_validation=true", err);
    if (rc == 0 && o->test_mode && !json_path(config, "searcher.max_length"))
        rc = expconf_override(config, "searcher.max_length={batches: 1}", err);
    return rc;
}

static int complete(const struct run_options *o, const char *entrypoint, json_t **ret,
                    struct det_err *err)
{
    json_t *raw = NULL;
    int rc = read_yaml(o->config, &raw, err);
    if (rc == 0)
        rc = change(o, raw, err);
    if (rc == 0) {
        const struct expconf_defaults defaults = {.wall_s = clk_wall_us() / 1000000};
        fill_in(raw, entrypoint ? entrypoint : "model_def:Trial");
        rc = expconf_complete(raw, &defaults, ret, NULL, err);
    }
    json_decref(raw);
    return rc;
}

/* ---- one point ---- */

static json_t *pick_point(const struct run_options *o, const struct expconf *view,
                          struct det_err *err)
{
    struct mt19937 r;
    if (view->searcher != EXPCONF_GRID) {
        mt19937_seed(&r, view->experiment_seed);
        return hparam_sample(view->hyperparameters, &r);
    }
    size_t n = hparam_grid_points(view->hyperparameters);
    if (o->point < 0 || (size_t)o->point >= n) {
        det_fail(err, DET_EINVAL, "--point %" PRId64 ": the grid has points 0 to %zu", o->point,
                 n - 1);
        return NULL;
    }
    return hparam_grid_point(view->hyperparameters, (size_t)o->point);
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

static int fill(const struct run_options *o, const struct expconf *view, struct det_loop_config *c,
                struct det_err *err)
{
    JSON_OWN hparams = pick_point(o, view, err);
    if (!hparams)
        return DET_EINVAL;
    int rc = loop_config_from_experiment(c, view->config, hparams, err);
    if (rc < 0)
        return rc;
    if (c->searcher_metric && strcmp(c->searcher_metric, NO_METRIC) == 0) {
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
    int rc = complete(o, entrypoint, &config, err);
    if (rc < 0 || (rc = expconf_view(config, &view, err)) < 0)
        return rc;
    rc = fill(o, &view, ret, err);
    expconf_finish(&view);
    return rc;
}
