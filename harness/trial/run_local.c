#include "run_local.h"

#include "clk.h"
#include "expconf.h"
#include "fsx.h"
#include "hparam.h"
#include "loop_env.h"
#include "yamljson.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_MAX ((size_t)4 << 20)
#define METADATA_MAX ((size_t)64 << 20)

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
}

static int complete(const struct run_options *o, const char *entrypoint, json_t **ret,
                    struct det_err *err)
{
    json_t *raw = NULL;
    int rc = read_yaml(o->config, &raw, err);
    for (size_t i = 0; rc == 0 && i < o->set.n; i++)
        rc = expconf_override(raw, o->set.v[i], err);
    if (rc == 0) {
        const struct expconf_defaults defaults = {.wall_s = clk_wall_us() / 1000000};
        fill_in(raw, entrypoint);
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

/* ---- resuming ---- */

static int steps_of(const char *dir, const char *uuid, int64_t *ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s/metadata.json", dir, uuid);
    int rc = fsx_read_file(AT_FDCWD, path, METADATA_MAX, &text, err);
    if (rc < 0)
        return rc;
    JSON_OWN meta = json_parse(buf_str(&text), text.len, err);
    *ret = json_int(meta, "steps_completed", -1);
    if (*ret < 0)
        return det_fail(err, DET_ECORRUPT, "%s does not tell steps_completed", path);
    return 0;
}

static int set_resume(const struct run_options *o, struct det_loop_config *c, struct det_err *err)
{
    if (!o->resume)
        return 0;
    if (!o->checkpoint_dir)
        return det_fail(err, DET_EINVAL, "--resume needs --checkpoint-dir");
    c->latest_checkpoint = det_strdup(o->resume);
    return steps_of(o->checkpoint_dir, o->resume, &c->steps_completed, err);
}

/* ---- progress for people ---- */

static void print_metrics(const char *what, int64_t steps, const struct loop_metrics *m)
{
    printf("%s %" PRId64, what, steps);
    for (size_t i = 0; i < m->n; i++) {
        double v;
        if (loop_metric_scalar(&m->v[i], &v))
            printf("  %s %.6g", m->v[i].name, v);
    }
    printf("\n");
    fflush(stdout);
}

static void on_training(void *self, int64_t steps, const struct loop_metrics *avg)
{
    print_metrics("batches", steps, avg);
}

static void on_validation(void *self, int64_t steps, const struct loop_metrics *metrics)
{
    print_metrics("validation", steps, metrics);
}

static void on_checkpoint(void *self, int64_t steps, const char *uuid)
{
    printf("checkpoint %" PRId64 "  %s\n", steps, uuid);
    fflush(stdout);
}

/* ---- together ---- */

static int fill(const struct run_options *o, const struct expconf *view, const char *entrypoint,
                struct det_loop_config *c, struct det_err *err)
{
    JSON_OWN hparams = pick_point(o, view, err);
    if (!hparams)
        return DET_EINVAL;
    int rc = loop_config_from_experiment(c, view->config, hparams, err);
    if (rc < 0)
        return rc;
    c->seed = view->experiment_seed;
    c->test_mode = o->test;
    c->checkpoint_dir = det_strdup(o->checkpoint_dir);
    c->tensorboard_dir = det_strdup(o->tensorboard_dir);
    c->code_dir = det_strdup(".");
    if (!o->quiet)
        c->observer = (struct loop_observer){.training = on_training,
                                             .validation = on_validation,
                                             .checkpoint = on_checkpoint};
    if ((rc = comm_options_from_env(&c->ranks, err)) < 0)
        return rc;
    return set_resume(o, c, err);
}

int run_local_config(const struct run_options *o, const char *entrypoint,
                     struct det_loop_config *ret, struct det_err *err)
{
    JSON_OWN config = NULL;
    struct expconf view;
    int rc = complete(o, entrypoint, &config, err);
    if (rc < 0 || (rc = expconf_view(config, &view, err)) < 0)
        return rc;
    rc = fill(o, &view, entrypoint, ret, err);
    expconf_finish(&view);
    return rc;
}
