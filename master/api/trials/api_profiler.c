/* Profiler measurements: accepted and given back. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_reports.h"
#include "db_trial_read.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct labels_body {
    int64_t trial_id;
    const char *name, *agent_id, *gpu_uuid;
    int type;
};
#define B(member) offsetof(struct labels_body, member)
static const struct wire_field labels_fields[] = {
    {"trialId", WIRE_I32, B(trial_id), WIRE_REQUIRED, NULL},
    {"name", WIRE_STR, B(name), WIRE_REQUIRED, NULL},
    {"agentId", WIRE_STR, B(agent_id), 0, NULL},
    {"gpuUuid", WIRE_STR, B(gpu_uuid), 0, NULL},
    {"metricType", WIRE_ENUM, B(type), 0, wire_profiler_type},
};

static json_t *labels_json(const struct labels_body *b)
{
    return json_make("{s:I,s:s,s:s,s:s,s:s}", "trialId", (json_int_t)b->trial_id, "name", b->name,
                     "agentId", b->agent_id, "gpuUuid", b->gpu_uuid, "metricType",
                     wire_name_of(wire_profiler_type, b->type));
}

static json_t *list_of(const json_t *j, const char *name)
{
    json_t *v = wire_get(j, name);
    return json_is_array(v) ? json_incref(v) : json_array();
}

/* Counts the reports of one request down; the first error is the answer. */
struct profile_call {
    struct http_req *req;
    size_t left;
    struct det_err first;
};

static void on_batch(void *arg, int rc, const struct det_err *err)
{
    struct profile_call *c = arg;
    if (rc < 0 && !c->first.code)
        c->first = *err;
    if (--c->left)
        return;
    api_reply_done(c->req, c->first.code, &c->first);
}

/* What is kept is given back as it is, so it must be what readers expect. */
static int batch_values(const json_t *j, size_t i, struct det_err *err)
{
    char where[64];
    double number;
    int64_t us;
    const json_t *v;
    size_t k;
    int rc = 0;
    snprintf(where, sizeof where, "batches[%zu].values", i);
    json_array_foreach(wire_get(j, "values"), k, v) rc =
        rc == 0 ? wire_f64(v, where, &number, err) : rc;
    snprintf(where, sizeof where, "batches[%zu].batches", i);
    json_array_foreach(wire_get(j, "batches"), k, v) rc =
        rc == 0 ? wire_i64(v, where, &us, err) : rc;
    json_array_foreach(
        wire_get(j, "timestamps"), k,
        v) if (rc == 0 && (!json_is_string(v) || clk_parse(json_string_value(v), &us, NULL) < 0))
        rc = det_fail(err, DET_EINVAL, "batches[%zu].timestamps: expected times", i);
    return rc;
}

static int batch_labels(struct http_req *req, const json_t *j, size_t i, struct labels_body *ret,
                        struct det_err *err)
{
    char where[64];
    *ret = (struct labels_body){.agent_id = "", .gpu_uuid = ""};
    snprintf(where, sizeof where, "batches[%zu].labels", i);
    int rc = wire_decode(json_is_object(j) ? wire_get(j, "labels") : NULL, where, labels_fields,
                         DET_ARRAY_LEN(labels_fields), ret, err);
    if (rc == 0 && req->who.kind == WHO_ALLOC && ret->trial_id != req->who.trial_id)
        return det_fail(err, DET_EPERM, "%s: this task's token may not act for another trial",
                        where);
    return rc == 0 ? batch_values(j, i, err) : rc;
}

static void batch_post(struct shell *sh, struct profile_call *c, const json_t *j,
                       const struct labels_body *b)
{
    struct core_trial_view t;
    int64_t run = c->req->who.run_id;
    if (c->req->who.kind != WHO_ALLOC)
        run = core_trial_get(api_core(sh), b->trial_id, &t) ? t.run_id : 0;
    JSON_OWN labels = labels_json(b);
    JSON_OWN batch =
        json_make("{s:o,s:o,s:o,s:O}", "values", list_of(j, "values"), "batches",
                  list_of(j, "batches"), "timestamps", list_of(j, "timestamps"), "labels", labels);
    det_cleanup(freep) char *labels_text = json_text(labels);
    det_cleanup(freep) char *batch_text = json_text(batch);
    db_report_profile(sh->db, b->trial_id, run, labels_text, batch_text, on_batch, c);
}

void api_post_profiler_metrics(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    struct labels_body b;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *batches = api_list(req, body, "batches");
    if (!batches)
        return;
    size_t n = json_array_size(batches);
    for (size_t i = 0; i < n; i++) /* all are checked before any is kept */
        if (batch_labels(req, json_array_get(batches, i), i, &b, &err) < 0) {
            http_fail_err(req, &err);
            return;
        }
    if (n == 0) {
        http_reply(req, 200, "{}");
        return;
    }
    struct profile_call *c = http_mem(req, sizeof *c);
    c->req = req;
    c->left = n;
    for (size_t i = 0; i < n; i++)
        if (batch_labels(req, json_array_get(batches, i), i, &b, &err) == 0)
            batch_post(sh, c, json_array_get(batches, i), &b);
}

/* One answer of everything there is; `follow` is met by asking again. */
static void on_series(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    if (api_failed(req, r))
        return;
    struct http_stream *s = http_stream_begin(req, NULL, NULL, NULL);
    http_stream_result(s, db_text(r, 0, 0), db_text_len(r, 0, 0));
    http_stream_end(s);
}

void api_get_profiler_series(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "trialId", &id) && api_own_trial(req, id))
        db_profile_series(sh->db, id, on_series, req);
}

static void on_measurements(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    if (api_failed(req, r))
        return;
    struct http_stream *s = http_stream_begin(req, NULL, NULL, NULL);
    for (int i = 0; i < db_rows(r); i++) {
        struct buf out = BUF_INIT;
        buf_addf(&out, "{\"batch\":%s}", db_text(r, i, 2));
        http_stream_result(s, out.p, out.len);
        buf_finish(&out);
    }
    http_stream_end(s);
}

void api_get_profiler_metrics(struct shell *sh, struct http_req *req)
{
    static const char *const names[] = {"name", "agentId", "gpuUuid"};
    int64_t id;
    int type;
    char query[32];
    if (!api_id(req, "labels.trialId", &id) || !api_own_trial(req, id) ||
        !api_query_enum(req, "labels.metricType", wire_profiler_type, &type))
        return;
    JSON_OWN labels = json_object();
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        snprintf(query, sizeof query, "labels.%s", names[i]);
        const char *v = http_query(req, query);
        if (v && *v)
            json_set(labels, names[i], json_lossy(v, strlen(v)));
    }
    if (type)
        json_set(labels, "metricType", json_string(wire_name_of(wire_profiler_type, type)));
    det_cleanup(freep) char *text = json_text(labels);
    db_profile_read(sh->db, id, text, 0, on_measurements, req);
}
