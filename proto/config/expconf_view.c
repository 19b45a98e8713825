/* The typed view of a complete configuration. */
#include "expconf.h"

#include "hparam.h"
#include <string.h>

/* Which of the words (ended by NULL) obj[key] is; -1 if none. */
static int index_of_word(const json_t *obj, const char *key, const char *const *words)
{
    const char *s = json_str(obj, key, "");
    for (int i = 0; words[i]; i++)
        if (strcmp(s, words[i]) == 0)
            return i;
    return -1;
}

static int fail_at(struct det_err *err, const char *path)
{
    return det_fail(err, DET_EINVAL, "stored configuration: %s is missing or of the wrong type",
                    path);
}

static bool view_length(const json_t *s, struct expconf *c)
{
    if (c->searcher != EXPCONF_CUSTOM)
        return length_from_json(json_object_get(s, "max_length"), &c->max_length, NULL) == 0;
    c->max_length.unit = LENGTH_BATCHES;
    const char *unit = json_str(s, "unit", NULL);
    return !unit || length_unit_parse(unit, &c->max_length.unit) == 0;
}

static int view_searcher(const json_t *s, struct expconf *c, struct det_err *err)
{
    static const char *const kinds[] = {"single",        "random", "grid", "adaptive_asha",
                                        "async_halving", "custom", NULL};
    int kind = index_of_word(s, "name", kinds);
    if (kind < 0)
        return fail_at(err, "searcher.name");
    c->searcher = (enum expconf_searcher)kind;
    if (!(c->metric = json_str(s, "metric", NULL)))
        return fail_at(err, "searcher.metric");
    if (!view_length(s, c))
        return fail_at(err, "searcher.max_length");
    c->smaller_is_better = json_flag(s, "smaller_is_better", true);
    c->source_trial_id = json_int(s, "source_trial_id", 0);
    c->source_checkpoint_uuid = json_str(s, "source_checkpoint_uuid", NULL);
    c->max_trials = json_int(s, "max_trials", 1);
    c->max_concurrent_trials = json_int(s, "max_concurrent_trials", 1);
    if (c->searcher == EXPCONF_GRID)
        c->max_trials = (int64_t)hparam_grid_points(c->hyperparameters);
    return 0;
}

static void view_resources(const json_t *r, struct expconf *c)
{
    c->slots_per_trial = json_int(r, "slots_per_trial", 1);
    c->resource_pool = json_str(r, "resource_pool", "");
    c->max_slots = json_int(r, "max_slots", -1);
    c->priority = json_int(r, "priority", 0);
    c->weight = json_num(r, "weight", 1);
}

static int view_storage(const json_t *s, struct expconf *c, struct det_err *err)
{
    static const char *const kinds[] = {"shared_fs", "directory", NULL};
    int kind = index_of_word(s, "type", kinds);
    if (kind < 0)
        return fail_at(err, "checkpoint_storage.type");
    c->store = (enum expconf_store)kind;
    c->store_host_path = json_str(s, "host_path", NULL);
    c->store_storage_path = json_str(s, "storage_path", NULL);
    c->store_container_path = json_str(s, "container_path", NULL);
    c->save_experiment_best = json_int(s, "save_experiment_best", 0);
    c->save_trial_best = json_int(s, "save_trial_best", 1);
    c->save_trial_latest = json_int(s, "save_trial_latest", 1);
    if (c->store == EXPCONF_SHARED_FS ? !c->store_host_path : !c->store_container_path)
        return fail_at(err, "checkpoint_storage's path");
    return 0;
}

static int view_training(const json_t *j, struct expconf *c, struct det_err *err)
{
    static const char *const policies[] = {"best", "all", "none", NULL};
    int policy = index_of_word(j, "checkpoint_policy", policies);
    if (policy < 0)
        return fail_at(err, "checkpoint_policy");
    c->checkpoint_policy = (enum expconf_policy)policy;
    if (length_from_json(json_object_get(j, "min_validation_period"), &c->min_validation_period,
                         NULL) < 0)
        return fail_at(err, "min_validation_period");
    if (length_from_json(json_object_get(j, "min_checkpoint_period"), &c->min_checkpoint_period,
                         NULL) < 0)
        return fail_at(err, "min_checkpoint_period");
    c->max_restarts = json_int(j, "max_restarts", 5);
    c->scheduling_unit = json_int(j, "scheduling_unit", 100);
    c->records_per_epoch = json_int(j, "records_per_epoch", 0);
    c->perform_initial_validation = json_flag(j, "perform_initial_validation", false);
    c->debug = json_flag(j, "debug", false);
    c->experiment_seed = (uint32_t)json_int(json_obj(j, "reproducibility"), "experiment_seed", 0);
    return 0;
}

int expconf_view(const json_t *config, struct expconf *ret, struct det_err *err)
{
    struct expconf c = {
        .name = json_str(config, "name", ""),
        .description = json_str(config, "description", NULL),
        .workspace = json_str(config, "workspace", ""),
        .project = json_str(config, "project", ""),
        .labels = json_arr(config, "labels"),
        .hyperparameters = json_obj(config, "hyperparameters"),
        .entrypoint = json_object_get(config, "entrypoint"),
    };
    if (json_is_null(c.entrypoint))
        c.entrypoint = NULL;
    if (!c.hyperparameters)
        return fail_at(err, "hyperparameters");
    int rc = view_searcher(json_obj(config, "searcher"), &c, err);
    if (rc == 0)
        rc = view_storage(json_obj(config, "checkpoint_storage"), &c, err);
    if (rc == 0)
        rc = view_training(config, &c, err);
    if (rc < 0)
        return rc;
    view_resources(json_obj(config, "resources"), &c);
    c.config = json_incref((json_t *)config);
    *ret = c;
    return 0;
}

void expconf_finish(struct expconf *c)
{
    json_decref(c->config);
    *c = (struct expconf){0};
}
