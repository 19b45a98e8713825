#include "loop_report.h"

#include "clk.h"
#include "reporter.h"

#include <math.h>
#include <string.h>

#define BEST_MS 2000

static int post_trial(struct loop *l, const char *what, json_t *body, struct det_err *err)
{
    if (!l->reporter) {
        json_decref(body);
        return 0;
    }
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/trials/%lld/%s", (long long)l->c->trial_id, what);
    return reporter_post(l->reporter, path, body, err);
}

int loop_report_status(struct loop *l, const char *state, struct det_err *err)
{
    json_t *body = json_make("{s:s}", "state", state);
    if (l->epoch_len > 0 && l->epoch_len < INT64_MAX) /* an end is known */
        json_set(body, "epochLength", json_integer((json_int_t)l->epoch_len));
    return post_trial(l, "runner/metadata", body, err);
}

static void write_rows(struct buf *out, const struct loop_metrics *rows, size_t n)
{
    buf_add_str(out, rows ? "[" : "null");
    for (size_t i = 0; rows && i < n; i++) {
        if (i)
            buf_add_ch(out, ',');
        loop_metrics_write(out, &rows[i]);
    }
    buf_add_str(out, rows ? "]" : "");
}

static void tell_trial(struct loop *l, const struct loop_metrics *m,
                       const struct loop_metrics *rows, size_t n)
{
    if (l->t->write_metrics)
        l->t->write_metrics(l->self, l->state.batches_trained, m, rows, n);
}

static void tell_observer(struct loop *l, const char *group, const struct loop_metrics *m)
{
    const struct loop_observer *o = &l->c->observer;
    if (strcmp(group, "validation") == 0) {
        if (o->validation)
            o->validation(o->self, l->state.batches_trained, m);
    } else if (o->training) {
        o->training(o->self, l->state.batches_trained, m);
    }
}

int loop_report_metrics(struct loop *l, const char *group, const struct loop_metrics *metrics,
                        const struct loop_metrics *rows, size_t n, struct det_err *err)
{
    tell_trial(l, metrics, rows, n);
    tell_observer(l, group, metrics);
    if (!l->reporter)
        return 0;
    det_cleanup(buf_finish) struct buf body = BUF_INIT; /* as text: there may be very many rows */
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/trials/%lld/metrics", (long long)l->c->trial_id);
    buf_addf(&body, "{\"group\":\"%s\",\"metrics\":{\"metrics\":{\"avgMetrics\":", group);
    loop_metrics_write(&body, metrics);
    buf_add_str(&body, ",\"batchMetrics\":");
    write_rows(&body, rows, n);
    buf_addf(&body, "},\"stepsCompleted\":%lld,\"trialId\":%lld,\"trialRunId\":%lld}}",
             (long long)l->state.batches_trained, (long long)l->c->trial_id,
             (long long)l->c->run_id);
    return reporter_post_text(l->reporter, path, buf_str(&body), err);
}

static double units_done(const struct loop *l)
{
    switch (l->c->length_unit) {
    case LOOP_LEN_RECORDS:
        return (double)l->c->global_batch_size * (double)l->state.batches_trained;
    case LOOP_LEN_EPOCHS: return (double)l->state.batches_trained / (double)l->epoch_len;
    case LOOP_LEN_BATCHES: break;
    }
    return (double)l->state.batches_trained;
}

int loop_report_progress(struct loop *l, struct det_err *err)
{
    const struct loop_observer *o = &l->c->observer;
    double done = units_done(l);
    if (o->progress)
        o->progress(o->self, done, (double)l->op.length);
    json_t *body = done == floor(done) ? json_integer((json_int_t)done) : json_double(done);
    return post_trial(l, "progress", body, err);
}

int loop_report_completed(struct loop *l, double metric, struct det_err *err)
{
    if (!l->reporter)
        return 0;
    json_t *body = json_make("{s:{s:I}, s:o}", "op", "length", (json_int_t)l->op.length,
                             "searcherMetric", json_double(metric));
    int rc = post_trial(l, "searcher/completed_operation", body, err);
    return rc < 0 ? rc : reporter_flush(l->reporter, err);
}

/* Sizes as decimal strings, as protobuf's JSON has 64-bit numbers. */
static json_t *resources_of(const json_t *sizes)
{
    json_t *o = json_object();
    const char *path;
    json_t *v;
    json_object_foreach((json_t *)sizes, path, v)
    {
        json_set(o, path, json_is_integer(v) ? json_i64s(json_integer_value(v)) : json_incref(v));
    }
    return o;
}

/* {path: "xxh128:..."}, as the API has them. */
static json_t *hashes_of(const struct loop_files *f)
{
    json_t *o = json_object(), *v;
    const char *path;
    json_object_foreach((json_t *)f->hashes, path, v)
    {
        det_cleanup(freep) char *text = det_asprintf("%s:%s", f->hash_kind, json_string_value(v));
        json_set(o, path, json_string(text));
    }
    return o;
}

int loop_report_checkpoint(struct loop *l, const char *uuid, int64_t steps, const json_t *metadata,
                           const struct loop_files *files, struct det_err *err)
{
    const struct loop_observer *o = &l->c->observer;
    char now[CLK_RFC3339_MAX];
    if (o->checkpoint)
        o->checkpoint(o->self, steps, uuid);
    if (!l->reporter)
        return 0;
    clk_format(clk_wall_us(), now);
    json_t *body =
        json_make("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:{}}", "uuid", uuid, "taskId",
                  l->c->task_id, "allocationId", l->c->allocation_id, "reportTime", now,
                  "resources", resources_of(files->sizes), "hashes", hashes_of(files), "metadata",
                  json_deep_copy(metadata), "state", "STATE_COMPLETED", "training");
    return reporter_post(l->reporter, "/api/v1/checkpoints", body, err);
}

int loop_report_preempted(struct loop *l, struct det_err *err)
{
    if (!l->reporter)
        return 0;
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/allocations/%s/signals/ack_preemption", l->c->allocation_id);
    return reporter_post_text(l->reporter, path, "{}", err);
}

int loop_post_invalid_hp(struct loop *l, const char *why, struct det_err *err)
{
    json_t *body = json_make("{s:s}", "reason", "EXITED_REASON_INVALID_HP");
    json_set(body, "text", json_lossy(why, strlen(why)));
    return post_trial(l, "early_exit", body, err);
}

int loop_report_invalid_hp(struct loop *l, struct det_err *err)
{
    struct reporter_options o = {.http = l->c->http, .run_id = l->c->run_id};
    if (!l->c->managed)
        return 0;
    det_cleanup(freep) char *why = det_strdup(err->text);
    int rc = l->reporter ? 0 : reporter_open(&o, &l->reporter, err); /* only the chief has one */
    if (rc == 0)
        rc = loop_post_invalid_hp(l, why, err);
    return rc < 0 ? rc : reporter_flush(l->reporter, err);
}

/* ---- Questions ------------------------------------------------------------------------------- */

static bool is_better(const struct loop *l, double a, double b)
{
    return l->c->smaller_is_better ? a < b : a > b;
}

void loop_ask_best(struct loop *l)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    int status = 0;
    if (!l->reporter)
        return;
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/experiments/%lld/searcher/best_searcher_validation_metric",
                     (long long)l->c->experiment_id);
    if (reporter_try(l->reporter, path, BEST_MS, &status, &b, NULL) < 0 || status != 200)
        return; /* what is known already must do; at worst a checkpoint too many */
    JSON_OWN j = json_parse(buf_str(&b), b.len, NULL);
    double v = json_num(j, "metric", NAN);
    if (isnan(v) || (l->have_best && !is_better(l, v, l->best)))
        return;
    l->have_best = true;
    l->best = v;
}

static json_t *get_json(struct loop *l, const char *path, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    int status = 0;
    int rc = reporter_call(l->reporter, "GET", path, NULL, &status, &b, err);
    if (rc < 0)
        return NULL;
    json_t *j = json_parse(buf_str(&b), b.len, err);
    if (!j)
        det_wrap(err, DET_EINVAL, "GET %s: answer", path);
    return j;
}

static int code_of(const struct det_err *err)
{
    return err->code < 0 ? err->code : DET_EIO;
}

int loop_ask_trial(struct loop *l, struct det_err *err)
{
    l->known_validation = -1;
    if (!l->reporter)
        return 0;
    det_cleanup(freep) char *path = det_asprintf("/api/v1/trials/%lld", (long long)l->c->trial_id);
    JSON_OWN j = get_json(l, path, err);
    if (!j)
        return code_of(err);
    const json_t *v = json_obj(json_obj(j, "trial"), "latestValidation");
    l->known_validation = json_int(v, "totalBatches", -1);
    return 0;
}

int loop_ask_operation(struct loop *l, int64_t *ret_length, bool *ret_none, struct det_err *err)
{
    *ret_none = false;
    if (!l->reporter) { /* local: the one operation, then none */
        *ret_none = l->op.completed;
        *ret_length = l->c->test_mode ? 1 : l->c->max_length;
        return 0;
    }
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/trials/%lld/searcher/operation", (long long)l->c->trial_id);
    int rc = reporter_flush(l->reporter, err); /* first what was done, then what comes next */
    if (rc < 0)
        return rc;
    JSON_OWN j = get_json(l, path, err);
    if (!j)
        return code_of(err);
    *ret_none = json_flag(j, "completed", false);
    *ret_length = json_int(json_obj(json_obj(j, "op"), "validateAfter"), "length", -1);
    if (!*ret_none && *ret_length < 0)
        return det_fail(err, DET_EINVAL, "GET %s: an answer without a length", path);
    return 0;
}

json_t *loop_ask_checkpoints(struct loop *l, struct det_err *err)
{
    if (!l->reporter) {
        det_fail(err, DET_ENOENT, "local mode keeps no list of checkpoints");
        return NULL;
    }
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/trials/%lld/checkpoints", (long long)l->c->trial_id);
    return get_json(l, path, err);
}
