/* The model registry: versions of models. */
#include "access.h"
#include "api_handlers.h"
#include "api_models.h"
#include "registry.h"
#include "shell.h"
#include "uuid.h"

#include <inttypes.h>

static void version_not_found(struct http_req *req)
{
    http_fail(req, DET_ENOENT, "model \"%.80s\" has no version %.20s", http_param(req, "modelName"),
              http_param(req, "modelVersionNum"));
}

/* ---- reading ---- */

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

/* {"model": ...}; its versions follow in the same answer. */
static void on_model(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        model_not_found(c->req);
        return;
    }
    char *front = http_mem(c->req, db_text_len(r, 0, 0) + 1);
    snprintf(front, db_text_len(r, 0, 0), "%s", db_text(r, 0, 0) + 1); /* its braces stay away */
    front[db_text_len(r, 0, 0) - 2] = ',';
    c->front = front;
    db_model_version_list(c->sh->db, http_param(c->req, "modelName"), &c->page, on_list, c);
}

void api_get_model_versions(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    c->key = "modelVersions";
    if (model_page(req, wire_version_sort, &c->page))
        db_model_read(sh->db, http_param(req, "modelName"), on_model, c);
}

static void on_version(void *arg, const struct db_result *r)
{
    if (db_rc(r) == 0 && db_rows(r) == 0)
        version_not_found(arg);
    else if (!api_failed(arg, r))
        api_reply_hidden(arg, db_text(r, 0, 0));
}

void api_get_model_version(struct shell *sh, struct http_req *req)
{
    int64_t n;
    if (api_id(req, "modelVersionNum", &n))
        db_model_version_read(sh->db, http_param(req, "modelName"), n, on_version, req);
}

/* ---- writing ---- */

/* Of the body; false: answered. */
static bool words_read(struct http_req *req, const json_t *body, struct db_model_words *w)
{
    const char *workspace;
    struct det_err err;
    if (!model_words(req, body, w, &workspace))
        return false;
    if (registry_check_text("name", w->name, REGISTRY_NAME_MAX, &err) == 0)
        return true;
    http_fail_err(req, &err);
    return false;
}

struct register_call {
    struct http_req *req;
    char uuid[UUID_STR_MAX];
};

static void on_registered(void *arg, const struct db_result *r)
{
    const struct register_call *c = arg;
    if (api_failed(c->req, r))
        return;
    switch ((enum db_version_why)db_i64(r, 0, REGISTER_WHY)) {
    case VERSION_MADE: api_reply_hidden(c->req, db_text(r, 0, REGISTER_DOC)); break;
    case VERSION_NO_MODEL: model_not_found(c->req); break;
    case VERSION_ARCHIVED: model_is_archived(c->req); break;
    case VERSION_NO_CHECKPOINT:
        http_fail(c->req, DET_ENOENT, "checkpointUuid: checkpoint %s not found", c->uuid);
        break;
    case VERSION_NOT_COMPLETED:
        http_fail(c->req, DET_ESTATE,
                  "checkpointUuid: checkpoint %s is %.30s; a version is a COMPLETED one", c->uuid,
                  db_text(r, 0, REGISTER_STATE));
        break;
    case VERSION_LEAVING:
        http_fail(c->req, DET_ESTATE,
                  "checkpointUuid: checkpoint %s is being deleted, or its experiment is", c->uuid);
        break;
    }
}

void api_post_model_version(struct shell *sh, struct http_req *req)
{
    struct register_call *c = http_mem(req, sizeof *c);
    struct db_model_words w = {"", "", "", "", "[]", "{}", 0};
    JSON_OWN body = api_body(req);
    if (!body || !words_read(req, body, &w))
        return;
    const json_t *given = wire_get(body, "checkpointUuid");
    const char *uuid = json_is_string(given) ? json_string_value(given) : "";
    c->req = req;
    if (!uuid_is_valid(uuid)) {
        http_fail(req, DET_EINVAL, "checkpointUuid: \"%.60s\" is not a UUID", uuid);
        return;
    }
    snprintf(c->uuid, sizeof c->uuid, "%s", uuid);
    db_model_register(req->sh->db, http_param(req, "modelName"), c->uuid, &w, req->who.user_id,
                      on_registered, c);
}

static void on_edited(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_is_null(r, 0, MODEL_EDIT_ARCHIVED))
        version_not_found(arg);
    else if (db_bool(r, 0, MODEL_EDIT_ARCHIVED))
        model_is_archived(arg);
    else
        api_reply_hidden(arg, db_text(r, 0, MODEL_EDIT_DOC));
}

void api_patch_model_version(struct shell *sh, struct http_req *req)
{
    struct db_model_words w = {0};
    int64_t n;
    if (!api_id(req, "modelVersionNum", &n))
        return;
    JSON_OWN body = api_body(req);
    if (!body || !words_read(req, body, &w))
        return;
    if (wire_get(body, "checkpoint"))
        http_fail(
            req, DET_EINVAL,
            "checkpoint: a version stays the checkpoint that it is; register another version");
    else
        db_model_version_edit(sh->db, http_param(req, "modelName"), n, &w, on_edited, req);
}

/* ---- deleting: who may delete the model, and who may delete the checkpoint that is held ---- */

struct delete_call {
    struct http_req *req;
    int64_t version;
    const char *uuid;    /* of the version, once it was asked for */
    const char *refusal; /* why the model does not allow it */
};

static void on_deleted(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0)
        version_not_found(arg);
    else
        http_reply(arg, 200, "{}");
}

static void delete_it(const struct delete_call *c)
{
    db_model_version_delete(c->req->sh->db, http_param(c->req, "modelName"), c->version, c->uuid,
                            on_deleted, c->req);
}

static void on_ckpt_judged(void *arg, const json_t *refused)
{
    const struct delete_call *c = arg;
    if (refused && json_object_size(refused) == 0)
        delete_it(c);
    else if (refused)
        http_fail(c->req, DET_EPERM, "%s, and whoever may delete the checkpoint", c->refusal);
}

static void on_ckpt(void *arg, const struct db_result *r)
{
    struct delete_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_EPERM, "%s", c->refusal);
        return;
    }
    c->uuid = http_strdup(c->req, db_text(r, 0, 0));
    JSON_OWN ids = json_make("[s]", c->uuid);
    access_ask(
        c->req,
        &(struct access_ask){&rules_all[ROUTE_delete_checkpoints], SUBJECT_CKPT, on_ckpt_judged, c},
        ids);
}

static void on_model_judged(void *arg, const json_t *refused)
{
    struct delete_call *c = arg;
    if (!refused)
        return;
    const json_t *why = json_object_get(refused, http_param(c->req, "modelName"));
    if (!why) {
        delete_it(c);
    } else if (json_int(why, "code", 0) != DET_EPERM) {
        access_refused(c->req, refused);
    } else {
        c->refusal = http_strdup(c->req, json_str(why, "text", ""));
        db_model_version_ckpt(c->req->sh->db, http_param(c->req, "modelName"), c->version, on_ckpt,
                              c);
    }
}

void api_delete_model_version(struct shell *sh, struct http_req *req)
{
    struct delete_call *c = http_mem(req, sizeof *c);
    *c = (struct delete_call){.req = req};
    if (!api_id(req, "modelVersionNum", &c->version))
        return;
    JSON_OWN name = json_string(http_param(req, "modelName"));
    if (!name) {
        http_fail(req, DET_EINVAL, "modelName: expected UTF-8");
        return;
    }
    JSON_OWN ids = json_make("[O]", name);
    access_ask(req,
               &(struct access_ask){&rules_all[ROUTE_delete_model_version], SUBJECT_MODEL,
                                    on_model_judged, c},
               ids);
}
