/* What a running trial asks and says about its search: operations, progress, early exits, its mood.
 */
#include "api_handlers.h"
#include "api_util.h"
#include "db_reports.h"
#include "driver.h"
#include "shell.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The trial of the path; a task's token only its own. */
static bool trial_of(struct http_req *req, int64_t *ret)
{
    return api_id(req, "trialId", ret) && api_own_trial(req, *ret);
}

/* The run that a report belongs to: the token's, or for a user the current one (0: none). */
static int64_t run_of(struct shell *sh, const struct http_req *req, int64_t trial_id)
{
    struct core_trial_view t;
    if (req->who.kind == WHO_ALLOC)
        return req->who.run_id;
    return core_trial_get(api_core(sh), trial_id, &t) ? t.run_id : 0;
}

/* What the core says may not be committed yet, and a harness that believed it would be refused by
 * the master that comes after a crash: it is answered once all that led to it is durable. */
struct operation_call {
    struct http_req *req;
    struct det_err err;
    char *json; /* NULL: err */
};

static void on_operation(void *arg, const struct core_reply *r)
{
    struct operation_call *c = arg;
    if (r->code < 0)
        api_reply_core(c->req, r);
    else if (!c->json)
        http_fail_err(c->req, &c->err);
    else
        http_reply(c->req, 200, c->json);
}

static int operation_now(struct shell *sh, struct http_req *req, int64_t id, char **ret,
                         struct det_err *err)
{
    struct core_trial_view t;
    if (!core_trial_get(api_core(sh), id, &t))
        return det_fail(err, DET_ENOENT, "trial %" PRId64 " is not live", id);
    if (req->who.kind == WHO_ALLOC && req->who.run_id != t.run_id)
        return det_fail(err, DET_ESTALE,
                        "run %" PRId64 " of trial %" PRId64 " was replaced by run %" PRId64,
                        req->who.run_id, id, t.run_id);
    json_t *op = NULL;
    if (t.has_op)
        op = json_make("{s:{s:s,s:o}}", "validateAfter", "requestId", t.request_id, "length",
                       json_i64s(t.op_length));
    JSON_OWN j = json_make("{s:b}", "completed", t.op_completed);
    json_set(j, "op", op);
    det_cleanup(freep) char *text = json_text(j);
    *ret = http_strdup(req, text);
    return 0;
}

void api_get_searcher_operation(struct shell *sh, struct http_req *req)
{
    struct operation_call *c = http_mem(req, sizeof *c);
    int64_t id;
    if (!trial_of(req, &id))
        return;
    c->req = req;
    det_ignore(operation_now(sh, req, id, &c->json, &c->err), "on_operation() looks at c->err");
    driver_barrier(sh->driver, on_operation, c);
}

struct progress_call {
    struct shell *sh;
    struct http_req *req;
    int64_t trial_id, run_id;
    double units;
};

static void on_progress(void *arg, const struct core_reply *r)
{
    struct progress_call *c = arg;
    if (r->code < 0)
        api_reply_core(c->req, r);
    else
        db_report_progress(c->sh->db, c->trial_id, c->run_id, c->units, r->progress, api_reply_done,
                           c->req);
}

void api_post_progress(struct shell *sh, struct http_req *req)
{
    struct progress_call *c = http_mem(req, sizeof *c);
    struct det_err err;
    bool empty;
    *c = (struct progress_call){.sh = sh, .req = req};
    if (!trial_of(req, &c->trial_id))
        return;
    JSON_OWN body = api_body_any(req, &empty);
    if (!body && !empty)
        return;
    json_t *units = json_is_object(body) ? wire_get(body, "progress") : body;
    if (units && wire_f64(units, "progress", &c->units, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    if (!isfinite(c->units) || c->units < 0) {
        http_fail(req, DET_EINVAL, "progress: expected a number of units, 0 or more");
        return;
    }
    c->run_id = run_of(sh, req, c->trial_id);
    struct core_event ev = {
        .kind = CORE_EV_PROGRESS, .trial_id = c->trial_id, .run_id = c->run_id, .units = c->units};
    driver_post(sh->driver, &ev, on_progress, c);
}

void api_post_completed_operation(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    int64_t id, length = 0;
    if (!trial_of(req, &id))
        return;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    JSON_OWN null = json_null();
    json_t *op = wire_get(body, "op"), *metric = wire_get(body, "searcherMetric");
    json_t *len = json_is_object(op) ? wire_get(op, "length") : NULL;
    if (!len) {
        http_fail(req, DET_EINVAL, "op.length is required");
        return;
    }
    if (wire_i64(len, "op.length", &length, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    struct core_event ev = {
        .kind = CORE_EV_OP_COMPLETED, .trial_id = id, .run_id = run_of(sh, req, id)};
    ev.op.length = length;
    ev.op.metric = metric ? metric : null;
    driver_post(sh->driver, &ev, api_reply_core, req);
}

void api_post_early_exit(struct shell *sh, struct http_req *req)
{
    struct early {
        int reason;
        const char *text;
    } b = {0};
    static const struct wire_field fields[] = {
        {"reason", WIRE_ENUM, 0, WIRE_REQUIRED, wire_early_exit},
        {"text", WIRE_STR, offsetof(struct early, text), 0, NULL}};
    int64_t id;
    json_t *body;
    if (!trial_of(req, &id) || !api_decode(req, fields, 2, &b, &body))
        return;
    JSON_OWN owned = body;
    if (!b.reason) {
        http_fail(req, DET_EINVAL,
                  "reason: EXITED_REASON_INVALID_HP or EXITED_REASON_INIT_INVALID_HP");
        return;
    }
    struct core_event ev = {
        .kind = CORE_EV_EARLY_EXIT, .trial_id = id, .run_id = run_of(sh, req, id)};
    ev.exit_early.reason = b.reason == 1 ? CORE_EXIT_INVALID_HP : CORE_EXIT_INIT_INVALID_HP;
    ev.exit_early.text = b.text;
    driver_post(sh->driver, &ev, api_reply_core, req);
}

void api_post_runner_metadata(struct shell *sh, struct http_req *req)
{
    struct told {
        const char *state;
        int64_t epoch_length;
    } b = {.state = ""};
    static const struct wire_field fields[] = {
        {"state", WIRE_STR, offsetof(struct told, state), 0, NULL},
        {"epochLength", WIRE_I64, offsetof(struct told, epoch_length), 0, NULL}};
    int64_t id;
    json_t *body;
    if (!trial_of(req, &id) || !api_decode(req, fields, 2, &b, &body))
        return;
    if (strlen(b.state) > 200)
        http_fail(req, DET_EINVAL, "state: at most 200 bytes");
    else if (b.epoch_length < 0)
        http_fail(req, DET_EINVAL, "epochLength: expected a number of batches, got %" PRId64,
                  b.epoch_length);
    else
        db_report_runner_state(sh->db, id, run_of(sh, req, id), b.state, b.epoch_length,
                               api_reply_done, req);
    json_decref(body);
}
