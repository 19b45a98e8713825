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
    buf_addf(&out, "{\"checkpoint\":%s}", db_text(r, 0, CKPT_DOC));
    http_reply_buf(req, 200, &out);
    buf_finish(&out);
}

void api_get_checkpoint(struct shell *sh, struct http_req *req)
{
    const char *uuid = http_param(req, "checkpointUuid");
    if (uuid_ok(req, uuid))
        db_ckpt_read(sh->db, uuid, on_checkpoint, req);
}

/* path -> size, as numbers; sizes come as strings. New reference, or NULL. */
static json_t *resources_read(const json_t *j, struct det_err *err)
{
    json_t *out = json_object(), *v;
    const char *path;
    json_object_foreach((json_t *)j, path, v)
    {
        int64_t bytes;
        int rc = wire_i64(v, "resources", &bytes, err);
        if (rc == 0 && bytes < 0)
            rc = det_fail(err, DET_EINVAL, "resources: the size of \"%.200s\" is negative", path);
        if (rc < 0) {
            json_decref(out);
            return NULL;
        }
        json_set(out, path, json_integer(bytes));
    }
    return out;
}

/* ---- POST /checkpoints ---- */

struct report_body {
    const char *task_id, *allocation_id, *uuid;
    json_t *resources, *metadata;
    int state;
    int64_t time_us;
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
    if (rc < 0) {
        http_fail_err(c->req, err);
        return;
    }
    struct core_event ev = {
        .kind = CORE_EV_CHECKPOINT, .trial_id = c->req->who.trial_id, .run_id = c->req->who.run_id};
    ev.checkpoint.uuid = c->uuid;
    ev.checkpoint.steps = c->steps;
    driver_post(c->sh->driver, &ev, on_told, c);
}

static int report_check(const struct http_req *req, const struct report_body *b, int64_t *steps,
                        struct det_err *err)
{
    if (!uuid_is_valid(b->uuid))
        return det_fail(err, DET_EINVAL, "uuid: \"%.60s\" is not a UUID", b->uuid);
    if (b->state != 0 && b->state != 2)
        return det_fail(err, DET_EINVAL, "state: only STATE_COMPLETED can be reported");
    if ((*b->task_id && strcmp(b->task_id, req->who.task_id)) ||
        (*b->allocation_id && strcmp(b->allocation_id, req->who.alloc_id)))
        return det_fail(err, DET_EPERM, "this task's token may not report for another task");
    const json_t *s = json_object_get(b->metadata, "steps_completed");
    if (!s)
        return det_fail(err, DET_EINVAL, "metadata.steps_completed is required");
    int rc = wire_i64(s, "metadata.steps_completed", steps, err);
    if (rc == 0 && (*steps < 0 || *steps > INT32_MAX))
        return det_fail(err, DET_EINVAL, "metadata.steps_completed: out of range");
    return rc;
}

static int report(struct report_call *c, const json_t *body, struct det_err *err)
{
    const struct http_who *who = &c->req->who;
    struct report_body b = {.task_id = "", .allocation_id = ""};
    int rc = wire_decode(body, "", report_fields, DET_ARRAY_LEN(report_fields), &b, err);
    if (rc == 0)
        rc = report_check(c->req, &b, &c->steps, err);
    if (rc < 0)
        return rc;
    JSON_OWN sizes = resources_read(b.resources, err);
    if (!sizes)
        return DET_EINVAL;
    det_cleanup(freep) char *resources = json_text(sizes), *metadata = json_text(b.metadata);
    memcpy(c->uuid, b.uuid, sizeof c->uuid);
    struct db_checkpoint_report r = {.uuid = c->uuid,
                                     .task_id = who->task_id,
                                     .allocation_id = who->alloc_id,
                                     .experiment_id = who->experiment_id,
                                     .trial_id = who->trial_id,
                                     .run_id = who->run_id,
                                     .steps = c->steps,
                                     .metadata = metadata,
                                     .resources = resources,
                                     .time_us = b.time_us ? b.time_us : clk_wall_us()};
    db_report_checkpoint(c->sh->db, &r, on_reported, c);
    return 0;
}

void api_post_checkpoint(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    if (req->who.kind != WHO_ALLOC || !req->who.trial_id) {
        http_fail(req, DET_EPERM, "only a running trial may report a checkpoint");
        return;
    }
    struct report_call *c = http_mem(req, sizeof *c);
    *c = (struct report_call){.sh = sh, .req = req};
    JSON_OWN body = api_body(req);
    if (body && report(c, body, &err) < 0)
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
    json_t *sizes = resources_read(map ? map : empty, err);
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
    const json_t *list = wire_get(body, "checkpoints");
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
    db_ckpt_set_metadata(sh->db, uuid, text, api_reply_doc, req);
}

/* ---- removal ---- */

/* One event an experiment; the answer comes with the last. */
struct remove_call {
    struct shell *sh;
    struct http_req *req;
    size_t asked, left;
    int code;
    char text[200];
};

static void on_removed(void *arg, const struct core_reply *r)
{
    struct remove_call *c = arg;
    if (r->code < 0 && !c->code) {
        c->code = r->code;
        snprintf(c->text, sizeof c->text, "%s", r->text ? r->text : det_strerror(r->code));
    }
    if (--c->left)
        return;
    if (c->code)
        http_fail(c->req, c->code, "%s", c->text);
    else
        http_reply(c->req, 200, "{}");
}

static void remove_of(struct remove_call *c, const struct db_result *r, int i)
{
    char job[UUID_STR_MAX];
    uuid_random(job);
    JSON_OWN config = json_parse(db_text(r, i, RM_CONFIG), db_text_len(r, i, RM_CONFIG), NULL);
    JSON_OWN uuids = json_parse(db_text(r, i, RM_UUIDS), db_text_len(r, i, RM_UUIDS), NULL);
    struct core_event ev = {.kind = CORE_EV_EXP_GC, .exp_id = db_i64(r, i, RM_EXP)};
    ev.gc = (struct core_gc){.exp_id = ev.exp_id,
                             .owner_id = db_i64(r, i, RM_OWNER),
                             .job_id = job,
                             .config = config,
                             .uuids = uuids};
    driver_post(c->sh->driver, &ev, on_removed, c);
}

static void on_remove(void *arg, const struct db_result *r)
{
    struct remove_call *c = arg;
    size_t found = 0;
    if (api_failed(c->req, r))
        return;
    for (int i = 0; i < db_rows(r); i++)
        found += (size_t)db_i64(r, i, RM_COUNT);
    if (found < c->asked) {
        http_fail(c->req, DET_ENOENT, "%zu of %zu checkpoints not found", c->asked - found,
                  c->asked);
        return;
    }
    c->left = (size_t)db_rows(r);
    if (!c->left)
        http_reply(c->req, 200, "{}");
    for (int i = 0; i < db_rows(r); i++)
        remove_of(c, r, i);
}

/* Each uuid once; NULL when answered. */
static json_t *remove_uuids(struct http_req *req, const json_t *body)
{
    const json_t *list = wire_get(body, "checkpointUuids");
    JSON_OWN seen = json_object();
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (!uuid_ok(req, s ? s : "")) {
            json_decref(out);
            return NULL;
        }
        if (!json_object_get(seen, s))
            json_array_append_new(out, json_string(s));
        json_set(seen, s, json_true());
    }
    return out;
}

static void remove_checkpoints(struct shell *sh, struct http_req *req, const json_t *body)
{
    struct remove_call *c = http_mem(req, sizeof *c);
    JSON_OWN uuids = remove_uuids(req, body);
    if (!uuids)
        return;
    *c = (struct remove_call){.sh = sh, .req = req, .asked = json_array_size(uuids)};
    det_cleanup(freep) char *text = json_text(uuids);
    db_ckpt_by_experiment(sh->db, text, on_remove, c);
}

void api_delete_checkpoints(struct shell *sh, struct http_req *req)
{
    JSON_OWN body = api_body(req);
    if (body)
        remove_checkpoints(sh, req, body);
}

void api_remove_checkpoint_files(struct shell *sh, struct http_req *req)
{
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *globs = wire_get(body, "checkpointGlobs"), *g;
    size_t i;
    json_array_foreach((json_t *)globs, i,
                       g) if (!json_is_string(g) || strcmp(json_string_value(g), "**/*"))
    {
        http_fail(req, DET_EUNIMPL,
                  "checkpointGlobs: only \"**/*\" (whole checkpoints) can be removed "
                  "in this version");
        return;
    }
    if (json_array_size(globs))
        remove_checkpoints(sh, req, body);
    else
        http_reply(req, 200, "{}"); /* no pattern, no file */
}
