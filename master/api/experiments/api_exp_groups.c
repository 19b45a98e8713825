/* Trials of the experiments that a filter finds, in groups: of each how many, and the spread of
 * metrics. */
#include "api_exp_search.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_exp_search.h"
#include "db_places.h"
#include "expsearch.h"
#include "shell.h"

#include <string.h>

enum { KEYS_MAX = 5, METRICS_MAX = 8, TRIALS_MAX = 100000 };

/* Counts, times and statistics differ from trial to trial. */
static bool can_group(const json_t *column)
{
    const char *kind = json_str(column, "kind", ""), *name = json_str(column, "name", "");
    if (!strcmp(kind, "number"))
        return !strcmp(name, "id") || !strcmp(name, "forkedFrom");
    return strcmp(kind, "time") != 0 && strcmp(kind, "metric") != 0;
}

/* Projects and owners are grouped by what they are called. */
static int column_of(const char *text, json_t **ret, struct det_err *err)
{
    if (strcmp(text, "project") != 0)
        return expsearch_column(text, NULL, ret, err);
    *ret = json_make("{s:s}", "kind", text);
    return 0;
}

static bool is_metric(const json_t *column)
{
    return !strcmp(json_str(column, "kind", ""), "metric");
}

/* All values of a query parameter as columns. NULL: answered. New reference. */
static json_t *columns_of(struct http_req *req, const char *name, size_t max,
                          bool (*fits)(const json_t *), const char *expected)
{
    const char *texts[KEYS_MAX + METRICS_MAX];
    struct det_err err;
    JSON_OWN all = json_array();
    size_t n = http_query_all(req, name, texts, max + 1);
    if (n > max) {
        http_fail(req, DET_EINVAL, "query parameter %s: at most %zu", name, max);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *column = NULL;
        if (column_of(texts[i], &column, &err) < 0) {
            http_fail(req, DET_EINVAL, "query parameter %s: %s", name, err.text);
            return NULL;
        }
        json_array_append_new(all, column);
        if (!fits(column)) {
            http_fail(req, DET_EINVAL, "query parameter %s: \"%.100s\" is not %s", name, texts[i],
                      expected);
            return NULL;
        }
    }
    return json_incref(all);
}

/* Of what has no experiment: the answer, where there is such a project. */
static void on_project(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0)
        http_fail(c->req, DET_ENOENT, "project %lld not found", (long long)c->id);
    else
        http_reply(c->req, 200, "{\"groups\":[],\"total\":0,\"trials\":0}");
}

static void on_groups(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    struct buf out = BUF_INIT;
    if (db_timed_out(r)) {
        http_fail(c->req, DET_ETIMEOUT, "the groups took over 10 s: narrow the filter down");
        return;
    }
    if (api_failed(c->req, r))
        return;
    int64_t trials = db_rows(r) ? db_i64(r, 0, EXP_GROUP_TRIALS) : 0;
    if (trials > TRIALS_MAX) {
        http_fail(c->req, DET_EINVAL, "more than %d trials: narrow the filter down", TRIALS_MAX);
        return;
    }
    if (trials == 0 && c->id) {
        db_project_read(c->sh->db, c->id, on_project, c);
        return;
    }
    buf_add_str(&out, "{\"groups\":[");
    for (int i = 0; i < db_rows(r); i++)
        buf_addf(&out, "%s%s", i ? "," : "", db_text(r, i, EXP_GROUP_DOC));
    buf_addf(&out, "],\"total\":%lld,\"trials\":%lld}",
             db_rows(r) ? (long long)db_i64(r, 0, EXP_GROUP_ALL) : 0, (long long)trials);
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

void api_group_experiments(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct det_err err;
    JSON_OWN asked = NULL;
    if (!api_query_i64(req, "projectId", 0, &c->id))
        return;
    JSON_OWN keys = columns_of(req, "by", KEYS_MAX, can_group,
                               "what trials have in common: a hyperparameter, tags, or a text");
    JSON_OWN metrics =
        keys ? columns_of(req, "metrics", METRICS_MAX, is_metric, "a metric as validation.loss.min")
             : NULL;
    if (!metrics)
        return;
    if (json_array_size(keys) == 0) {
        http_fail(req, DET_EINVAL, "query parameter by: at least one column is required");
        return;
    }
    if (api_search_read(sh, http_query(req, "filter"), NULL, &asked, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    db_exp_groups(sh->db, &(struct db_exp_grouping){asked, keys, metrics, c->id, TRIALS_MAX},
                  on_groups, c);
}
