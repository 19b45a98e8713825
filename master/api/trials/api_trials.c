/* Trials: get, workloads, kill. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_trial_read.h"
#include "driver.h"
#include "shell.h"
#include <inttypes.h>
#include <string.h>

void api_on_trial(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_missing(c, "trial", r))
        return;
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"trial\":");
    const char *state = api_trial_state(c->sh, c->id, db_text(r, 0, TRIAL_COL_STATE));
    api_put_row(&out, state, r, 0, TRIAL_COL_MEMBERS);
    buf_add_ch(&out, '}');
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

void api_get_trial(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (api_id(req, "trialId", &c->id) && api_own_trial(req, c->id))
        db_trial_read(sh->db, c->id, api_on_trial, c);
}

static void on_workloads(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (db_rc(r) == 0 && !db_bool(r, 0, WORKLOAD_LIST_TRIAL))
        http_fail(c->req, DET_ENOENT, "trial %" PRId64 " not found", c->id);
    else
        api_reply_list(c, r, NULL, false);
}

void api_get_trial_workloads(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct db_workloads w = {.group = http_query(req, "group")};
    const char *sort = http_query(req, "sortKey");
    int type, batches, no_deleted;
    c->key = "workloads";
    if (!api_id(req, "trialId", &c->id) || !api_page(req, NULL, &c->page) ||
        !api_query_enum(req, "filter", wire_filter_option, &w.filter) ||
        !api_query_enum(req, "metricType", wire_metric_type, &type) ||
        !api_query_flag(req, "includeBatchMetrics", &batches) ||
        !api_query_flag(req, "removeDeletedCheckpoints", &no_deleted))
        return;
    w.trial_id = c->id;
    if (w.group && !*w.group)
        w.group = NULL;
    if (!w.group && type)
        w.group = type == 1 ? "training" : "validation";
    if (sort && *sort && strcmp(sort, "batches") && strcmp(sort, "totalBatches"))
        w.sort_metric = sort;
    w.batch_metrics = batches == 1;
    w.no_deleted_checkpoints = no_deleted == 1;
    db_workload_list(sh->db, &w, &c->page, on_workloads, c);
}

static void on_kill_lookup(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_missing(c, "trial", r))
        return;
    if (trial_state_is(db_text(r, 0, TRIAL_COL_STATE), TRIAL_ACTIVE))
        http_fail(c->req, DET_ESTATE,
                  "trial %" PRId64
                  " does not run on this cluster (unmanaged): stop it where it runs",
                  c->id);
    else
        http_reply(c->req, 200, "{}"); /* finished: nothing to do */
}

static void on_kill(void *arg, const struct core_reply *r)
{
    struct api_call *c = arg;
    if (r->code == DET_ENOENT)
        db_trial_read(c->sh->db, c->id, on_kill_lookup, c);
    else
        api_reply_core(c->req, r);
}

void api_kill_trial(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (!api_id(req, "id", &c->id))
        return;
    struct core_event ev = {.kind = CORE_EV_TRIAL_KILL, .trial_id = c->id};
    driver_post(sh->driver, &ev, on_kill, c);
}
