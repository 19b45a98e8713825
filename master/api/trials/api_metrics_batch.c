/* Reports of metrics that a trial sends together: each as the route for one takes it. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_reports.h"
#include "failpoint.h"
#include "metric_body.h"
#include "metric_chunks.h"
#include "shell.h"

#include <string.h>

struct batch {
    struct shell *sh;
    struct http_req *req;
    json_t *body; /* the reports' values are in it */
    size_t n, left;
    struct db_metrics_report v[METRIC_BATCH_MAX]; /* those that may be kept */
    size_t place[METRIC_BATCH_MAX];               /* in the request */
    size_t text[METRIC_BATCH_MAX][2];             /* metrics and batches in texts */
    struct buf texts;
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
    buf_finish(&b->texts);
    buf_finish(&b->refused);
    json_decref(b->body);
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

/* Where the text begins; texts grow, so what points into them is set at the end. */
static size_t put_text(struct batch *b, const json_t *j)
{
    size_t at = b->texts.len;
    json_write(&b->texts, j);
    buf_add_ch(&b->texts, 0);
    return at;
}

static int add_report(struct batch *b, size_t place, int64_t trial_id, int64_t now_us,
                      struct det_err *err)
{
    struct metric_body m;
    const json_t *request = json_array_get(wire_get(b->body, "reports"), place);
    if (!json_is_object(request))
        return det_fail(err, DET_EINVAL, "reports: expected objects");
    int rc = metric_body_decode(wire_get(request, "metrics"), "metrics", metric_body_group(request),
                                &m, err);
    if (rc == 0)
        rc = metric_body_owner(&b->req->who, trial_id, &m, err);
    if (rc < 0)
        return rc;
    b->place[b->n] = place;
    b->text[b->n][0] = b->texts.len;
    metric_body_store(&m, &b->texts);
    buf_add_ch(&b->texts, 0);
    b->text[b->n][1] = json_array_size(m.batches) ? put_text(b, m.batches) : SIZE_MAX;
    b->v[b->n] = (struct db_metrics_report){.trial_id = trial_id,
                                            .run_id = m.run_id,
                                            .steps = m.steps,
                                            .group = m.group,
                                            .time_us = now_us + (int64_t)place, /* their order */
                                            .values = m.values};
    b->n++;
    return 0;
}

static void point_at_texts(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        size_t batches = b->text[i][1];
        b->v[i].metrics = b->texts.p + b->text[i][0];
        b->v[i].batches = batches == SIZE_MAX ? NULL : b->texts.p + batches;
        b->v[i].batches_len = b->v[i].batches ? strlen(b->v[i].batches) : 0;
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

void api_post_metrics_batch(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    int rc;
    int64_t id, now_us = clk_wall_us();
    if (!api_id(req, "trialId", &id) || !api_own_trial(req, id))
        return;
    JSON_OWN body = api_body(req);
    if (!body || !is_list(req, wire_get(body, "reports")))
        return;
    struct batch *b = det_zalloc(sizeof *b);
    b->sh = sh;
    b->req = req;
    b->body = json_incref(body);
    for (size_t i = 0, n = json_array_size(wire_get(body, "reports")); i < n; i++)
        if ((rc = add_report(b, i, id, now_us, &err)) < 0)
            refuse_report(b, i, rc, &err);
    point_at_texts(b);
    b->left = b->n;
    if (b->n == 0)
        answer_batch(b);
    else
        db_report_metrics_batch(sh->db, b->v, b->n, on_report, b);
}
