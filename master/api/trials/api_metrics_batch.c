/* Reports of metrics that a trial sends together: each as the route for one takes it. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_reports.h"
#include "failpoint.h"
#include "large.h"
#include "metric_body.h"
#include "shell.h"

#include <string.h>

struct batch {
    struct shell *sh;
    struct http_req *req;
    struct metric_bundle reports;
    size_t n, left;
    struct db_metrics_report v[METRIC_BATCH_MAX]; /* those that may be kept */
    size_t place[METRIC_BATCH_MAX];               /* in the request */
    size_t report[METRIC_BATCH_MAX];              /* among the bundle's */
    struct buf refused;
    struct det_err passing; /* why none is answered; code 0: they are */
};

static void refuse_report(struct batch *b, size_t place, int code, const struct det_err *err)
{
    JSON_OWN text = json_lossy(err->text, strlen(err->text));
    buf_add_str(&b->refused, b->refused.len ? ",{" : "{");
    json_add_int(&b->refused, "index", (int64_t)place);
    json_add_int(&b->refused, "status", http_status_of(code, NULL, NULL));
    json_add(&b->refused, "message", text);
    buf_add_ch(&b->refused, '}');
}

static void answer_refused(struct batch *b)
{
    struct buf out = BUF_INIT;
    buf_add_str(&out, "{\"refused\":[");
    buf_add(&out, buf_str(&b->refused), b->refused.len);
    buf_add_str(&out, "]}");
    http_reply_buf(b->req, 200, &out);
}

static void answer_batch(struct batch *b)
{
    if (b->passing.code < 0)
        http_fail_err(b->req, &b->passing);
    else
        answer_refused(b);
    metric_bundle_finish(&b->reports);
    buf_finish(&b->refused);
    free(b);
}

static void on_report(void *arg, size_t i, int rc, const struct det_err *err)
{
    struct batch *b = arg;
    b->sh->counts.metric_reports += rc == 0;
    if (db_report_is_passing(rc)) { /* another master may take it */
        b->passing = *err;
        b->passing.code = rc;
    } else if (rc < 0) {
        refuse_report(b, b->place[i], rc, err);
    }
    if (--b->left > 0)
        return;
    FAILPOINT("reports.committed");
    answer_batch(b);
}

/* The bundle's i-th report. */
static int keep_report(struct batch *b, size_t i, size_t place, int64_t trial_id,
                       struct det_err *err)
{
    struct metric_report *r = &b->reports.v[i];
    int rc = metric_body_owner(&b->req->who, trial_id, r->trial_id, &r->run_id, err);
    if (rc < 0)
        return rc;
    r->trial_id = trial_id;
    b->place[b->n] = place;
    b->report[b->n++] = i;
    return 0;
}

static int add_report(struct batch *b, const json_t *request, size_t place, int64_t trial_id,
                      struct det_err *err)
{
    struct metric_body m;
    if (!json_is_object(request))
        return det_fail(err, DET_EINVAL, "reports: expected objects");
    int rc = metric_body_decode(wire_get(request, "metrics"), "metrics", metric_body_group(request),
                                &m, err);
    if (rc < 0)
        return rc;
    metric_body_add(&m, &b->reports);
    return keep_report(b, b->reports.n - 1, place, trial_id, err);
}

static void keep_plain(struct batch *b, int64_t trial_id)
{
    struct det_err err;
    int rc;
    for (size_t i = 0; i < b->reports.n; i++)
        if ((rc = keep_report(b, i, i, trial_id, &err)) < 0)
            refuse_report(b, i, rc, &err);
}

static void add_all(struct batch *b, const json_t *reports, int64_t trial_id)
{
    struct det_err err;
    int rc;
    for (size_t i = 0, n = json_array_size(reports); i < n; i++)
        if ((rc = add_report(b, json_array_get(reports, i), i, trial_id, &err)) < 0)
            refuse_report(b, i, rc, &err);
}

/* Texts and values do not move any more. */
static void point_at_texts(struct batch *b, int64_t now_us)
{
    const char *texts = b->reports.texts.p;
    for (size_t i = 0; i < b->n; i++) {
        const struct metric_report *r = &b->reports.v[b->report[i]];
        b->v[i] = (struct db_metrics_report){
            .trial_id = r->trial_id,
            .run_id = r->run_id,
            .steps = r->steps,
            .group = texts + r->group,
            .metrics = texts + r->metrics,
            .batches = r->batches == SIZE_MAX ? NULL : texts + r->batches,
            .batches_len = r->batches_len,
            .time_us = now_us + (int64_t)b->place[i], /* their order */
            .object = texts + r->object,
            .values = b->reports.values.v + r->values,
            .values_n = r->values_n};
    }
}

static bool is_list(struct http_req *req, const json_t *reports)
{
    size_t n = json_array_size(reports);
    if (n >= 1 && n <= METRIC_BATCH_MAX)
        return true;
    http_fail(req, DET_EINVAL, "reports: expected a list of 1 to %d reports", METRIC_BATCH_MAX);
    return false;
}

/* NULL: the request is answered. */
static struct batch *read_batch(struct shell *sh, struct http_req *req, int64_t trial_id)
{
    struct batch *b = det_zalloc(sizeof *b);
    b->sh = sh;
    b->req = req;
    if (!large_body(req) && metric_bundle_read(&b->reports, req->body.p, req->body.len)) {
        keep_plain(b, trial_id);
        return b;
    }
    JSON_OWN body = api_body(req);
    if (!body || !is_list(req, wire_get(body, "reports"))) {
        free(b);
        return NULL;
    }
    add_all(b, wire_get(body, "reports"), trial_id);
    return b;
}

void api_post_metrics_batch(struct shell *sh, struct http_req *req)
{
    int64_t id, now_us = clk_wall_us();
    if (!api_id(req, "trialId", &id) || !api_own_trial(req, id))
        return;
    struct batch *b = read_batch(sh, req, id);
    if (!b)
        return;
    point_at_texts(b, now_us);
    b->left = b->n;
    if (b->n == 0)
        answer_batch(b);
    else
        db_report_metrics_batch(sh->db, b->v, b->n, on_report, b);
}
