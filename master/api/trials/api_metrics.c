/* Metric reports of trials. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_reports.h"
#include "failpoint.h"
#include "large.h"
#include "metric_body.h"
#include "shell.h"
#include <string.h>

/* A request's body; the batches are most of it, and are kept as they came. */
struct report {
    json_t *body;
    const char *member; /* of the body that holds the TrialMetrics; NULL: all of it */
    struct json_span batches;
};

static void report_parse(struct http_req *req, struct report *r)
{
    const struct large *large = large_body(req);
    struct det_err err;
    if (large) {
        r->batches = large->batches;
        r->body = api_body(req);
    } else if (!req->body.len) {
        r->body = api_body(req);
    } else {
        r->body = report_cut(&req->body, r->member ? 3 : 2, &r->batches, &err);
        if (!r->body)
            http_fail(req, DET_EINVAL, "body: %s", err.text);
    }
}

static void on_reported(void *arg, int rc, const struct det_err *err)
{
    FAILPOINT("reports.committed");
    struct api_call *c = arg;
    c->sh->counts.metric_reports += rc == 0;
    api_reply_done(c->req, rc, err);
}

static int report_metrics(struct shell *sh, struct http_req *req, int64_t trial_id,
                          const struct report *p, const char *group, struct det_err *err)
{
    struct metric_body b;
    const json_t *j = p->member ? wire_get(p->body, p->member) : p->body;
    int rc = metric_body_decode(j, p->member ? p->member : "", group, &b, err);
    if (rc == 0)
        rc = metric_body_owner(&req->who, trial_id, b.trial_id, &b.run_id, err);
    if (rc < 0)
        return rc;
    det_cleanup(buf_finish) struct buf stored = BUF_INIT;
    metric_body_store(&b, &stored);
    /* What json_cut() would not touch was parsed with the rest. */
    det_cleanup(freep) char *plain = json_array_size(b.batches) ? json_text(b.batches) : NULL;
    struct db_metrics_report r = {.trial_id = trial_id,
                                  .run_id = b.run_id,
                                  .steps = b.steps,
                                  .group = group,
                                  .metrics = buf_str(&stored),
                                  .batches = plain ? plain : p->batches.p,
                                  .batches_len = plain ? strlen(plain) : p->batches.len,
                                  .time_us = clk_wall_us()};
    db_report_metrics(sh->db, &r, on_reported, api_call(sh, req));
    return 0;
}

/* member NULL: the body is the TrialMetrics itself. */
static void take_metrics(struct shell *sh, struct http_req *req, const char *member,
                         const char *group)
{
    struct det_err err;
    struct report r = {.member = member};
    int64_t id;
    if (!api_id(req, "trialId", &id) || !api_own_trial(req, id))
        return;
    report_parse(req, &r);
    if (!r.body)
        return;
    const json_t *named = group ? NULL : wire_get(r.body, "group");
    if (!group)
        group = json_is_string(named) ? json_string_value(named) : "";
    if (report_metrics(sh, req, id, &r, group, &err) < 0)
        http_fail_err(req, &err);
    json_decref(r.body);
}

void api_post_metrics(struct shell *sh, struct http_req *req)
{
    take_metrics(sh, req, "metrics", NULL);
}

void api_post_training_metrics(struct shell *sh, struct http_req *req)
{
    take_metrics(sh, req, NULL, "training");
}

void api_post_validation_metrics(struct shell *sh, struct http_req *req)
{
    take_metrics(sh, req, NULL, "validation");
}
