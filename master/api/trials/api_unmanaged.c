/* Trials that run elsewhere (db_unmanaged.h): made, started, heard of. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_trial_read.h"
#include "db_unmanaged.h"
#include "driver.h"
#include "shell.h"
#include "uuid.h"

#include <inttypes.h>
#include <string.h>

/* ---- POST /trials, PUT /trials ---- */

struct create_body {
    int64_t experiment_id;
    json_t *hparams;
    int unmanaged;
};
#define C(member) offsetof(struct create_body, member)
static const struct wire_field create_fields[] = {
    {"experimentId", WIRE_I32, C(experiment_id), WIRE_REQUIRED, NULL},
    {"hparams", WIRE_OBJECT, C(hparams), 0, NULL},
    {"unmanaged", WIRE_BOOL, C(unmanaged), 0, NULL},
};

struct making {
    struct shell *sh;
    struct http_req *req;
    int64_t experiment_id;
    char *external_id, *hparams; /* the request's */
};

static void reply_trial(struct shell *sh, struct http_req *req, int64_t id)
{
    struct api_call *c = api_call(sh, req);
    c->id = id;
    db_trial_read(sh->db, id, api_on_trial, c);
}

static void on_made(void *arg, const struct db_result *r)
{
    struct making *m = arg;
    if (!api_failed(m->req, r))
        reply_trial(m->sh, m->req, db_i64(r, 0, 0));
}

static void on_id(void *arg, const struct core_reply *r)
{
    struct making *m = arg;
    char request_id[UUID_STR_MAX], task_uuid[UUID_STR_MAX];
    if (r->code < 0) {
        api_reply_core(m->req, r);
        return;
    }
    uuid_random(request_id);
    uuid_random(task_uuid);
    det_cleanup(freep) char *task_id = det_asprintf("%" PRId64 ".%s", m->experiment_id, task_uuid);
    const struct db_unmanaged_trial t = {.id = r->id,
                                         .experiment_id = m->experiment_id,
                                         .external_id = m->external_id,
                                         .request_id = request_id,
                                         .task_id = task_id,
                                         .hparams = m->hparams};
    db_unmanaged_trial(m->sh->db, &t, on_made, m);
}

static void take_id(struct making *m)
{
    driver_post(m->sh->driver, &(struct core_event){.kind = CORE_EV_TRIAL_ID}, on_id, m);
}

static void on_found(void *arg, const struct db_result *r)
{
    struct making *m = arg;
    if (api_failed(m->req, r))
        return;
    if (db_rows(r) > 0)
        reply_trial(m->sh, m->req, db_i64(r, 0, 0));
    else
        take_id(m);
}

static int read_create(struct making *m, const json_t *j, const char *where, struct det_err *err)
{
    struct create_body b = {.unmanaged = -1};
    int rc = wire_decode(j, where, create_fields, DET_ARRAY_LEN(create_fields), &b, err);
    if (rc < 0)
        return rc;
    if (b.unmanaged != 1)
        return det_fail(err, DET_EINVAL,
                        "unmanaged: true is required: trials that run on the cluster are made by "
                        "their experiment's searcher");
    det_cleanup(freep) char *hparams = b.hparams ? json_text(b.hparams) : det_strdup("{}");
    m->experiment_id = b.experiment_id;
    m->hparams = http_strdup(m->req, hparams);
    return 0;
}

static int read_external(struct making *m, const json_t *body, struct det_err *err)
{
    const json_t *id = wire_get(body, "externalTrialId");
    if (!json_is_string(id) || !*json_string_value(id))
        return det_fail(err, DET_EINVAL, "externalTrialId: expected a name");
    if (json_string_length(id) > EXTERNAL_ID_MAX)
        return det_fail(err, DET_EINVAL, "externalTrialId: at most %d bytes", EXTERNAL_ID_MAX);
    if (strlen(json_string_value(id)) != json_string_length(id))
        return det_fail(err, DET_EINVAL, "externalTrialId: NUL cannot be stored");
    m->external_id = http_strdup(m->req, json_string_value(id));
    return 0;
}

static void make_trial(struct shell *sh, struct http_req *req, bool external)
{
    struct det_err err;
    struct making *m = http_mem(req, sizeof *m);
    *m = (struct making){.sh = sh, .req = req};
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    int rc = external ? read_external(m, body, &err) : 0;
    if (rc == 0)
        rc = read_create(m, external ? wire_get(body, "createTrialRequest") : body,
                         external ? "createTrialRequest" : "", &err);
    if (rc < 0)
        http_fail_err(req, &err);
    else if (external)
        db_unmanaged_find_trial(sh->db, m->experiment_id, m->external_id, on_found, m);
    else
        take_id(m);
}

void api_post_trial(struct shell *sh, struct http_req *req)
{
    make_trial(sh, req, false);
}

void api_put_trial(struct shell *sh, struct http_req *req)
{
    make_trial(sh, req, true);
}

/* ---- POST /trials/{id}/start ---- */

static void on_started(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    json_t *j = json_make("{s:I,s:I}", "trialRunId", (json_int_t)db_i64(r, 0, UNMANAGED_RUN),
                          "stepsCompleted", (json_int_t)db_i64(r, 0, UNMANAGED_STEPS));
    if (!db_is_null(r, 0, UNMANAGED_CHECKPOINT))
        json_set(j, "latestCheckpoint", json_string(db_text(r, 0, UNMANAGED_CHECKPOINT)));
    api_reply_json(c->req, j);
}

void api_start_trial(struct shell *sh, struct http_req *req)
{
    struct {
        int64_t trial_id;
        int resume;
    } b = {0};
    static const struct wire_field fields[] = {{"trialId", WIRE_I32, 0, 0, NULL},
                                               {"resume", WIRE_BOOL, sizeof(int64_t), 0, NULL}};
    JSON_OWN body = NULL;
    struct api_call *c = api_call(sh, req);
    if (!api_id(req, "trialId", &c->id) ||
        !api_decode(req, fields, DET_ARRAY_LEN(fields), &b, &body))
        return;
    db_unmanaged_start(sh->db, c->id, b.resume == 1, on_started, c);
}

/* ---- PATCH /trials/{id}: a heartbeat, or how it ended ---- */

static void on_said(void *arg, int rc, const struct det_err *err)
{
    struct api_call *c = arg;
    if (rc < 0)
        http_fail_err(c->req, err);
    else
        reply_trial(c->sh, c->req, c->id);
}

/* False: the state is none that a client can say. */
static bool said_state(const json_t *j, const char **ret)
{
    static const struct {
        const char *said, *state;
    } states[] = {{"STATE_RUNNING", "ACTIVE"},      {"STATE_ACTIVE", "ACTIVE"},
                  {"STATE_COMPLETED", "COMPLETED"}, {"STATE_CANCELED", "CANCELED"},
                  {"STATE_ERROR", "ERROR"},         {"STATE_UNSPECIFIED", NULL}};
    *ret = NULL;
    if (!j || json_is_null(j))
        return true;
    for (size_t i = 0; json_is_string(j) && i < DET_ARRAY_LEN(states); i++)
        if (!strcmp(json_string_value(j), states[i].said)) {
            *ret = states[i].state;
            return true;
        }
    return false;
}

void api_patch_trial(struct shell *sh, struct http_req *req)
{
    const char *state;
    int64_t run_id = 0;
    struct det_err err;
    struct api_call *c = api_call(sh, req);
    if (!api_id(req, "trialId", &c->id))
        return;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *run = wire_get(body, "trialRunId");
    if (run && !json_is_null(run) && wire_i64(run, "trialRunId", &run_id, &err) < 0)
        http_fail_err(req, &err);
    else if (!said_state(wire_get(body, "state"), &state))
        http_fail(req, DET_EINVAL,
                  "state: a trial that runs elsewhere is said to be STATE_RUNNING, "
                  "STATE_COMPLETED, STATE_CANCELED or STATE_ERROR");
    else
        db_unmanaged_said(sh->db, c->id, run_id, state, on_said, c);
}
