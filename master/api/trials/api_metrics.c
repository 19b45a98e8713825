/* Metric reports of trials. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_reports.h"
#include "failpoint.h"
#include "large.h"
#include "shell.h"
#include <inttypes.h>
#include <string.h>

#define GROUP_MAX   100
#define METRICS_MAX 20000 /* of one report; as many may a trial have in a group */

struct metrics_body {
    int64_t trial_id, run_id, steps;
    json_t *metrics;
};
#define M(member) offsetof(struct metrics_body, member)
static const struct wire_field metrics_fields[] = {
    {"trialId", WIRE_I32, M(trial_id), 0, NULL},
    {"trialRunId", WIRE_I32, M(run_id), 0, NULL},
    {"stepsCompleted", WIRE_I32, M(steps), 0, NULL},
    {"metrics", WIRE_OBJECT, M(metrics), WIRE_REQUIRED, NULL},
};

static int group_check(const char *group, struct det_err *err)
{
    if (!*group || strchr(group, '.') || strlen(group) > GROUP_MAX)
        return det_fail(err, DET_EINVAL, "group: a name of 1 to %d bytes without '.'", GROUP_MAX);
    return 0;
}

static bool is_number(const json_t *j)
{
    double v;
    return json_is_number(j) || (json_is_string(j) && wire_f64(j, "", &v, NULL) == 0);
}

/* The stored form, but for the batches: {"avg_metrics" or "validation_metrics": {..}}. */
static int metrics_stored(const json_t *m, const char *group, json_t **ret, struct det_err *err)
{
    json_t *avg = wire_get(m, "avgMetrics"), *batches = wire_get(m, "batchMetrics");
    bool validation = !strcmp(group, "validation");
    if (avg && !json_is_object(avg))
        return det_fail(err, DET_EINVAL, "metrics.metrics.avgMetrics: expected an object");
    if (json_object_size(avg) > METRICS_MAX)
        return det_fail(err, DET_EINVAL, "metrics.metrics.avgMetrics: at most %d metrics",
                        METRICS_MAX);
    if (batches && !json_is_array(batches))
        return det_fail(err, DET_EINVAL, "metrics.metrics.batchMetrics: expected an array");
    const json_t *epoch = json_object_get(avg, "epoch");
    if (epoch && !is_number(epoch))
        return det_fail(err, DET_EINVAL, "metric \"epoch\": expected a number");
    *ret = json_object();
    json_set(*ret, validation ? "validation_metrics" : "avg_metrics",
             avg ? json_incref(avg) : json_object());
    return 0;
}

/* The trial of body and path must be one, and its run the token's. */
static int metrics_owner(const struct http_req *req, int64_t trial_id, struct metrics_body *b,
                         struct det_err *err)
{
    if (b->trial_id && b->trial_id != trial_id)
        return det_fail(err, DET_EINVAL, "metrics.trialId: %" PRId64 " is not the path's %" PRId64,
                        b->trial_id, trial_id);
    if (b->steps < 0)
        return det_fail(err, DET_EINVAL, "metrics.stepsCompleted: must not be negative");
    if (req->who.kind != WHO_ALLOC)
        return 0;
    if (!b->run_id)
        b->run_id = req->who.run_id;
    if (b->run_id != req->who.run_id)
        return det_fail(err, DET_ESTALE,
                        "invalid run id, %" PRId64 " is reported and %" PRId64 " is the token's",
                        b->run_id, req->who.run_id);
    return 0;
}

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

static int report(struct shell *sh, struct http_req *req, int64_t trial_id, const struct report *p,
                  const char *group, struct det_err *err)
{
    struct metrics_body b = {0};
    json_t *stored = NULL;
    const json_t *j = p->member ? wire_get(p->body, p->member) : p->body;
    int rc = wire_decode(j, p->member ? p->member : "", metrics_fields,
                         DET_ARRAY_LEN(metrics_fields), &b, err);
    if (rc == 0)
        rc = metrics_owner(req, trial_id, &b, err);
    if (rc == 0)
        rc = group_check(group, err);
    if (rc == 0)
        rc = metrics_stored(b.metrics, group, &stored, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *text = json_text(stored);
    json_decref(stored);
    /* What json_cut() would not touch was parsed with the rest. */
    json_t *parsed = wire_get(b.metrics, "batchMetrics");
    det_cleanup(freep) char *plain = json_array_size(parsed) ? json_text(parsed) : NULL;
    struct db_metrics_report r = {.trial_id = trial_id,
                                  .run_id = b.run_id,
                                  .steps = b.steps,
                                  .group = group,
                                  .metrics = text,
                                  .batches = plain ? plain : p->batches.p,
                                  .batches_len = plain ? strlen(plain) : p->batches.len,
                                  .time_us = clk_wall_us()};
    db_report_metrics(sh->db, &r, on_reported, api_call(sh, req));
    return 0;
}

/* member NULL: the body is the TrialMetrics itself. */
static void post(struct shell *sh, struct http_req *req, const char *member, const char *group)
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
    if (report(sh, req, id, &r, group, &err) < 0)
        http_fail_err(req, &err);
    json_decref(r.body);
}

void api_post_metrics(struct shell *sh, struct http_req *req)
{
    post(sh, req, "metrics", NULL);
}

void api_post_training_metrics(struct shell *sh, struct http_req *req)
{
    post(sh, req, NULL, "training");
}

void api_post_validation_metrics(struct shell *sh, struct http_req *req)
{
    post(sh, req, NULL, "validation");
}
