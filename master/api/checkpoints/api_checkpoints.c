/* Checkpoints: reported, read, relabelled, removed. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_ckpt_read.h"
#include "db_reports.h"
#include "driver.h"
#include "shell.h"
#include "uuid.h"
#include <inttypes.h>
#include <string.h>

static bool uuid_ok(struct http_req *req, const char *uuid)
{
    if (uuid_is_valid(uuid))
        return true;
    http_fail(req, DET_EINVAL, "\"%.60s\" is not a UUID", uuid);
    return false;
}

static void on_checkpoint(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    if (api_failed(req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(req, DET_ENOENT, "checkpoint %.60s not found", http_param(req, "checkpointUuid"));
        return;
    }
    if (!api_own_experiment(req, db_i64(r, 0, CKPT_EXP)))
        return;
    struct buf out = BUF_INIT;
    buf_addf(&out, "{\"checkpoint\":%s,\"modelVersions\":%s}", db_text(r, 0, CKPT_DOC),
             db_text(r, 0, CKPT_VERSIONS));
    api_reply_hidden(req, buf_str(&out));
    buf_finish(&out);
}

void api_get_checkpoint(struct shell *sh, struct http_req *req)
{
    const char *uuid = http_param(req, "checkpointUuid");
    if (uuid_ok(req, uuid))
        db_ckpt_read(sh->db, uuid, on_checkpoint, req);
}

/* ---- POST /checkpoints ---- */

struct report_body {
    const char *task_id, *allocation_id, *uuid;
    json_t *resources, *metadata, *hashes;
    int state;
    int64_t time_us, run_id;
};
#define R(member) offsetof(struct report_body, member)
static const struct wire_field report_fields[] = {
    {"uuid", WIRE_STR, R(uuid), WIRE_REQUIRED, NULL},
    {"taskId", WIRE_STR, R(task_id), 0, NULL},
    {"allocationId", WIRE_STR, R(allocation_id), 0, NULL},
    {"resources", WIRE_OBJECT, R(resources), 0, NULL},
    {"metadata", WIRE_OBJECT, R(metadata), WIRE_REQUIRED, NULL},
    {"state", WIRE_ENUM, R(state), 0, wire_checkpoint_state},
    {"reportTime", WIRE_TIME, R(time_us), 0, NULL},
    {"trialRunId", WIRE_I32, R(run_id), 0, NULL}, /* ours: of a trial that runs elsewhere */
    {"hashes", WIRE_OBJECT, R(hashes), 0, NULL},  /* ours */
};

struct report_call {
    struct shell *sh;
    struct http_req *req;
    char uuid[UUID_STR_MAX];
    int64_t steps;
};

/* The row is there; a trial that is not live any more has no use for the event. */
static void on_told(void *arg, const struct core_reply *r)
{
    struct report_call *c = arg;
    if (r->code < 0 && r->code != DET_ENOENT)
        api_reply_core(c->req, r);
    else
        http_reply(c->req, 200, "{}");
}

static void on_reported(void *arg, int rc, const struct det_err *err)
{
    struct report_call *c = arg;
    if (rc == DET_ESTALE && c->req->who.kind != WHO_ALLOC) {
        http_fail(
            c->req, DET_EPERM,
            "only a running trial may report a checkpoint, and a client that of one which runs "
            "elsewhere and has not ended");
        return;
    }
    if (rc < 0) {
        http_fail_err(c->req, err);
        return;
    }
    struct core_event ev = {
        .kind = CORE_EV_CHECKPOINT, .trial_id = c->req->who.trial_id, .run_id = c->req->who.run_id};
    ev.checkpoint.uuid = c->uuid;
    ev.checkpoint.steps = c->steps;
    if (ev.trial_id)
        driver_post(c->sh->driver, &ev, on_told, c);
    else
        http_reply(c->req, 200, "{}"); /* runs elsewhere */
}

/* "xxh128:" or "sha256:", and as many digits as it has. */
static bool is_hash(const char *text)
{
    size_t digits = strncmp(text, "xxh128:", 7) == 0   ? 32
                    : strncmp(text, "sha256:", 7) == 0 ? 64
                                                       : 0;
    return digits && strlen(text) == 7 + digits && strspn(text + 7, "0123456789abcdef") == digits;
}

/* A file is what `resources` has, but for directories. */
static bool is_file_of(const json_t *resources, const char *path)
{
    size_t len = strlen(path);
    return json_object_get(resources, path) && len > 0 && path[len - 1] != '/';
}

static int check_hashes(const json_t *hashes, const json_t *resources, struct det_err *err)
{
    const char *path;
    json_t *v;
    json_object_foreach((json_t *)hashes, path, v)
    {
        if (!json_is_string(v) || !is_hash(json_string_value(v)))
            return det_fail(err, DET_EINVAL,
                            "hashes: that of \"%.200s\": expected \"xxh128:\" and 32 digits of "
                            "lower-case hex, or \"sha256:\" and 64",
                            path);
        if (!is_file_of(resources, path))
            return det_fail(err, DET_EINVAL,
                            "hashes: \"%.200s\" is no file of `resources`: name it there with its "
                            "size, or leave its hash out",
                            path);
    }
    return 0;
}

static int report_check(const struct http_req *req, const struct report_body *b, int64_t *steps,
                        struct det_err *err)
{
    if (!uuid_is_valid(b->uuid))
        return det_fail(err, DET_EINVAL, "uuid: \"%.60s\" is not a UUID", b->uuid);
    if (b->state != 0 && b->state != 2)
        return det_fail(err, DET_EINVAL, "state: only STATE_COMPLETED can be reported");
    if (req->who.kind != WHO_ALLOC && !*b->task_id)
        return det_fail(err, DET_EPERM,
                        "only a running trial may report a checkpoint without its taskId");
    if (req->who.kind == WHO_ALLOC &&
        ((*b->task_id && strcmp(b->task_id, req->who.task_id)) ||
         (*b->allocation_id && strcmp(b->allocation_id, req->who.alloc_id))))
        return det_fail(err, DET_EPERM, "this task's token may not report for another task");
    int rc = check_hashes(b->hashes, b->resources, err);
    if (rc < 0)
        return rc;
    const json_t *s = json_object_get(b->metadata, "steps_completed");
    if (!s)
        return det_fail(err, DET_EINVAL, "metadata.steps_completed is required");
    rc = wire_i64(s, "metadata.steps_completed", steps, err);
    if (rc == 0 && (*steps < 0 || *steps > INT32_MAX))
        return det_fail(err, DET_EINVAL, "metadata.steps_completed: out of range");
    return rc;
}

static int take_report(struct report_call *c, const json_t *body, struct det_err *err)
{
    const struct http_who *who = &c->req->who;
    bool is_task = who->kind == WHO_ALLOC;
    struct report_body b = {.task_id = "", .allocation_id = ""};
    int rc = wire_decode(body, "", report_fields, DET_ARRAY_LEN(report_fields), &b, err);
    if (rc == 0)
        rc = report_check(c->req, &b, &c->steps, err);
    if (rc < 0)
        return rc;
    JSON_OWN sizes = api_sizes(b.resources, err);
    if (!sizes)
        return DET_EINVAL;
    det_cleanup(freep) char *resources = json_text(sizes), *metadata = json_text(b.metadata);
    det_cleanup(freep) char *hashes = json_object_size(b.hashes) ? json_text(b.hashes) : NULL;
    memcpy(c->uuid, b.uuid, sizeof c->uuid);
    struct db_checkpoint_report r = {.uuid = c->uuid,
                                     .task_id = is_task ? who->task_id : b.task_id,
                                     .allocation_id = is_task ? who->alloc_id : NULL,
                                     .trial_id = who->trial_id,
                                     .run_id = is_task ? who->run_id : b.run_id,
                                     .steps = c->steps,
                                     .metadata = metadata,
                                     .resources = resources,
                                     .hashes = hashes,
                                     .time_us = b.time_us ? b.time_us : clk_wall_us()};
    db_report_checkpoint(c->sh->db, &r, on_reported, c);
    return 0;
}

void api_post_checkpoint(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    if (req->who.kind == WHO_ALLOC && !req->who.trial_id) {
        http_fail(req, DET_EPERM, "only a trial has checkpoints");
        return;
    }
    struct report_call *c = http_mem(req, sizeof *c);
    *c = (struct report_call){.sh = sh, .req = req};
    JSON_OWN body = api_body(req);
    if (body && take_report(c, body, &err) < 0)
        http_fail_err(req, &err);
}

/* ---- PATCH /checkpoints ---- */

static int patch_one(const json_t *j, json_t *out, struct det_err *err)
{
    struct {
        const char *uuid;
        json_t *resources;
    } b = {"", NULL};
    static const struct wire_field fields[] = {{"uuid", WIRE_STR, 0, WIRE_REQUIRED, NULL},
                                               {"resources", WIRE_OBJECT, sizeof(char *), 0, NULL}};
    int rc = wire_decode(j, "checkpoints", fields, DET_ARRAY_LEN(fields), &b, err);
    if (rc < 0)
        return rc;
    if (!uuid_is_valid(b.uuid))
        return det_fail(err, DET_EINVAL, "checkpoints: \"%.60s\" is not a UUID", b.uuid);
    if (!b.resources)
        return 0; /* nothing to change */
    json_t *map = wire_get(b.resources, "resources");
    if (map && !json_is_object(map))
        return det_fail(err, DET_EINVAL, "checkpoints: resources.resources: expected an object");
    JSON_OWN empty = json_object();
    json_t *sizes = api_sizes(map ? map : empty, err);
    if (!sizes)
        return DET_EINVAL;
    json_array_append_new(out, json_make("{s:s,s:o}", "uuid", b.uuid, "resources", sizes));
    return 0;
}

static void on_patched(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_i64(r, 0, 0) < c->id)
        http_fail(c->req, DET_ENOENT, "not all of the checkpoints are there");
    else
        http_reply(c->req, 200, "{}");
}

void api_patch_checkpoints(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    struct api_call *c = api_call(sh, req);
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *list = api_list(req, body, "checkpoints");
    if (!list)
        return;
    JSON_OWN patches = json_array();
    for (size_t i = 0; i < json_array_size(list); i++)
        if (patch_one(json_array_get(list, i), patches, &err) < 0) {
            http_fail_err(req, &err);
            return;
        }
    c->id = (int64_t)json_array_size(patches);
    det_cleanup(freep) char *text = json_text(patches);
    db_ckpt_patch(sh->db, text, req->who.kind == WHO_ALLOC ? req->who.experiment_id : 0, on_patched,
                  c);
}

/* ---- metadata ---- */

static void on_metadata(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0)
        api_not_found(arg);
    else
        api_reply_hidden(arg, db_text(r, 0, 0));
}

void api_post_checkpoint_metadata(struct shell *sh, struct http_req *req)
{
    const char *uuid = http_param(req, "checkpoint.uuid");
    if (!uuid_ok(req, uuid))
        return;
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *c = wire_get(body, "checkpoint");
    const json_t *metadata = json_is_object(c) ? wire_get(c, "metadata") : NULL;
    if (!json_is_object(metadata)) {
        http_fail(req, DET_EINVAL, "checkpoint.metadata: expected an object");
        return;
    }
    det_cleanup(freep) char *text = json_text(metadata);
    db_ckpt_set_metadata(sh->db, uuid, text, on_metadata, req);
}
