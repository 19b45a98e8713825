/* Experiments: get, list and what hangs on them. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_ckpt_read.h"
#include "db_exp_read.h"
#include "db_trial_read.h"
#include "shell.h"
#include <string.h>

static const char *job_state_name(enum core_job_state s)
{
    static const char *const names[] = {
        [CORE_JOB_QUEUED] = "STATE_QUEUED",
        [CORE_JOB_SCHEDULED] = "STATE_SCHEDULED",
        [CORE_JOB_BACKFILLED] = "STATE_SCHEDULED_BACKFILLED",
    };
    return names[s];
}

static void on_experiment(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    struct core_exp_view v;
    if (api_missing(c, "experiment", r))
        return;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"experiment\":");
    api_put_experiment(&out, c->req, api_exp_state(c->sh, c->id, db_text(r, 0, EXP_STATE)), r);
    if (core_exp_get(api_core(c->sh), c->id, &v))
        buf_addf(&out, ",\"jobSummary\":{\"state\":\"%s\",\"jobsAhead\":%lld}}",
                 job_state_name(v.job_state), (long long)core_jobs_ahead(api_core(c->sh), c->id));
    else
        buf_add_str(&out, ",\"jobSummary\":null}");
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

void api_get_experiment(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (api_id(req, "experimentId", &c->id) && api_own_experiment(req, c->id))
        db_exp_read(sh->db, c->id, on_experiment, c);
}

static void on_experiments(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (db_rc(r) == 0 && !db_bool(r, 0, EXP_LIST_PROJECT))
        http_fail(c->req, DET_ENOENT, "project %.20s not found", http_query(c->req, "projectId"));
    else
        api_reply_list(c, r, api_exp_state, false);
}

/* experimentIdFilter.* as the JSON that db_exp_filter takes. */
static bool id_filter(struct http_req *req, const char **ret)
{
    static const char *const bounds[] = {"lt", "lte", "gt", "gte"};
    static const char *const sets[] = {"incl", "notIn"};
    JSON_OWN f = json_object();
    char name[48];
    for (size_t i = 0; i < DET_ARRAY_LEN(bounds); i++) {
        int64_t v;
        snprintf(name, sizeof name, "experimentIdFilter.%s", bounds[i]);
        if (!api_query_i64(req, name, INT64_MIN, &v))
            return false;
        if (v != INT64_MIN)
            json_set(f, bounds[i], json_integer(v));
    }
    for (size_t i = 0; i < DET_ARRAY_LEN(sets); i++) {
        const char *ids;
        snprintf(name, sizeof name, "experimentIdFilter.%s", sets[i]);
        if (!api_query_ints(req, name, &ids))
            return false;
        if (ids)
            json_set(f, sets[i], json_parse(ids, strlen(ids), NULL));
    }
    det_cleanup(freep) char *text = json_text(f);
    *ret = json_object_size(f) ? http_strdup(req, text) : NULL;
    return true;
}

static const char *query_text(struct http_req *req, const char *name)
{
    const char *v = http_query(req, name);
    return v && *v ? v : NULL;
}

void api_get_experiments(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct db_exp_filter f = {.name = query_text(req, "name"),
                              .description = query_text(req, "description")};
    c->key = "experiments";
    c->members = EXP_LIST_MEMBERS;
    if (api_page(req, wire_exp_sort, &c->page) && api_query_strings(req, "labels", &f.labels) &&
        api_query_flag(req, "archived", &f.archived) &&
        api_query_enums(req, "states", wire_exp_state, strlen(API_STATE), &f.states) &&
        api_query_strings(req, "users", &f.users) && api_query_ints(req, "userIds", &f.user_ids) &&
        api_query_i64(req, "projectId", 0, &f.project_id) && id_filter(req, &f.id_filter))
        db_exp_list(sh->db, &f, &c->page, on_experiments, c);
}

static void on_trials(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (db_rc(r) == 0 && !db_bool(r, 0, TRIAL_LIST_EXP))
        http_fail(c->req, DET_ENOENT, "experiment %lld not found", (long long)c->id);
    else
        api_reply_list(c, r, api_trial_state, false);
}

void api_get_experiment_trials(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    const char *states;
    c->key = "trials";
    c->members = TRIAL_LIST_MEMBERS;
    if (api_id(req, "experimentId", &c->id) && api_page(req, wire_trial_sort, &c->page) &&
        api_query_enums(req, "states", wire_exp_state, strlen(API_STATE), &states))
        db_trial_list(sh->db, c->id, states, &c->page, on_trials, c);
}

void api_get_validation_history(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "experimentId", &id))
        db_exp_history(sh->db, id, api_reply_doc, req);
}

static void on_best(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0 || db_is_null(r, 0, 0)) {
        http_fail(c->req, DET_ENOENT, "experiment %lld has no validation yet", (long long)c->id);
        return;
    }
    api_reply_json(c->req, json_make("{s:o}", "metric", json_double(db_f64(r, 0, 0))));
}

void api_get_best_searcher_validation_metric(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (api_id(req, "experimentId", &c->id) && api_own_experiment(req, c->id))
        db_exp_best_metric(sh->db, c->id, on_best, c);
}

void api_get_experiment_labels(struct shell *sh, struct http_req *req)
{
    int64_t project;
    if (api_query_i64(req, "projectId", 0, &project))
        db_exp_labels(sh->db, project, api_reply_doc, req);
}

static void on_checkpoints(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (db_rc(r) == 0 && !db_bool(r, 0, CKPT_LIST_PARENT))
        api_not_found(c->req);
    else
        api_reply_list(c, r, NULL, true);
}

static void list_checkpoints(struct shell *sh, struct http_req *req, bool of_trial)
{
    struct api_call *c = api_call(sh, req);
    struct db_ckpt_filter f = {.metric = query_text(req, "sortByMetric")};
    c->key = "checkpoints";
    c->members = CKPT_LIST_MEMBERS;
    if (!api_id(req, "id", &c->id) || (of_trial && !api_own_trial(req, c->id)) ||
        !api_page(req, NULL, &c->page) ||
        !api_query_enum(req, "sortByAttr", wire_checkpoint_sort, &c->page.sort) ||
        !api_query_enums(req, "states", wire_checkpoint_state, strlen(API_STATE), &f.states))
        return;
    if (f.metric && c->page.sort) {
        http_fail(req, DET_EINVAL, "give sortByAttr or sortByMetric, not both");
        return;
    }
    *(of_trial ? &f.trial_id : &f.exp_id) = c->id;
    db_ckpt_list(sh->db, &f, &c->page, on_checkpoints, c);
}

void api_get_experiment_checkpoints(struct shell *sh, struct http_req *req)
{
    list_checkpoints(sh, req, false);
}

void api_get_trial_checkpoints(struct shell *sh, struct http_req *req)
{
    list_checkpoints(sh, req, true);
}
