#include "loop_env.h"

#include "fsx.h"
#include "length.h"
#include "spool.h"
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Hosts start at different times (start-up hooks, compilers); if one cannot, its agent ends us
 * all. */
#define JOIN_MS        (5 * 60 * 1000)
#define INFO_BYTES_MAX ((size_t)64 << 20)

/* ---- The experiment's configuration ---------------------------------------------------------- */

static int64_t records_to_batches(int64_t records, int64_t global_batch_size)
{
    int64_t n = records / global_batch_size;
    return n > 1 ? n : 1;
}

/* {"batches"|"records"|"epochs": n}; n < 1: never. Absent: never. */
static int read_period(const json_t *config, const char *key, int64_t global_batch_size,
                       struct loop_unit *ret, struct det_err *err)
{
    struct length l = {LENGTH_BATCHES, 0};
    const json_t *j = json_object_get(config, key);
    if (j && !json_is_null(j)) {
        int rc = length_from_json(j, &l, err);
        if (rc < 0)
            return det_wrap(err, rc, "%s", key);
    }
    *ret = (struct loop_unit){.n = l.n};
    if (l.unit == LENGTH_EPOCHS)
        ret->kind = LOOP_EPOCHS;
    if (l.unit != LENGTH_RECORDS || l.n < 1)
        return 0;
    if (global_batch_size < 1)
        return det_fail(err, DET_EINVAL, "%s: records need the hyperparameter global_batch_size",
                        key);
    ret->n = records_to_batches(l.n, global_batch_size);
    return 0;
}

static int read_policy(const json_t *config, enum loop_policy *ret, struct det_err *err)
{
    const char *s = json_str(config, "checkpoint_policy", "best");
    if (strcmp(s, "best") == 0)
        *ret = LOOP_POLICY_BEST;
    else if (strcmp(s, "all") == 0)
        *ret = LOOP_POLICY_ALL;
    else if (strcmp(s, "none") == 0)
        *ret = LOOP_POLICY_NONE;
    else
        return det_fail(err, DET_EINVAL, "checkpoint_policy: \"%.40s\" is not best, all or none",
                        s);
    return 0;
}

static char *dup_or_null(const char *s)
{
    return s && *s ? det_strdup(s) : NULL;
}

static const enum loop_length_unit unit_of[LENGTH_UNIT_COUNT] = {
    [LENGTH_BATCHES] = LOOP_LEN_BATCHES,
    [LENGTH_RECORDS] = LOOP_LEN_RECORDS,
    [LENGTH_EPOCHS] = LOOP_LEN_EPOCHS,
    [LENGTH_NONE] = LOOP_LEN_BATCHES};

/* The unit of the operations: searcher.unit, else that of searcher.max_length. */
static int read_searcher(struct det_loop_config *c, const json_t *config, struct det_err *err)
{
    const json_t *s = json_obj(config, "searcher");
    const json_t *max = json_object_get(s, "max_length");
    const char *name = json_str(s, "unit", NULL);
    struct length l = {LENGTH_BATCHES, 0};
    int rc = max ? length_from_json(max, &l, err) : 0;
    if (rc == 0 && name)
        rc = length_unit_parse(name, &l.unit);
    if (rc < 0)
        return det_wrap(err, rc, "searcher");
    c->length_unit = unit_of[l.unit];
    c->max_length = l.n;
    c->smaller_is_better = json_flag(s, "smaller_is_better", true);
    free(c->searcher_metric);
    c->searcher_metric = dup_or_null(json_str(s, "metric", NULL));
    return 0;
}

static void replace_json(json_t **at, const json_t *j)
{
    json_decref(*at);
    *at = j && !json_is_null(j) ? json_deep_copy(j) : NULL;
}

int loop_config_from_experiment(struct det_loop_config *c, const json_t *config,
                                const json_t *hparams, struct det_err *err)
{
    const json_t *o = json_obj(config, "optimizations");
    c->global_batch_size = json_int(hparams, "global_batch_size", 0);
    c->reporting_period = (struct loop_unit){.n = json_int(config, "scheduling_unit", 100)};
    c->aggregation_frequency = json_int(o, "aggregation_frequency", 1);
    c->average_aggregated_gradients = json_flag(o, "average_aggregated_gradients", true);
    c->step_zero_validation = json_flag(config, "perform_initial_validation", false);
    c->stop_on_nan = json_flag(config, "stop_on_nan", false);
    replace_json(&c->experiment_config, config);
    replace_json(&c->hparams, hparams);
    replace_json(&c->checkpoint_storage, json_object_get(config, "checkpoint_storage"));
    int rc = read_policy(config, &c->policy, err);
    if (rc == 0)
        rc = read_searcher(c, config, err);
    if (rc == 0)
        rc = read_period(config, "min_validation_period", c->global_batch_size,
                         &c->validation_period, err);
    if (rc == 0)
        rc = read_period(config, "min_checkpoint_period", c->global_batch_size,
                         &c->checkpoint_period, err);
    return rc < 0 ? det_wrap(err, rc, "experiment configuration") : 0;
}

/* ---- The environment ------------------------------------------------------------------------- */

static int env_i64(const char *name, int64_t max, int64_t *ret, struct det_err *err)
{
    const char *s = getenv(name);
    if (!s || !*s)
        return det_fail(err, DET_EINVAL, "the environment has no %s", name);
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end || v < 0 || v > max)
        return det_fail(err, DET_EINVAL, "%s=%.40s: not a number from 0 to %lld", name, s,
                        (long long)max);
    *ret = v;
    return 0;
}

static int env_dup(const char *name, char **ret, struct det_err *err)
{
    *ret = dup_or_null(getenv(name));
    return *ret ? 0 : det_fail(err, DET_EINVAL, "the environment has no %s", name);
}

static json_t *env_json(const char *name, struct det_err *err)
{
    const char *s = getenv(name);
    json_t *j = json_parse(s, strlen(s), err);
    if (!j)
        det_wrap(err, DET_EINVAL, "%s", name);
    return j;
}

/* A key of trial.json: the agent writes there what is too long for a variable, too. */
static json_t *info_json(const char *key, struct det_err *err)
{
    const char *dir = getenv("DET_INFO_DIR");
    det_cleanup(freep) char *path = det_asprintf("%s/trial.json", dir && *dir ? dir : ".");
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    if (fsx_read_file(AT_FDCWD, path, INFO_BYTES_MAX, &text, err) < 0)
        return NULL;
    JSON_OWN info = json_parse(text.p, text.len, err);
    json_t *j = json_object_get(info, key);
    if (!j)
        det_fail(err, DET_EINVAL, "%s has no %s", path, key);
    return json_incref(j);
}

static json_t *env_or_info(const char *name, const char *key, struct det_err *err)
{
    const char *s = getenv(name);
    return s && *s ? env_json(name, err) : info_json(key, err);
}

bool loop_env_managed(void)
{
    const char *kind = getenv("DET_TASK_TYPE"), *trial = getenv("DET_TRIAL_ID");
    return trial && *trial && (!kind || strcmp(kind, "TRIAL") == 0);
}

static int read_ids(struct det_loop_config *c, struct det_err *err)
{
    int64_t seed = 0;
    int rc = env_i64("DET_TRIAL_ID", INT64_MAX, &c->trial_id, err);
    if (rc == 0)
        rc = env_i64("DET_EXPERIMENT_ID", INT64_MAX, &c->experiment_id, err);
    if (rc == 0)
        rc = env_i64("DET_TRIAL_RUN_ID", INT64_MAX, &c->run_id, err);
    if (rc == 0)
        rc = env_i64("DET_TRIAL_SEED", UINT32_MAX, &seed, err);
    if (rc == 0)
        rc = env_i64("DET_STEPS_COMPLETED", INT64_MAX, &c->steps_completed, err);
    if (rc == 0)
        rc = env_dup("DET_TASK_ID", &c->task_id, err);
    if (rc == 0)
        rc = env_dup("DET_ALLOCATION_ID", &c->allocation_id, err);
    c->seed = (uint32_t)seed;
    c->cluster_id = dup_or_null(getenv("DET_CLUSTER_ID"));
    c->latest_checkpoint = dup_or_null(getenv("DET_LATEST_CHECKPOINT"));
    c->spool_path = dup_or_null(getenv(SPOOL_ENV));
    c->store_id = dup_or_null(getenv(STORAGE_ID_ENV));
    const char *code = getenv("DET_MODEL_DIR");
    c->code_dir = det_strdup(code && *code ? code : ".");
    return rc;
}

int loop_env_config(struct det_loop_config *c, struct det_err *err)
{
    JSON_OWN config = env_or_info("DET_EXPERIMENT_CONFIG", "config", err);
    JSON_OWN hparams = config ? env_or_info("DET_HPARAMS", "hparams", err) : NULL;
    if (!hparams)
        return DET_EINVAL;
    c->managed = true;
    int rc = read_ids(c, err);
    if (rc == 0)
        rc = loop_config_from_experiment(c, config, hparams, err);
    if (rc == 0)
        rc = comm_options_from_env(&c->ranks, err);
    c->ranks.join_timeout_ms = JOIN_MS;
    if (rc == 0)
        rc = loop_http_from_env(&c->http, err);
    return rc;
}
