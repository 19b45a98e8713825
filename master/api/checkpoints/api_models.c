/* The model registry: models. */
#include "api_models.h"

#include "access.h"
#include "api_handlers.h"
#include "db_places.h"
#include "registry.h"
#include "shell.h"

#include <inttypes.h>

void model_not_found(struct http_req *req)
{
    http_fail(req, DET_ENOENT, "model \"%.80s\" not found", http_param(req, "modelName"));
}

void model_is_archived(struct http_req *req)
{
    http_fail(req, DET_ESTATE, "model \"%.80s\" is archived: unarchive it to change it",
              http_param(req, "modelName"));
}

/* ---- reading ---- */

bool model_page(struct http_req *req, const struct wire_name *sorts, struct db_page *ret)
{
    if (!api_page(req, sorts, ret))
        return false;
    if (ret->limit == 0 || ret->limit == -1 || ret->limit > MODELS_PAGE_MAX)
        ret->limit = MODELS_PAGE_MAX;
    return true;
}

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

static const char *text_or_null(struct http_req *req, const char *name)
{
    const char *text = http_query(req, name);
    return text && *text ? text : NULL;
}

void api_get_models(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct db_model_filter f = {.name = text_or_null(req, "name"),
                                .description = text_or_null(req, "description")};
    c->key = "models";
    if (api_query_strings(req, "labels", &f.labels) &&
        api_query_flag(req, "archived", &f.archived) && api_query_strings(req, "users", &f.users) &&
        api_query_ints(req, "userIds", &f.user_ids) &&
        api_query_strings(req, "workspaceNames", &f.workspaces) &&
        api_query_ints(req, "workspaceIds", &f.workspace_ids) &&
        api_query_i64(req, "id", 0, &f.id) && model_page(req, wire_model_sort, &c->page))
        db_model_list(sh->db, &f, &c->page, on_list, c);
}

static void on_read(void *arg, const struct db_result *r)
{
    if (db_rc(r) == 0 && db_rows(r) == 0)
        model_not_found(arg);
    else
        api_reply_doc(arg, r);
}

void api_get_model(struct shell *sh, struct http_req *req)
{
    db_model_read(sh->db, http_param(req, "modelName"), on_read, req);
}

void api_get_model_labels(struct shell *sh, struct http_req *req)
{
    int64_t workspace_id;
    if (api_query_i64(req, "workspaceId", 0, &workspace_id))
        db_model_labels(sh->db, workspace_id, api_reply_doc, req);
}

/* ---- words ---- */

struct words_body {
    const char *name, *description, *comment, *notes, *workspace;
    json_t *labels, *metadata;
    int64_t workspace_id;
};
#define W(member) offsetof(struct words_body, member)
static const struct wire_field words_fields[] = {
    {"name", WIRE_STR, W(name), 0, NULL},
    {"description", WIRE_STR, W(description), 0, NULL},
    {"comment", WIRE_STR, W(comment), 0, NULL},
    {"notes", WIRE_STR, W(notes), 0, NULL},
    {"labels", WIRE_ARRAY, W(labels), 0, NULL},
    {"metadata", WIRE_OBJECT, W(metadata), 0, NULL},
    {"workspaceName", WIRE_STR, W(workspace), 0, NULL},
    {"workspaceId", WIRE_I32, W(workspace_id), 0, NULL},
};

static int labels_read(struct http_req *req, const json_t *list, const char **ret,
                       struct det_err *err)
{
    JSON_OWN labels = json_array();
    int rc = registry_labels(list, labels, err);
    det_cleanup(freep) char *text = json_text(labels);
    if (rc == 0)
        *ret = http_strdup(req, text);
    return rc;
}

static void keep_text(struct http_req *req, const char *text, const char **ret)
{
    if (text)
        *ret = http_strdup(req, text);
}

static int metadata_read(struct http_req *req, const json_t *metadata, const char **ret,
                         struct det_err *err)
{
    det_cleanup(freep) char *text = NULL;
    int rc = registry_metadata(metadata, &text, err);
    if (rc == 0)
        *ret = http_strdup(req, text);
    return rc;
}

static int texts_check(const struct words_body *b, struct det_err *err)
{
    int rc = registry_check_text("description", b->description, REGISTRY_TEXT_MAX, err);
    if (rc == 0)
        rc = registry_check_text("comment", b->comment, REGISTRY_TEXT_MAX, err);
    return rc == 0 ? registry_check_text("notes", b->notes, REGISTRY_TEXT_MAX, err) : rc;
}

static int words_read(struct http_req *req, const json_t *body, struct words_body *b,
                      struct db_model_words *ret, struct det_err *err)
{
    int rc = wire_decode(body, "", words_fields, DET_ARRAY_LEN(words_fields), b, err);
    if (rc == 0)
        rc = texts_check(b, err);
    if (rc == 0 && b->labels)
        rc = labels_read(req, b->labels, &ret->labels, err);
    if (rc == 0 && b->metadata)
        rc = metadata_read(req, b->metadata, &ret->metadata, err);
    if (rc == 0 && b->workspace_id < 0)
        rc = det_fail(err, DET_EINVAL, "workspaceId: expected the id of a workspace");
    if (rc == 0 && b->workspace_id && b->workspace && *b->workspace)
        rc = det_fail(err, DET_EINVAL, "give one of workspaceId and workspaceName");
    return rc;
}

bool model_words(struct http_req *req, const json_t *body, struct db_model_words *ret,
                 const char **ret_workspace)
{
    struct words_body b = {0};
    struct det_err err;
    if (words_read(req, body, &b, ret, &err) < 0) {
        http_fail_err(req, &err);
        return false;
    }
    keep_text(req, b.name, &ret->name);
    keep_text(req, b.description, &ret->description);
    keep_text(req, b.comment, &ret->comment);
    keep_text(req, b.notes, &ret->notes);
    ret->workspace_id = b.workspace_id;
    *ret_workspace = NULL;
    keep_text(req, b.workspace && *b.workspace ? b.workspace : NULL, ret_workspace);
    return true;
}

/* ---- writing ---- */

struct write_call {
    struct http_req *req;
    struct db_model_words words; /* texts: of the request's memory */
    bool is_new, tells;          /* tells: the answer is the model, else {} */
};

static bool is_taken(const struct write_call *c, const struct db_result *r)
{
    if (db_state(r) != DB_STATE_TAKEN)
        return false;
    http_fail(c->req, DET_EEXIST, "there is a model named \"%.80s\" already",
              c->words.name ? c->words.name : "");
    return true;
}

static void on_created(void *arg, const struct db_result *r)
{
    const struct write_call *c = arg;
    if (!is_taken(c, r))
        api_reply_doc(c->req, r);
}

static void on_edited(void *arg, const struct db_result *r)
{
    const struct write_call *c = arg;
    if (is_taken(c, r) || api_failed(c->req, r))
        return;
    if (db_is_null(r, 0, MODEL_EDIT_ARCHIVED))
        model_not_found(c->req);
    else if (db_bool(r, 0, MODEL_EDIT_ARCHIVED))
        model_is_archived(c->req);
    else
        http_reply(c->req, 200, c->tells ? db_text(r, 0, MODEL_EDIT_DOC) : "{}");
}

static void write_model(void *arg)
{
    struct write_call *c = arg;
    struct db *db = c->req->sh->db;
    if (c->is_new)
        db_model_create(db, &c->words, c->req->who.user_id, on_created, c);
    else
        db_model_edit(db, http_param(c->req, "modelName"), &c->words, on_edited, c);
}

/* Who may add to the workspace may bring a model there. */
static void on_workspace(void *arg, const struct db_result *r)
{
    struct write_call *c = arg;
    const struct rule *making = &rules_all[ROUTE_post_model];
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_ENOENT, "the workspace is not there; det workspace list shows all");
        return;
    }
    if (db_bool(r, 0, 1)) {
        http_fail(c->req, DET_ESTATE, "workspace \"%.80s\" is archived", db_text(r, 0, 2));
        return;
    }
    c->words.workspace_id = db_i64(r, 0, 0);
    access_ask_one(c->req, &(struct access_one){making, SUBJECT_WORKSPACE, write_model, c},
                   c->words.workspace_id);
}

void api_post_model(struct shell *sh, struct http_req *req)
{
    struct write_call *c = http_mem(req, sizeof *c);
    const char *workspace;
    struct det_err err;
    *c = (struct write_call){.req = req, .is_new = true, .tells = true};
    c->words = (struct db_model_words){"", "", "", "", "[]", "{}", 0};
    JSON_OWN body = api_body(req);
    if (!body || !model_words(req, body, &c->words, &workspace))
        return;
    if (registry_check_name(c->words.name, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    if (!workspace && !c->words.workspace_id)
        c->words.workspace_id = 1;
    db_workspace_find(sh->db, workspace, c->words.workspace_id, on_workspace, c);
}

struct move {
    struct write_call *c;
    const char *workspace; /* by its name; NULL: by its id */
};

static void move_on(struct move *m)
{
    struct db_model_words *w = &m->c->words;
    db_workspace_find(m->c->req->sh->db, m->workspace, w->workspace_id, on_workspace, m->c);
}

static void on_may_move(void *arg, const json_t *refused)
{
    struct move *m = arg;
    if (refused && !access_refused(m->c->req, refused))
        move_on(m);
}

/* To name another workspace is to move it there. */
void api_patch_model(struct shell *sh, struct http_req *req)
{
    struct write_call *c = http_mem(req, sizeof *c);
    struct move *m = http_mem(req, sizeof *m);
    struct det_err err;
    *c = (struct write_call){.req = req, .tells = true};
    m->c = c;
    JSON_OWN body = api_body(req);
    if (!body || !model_words(req, body, &c->words, &m->workspace))
        return;
    if (c->words.name && registry_check_name(c->words.name, &err) < 0) {
        http_fail_err(req, &err);
    } else if (!m->workspace && !c->words.workspace_id) {
        write_model(c);
    } else {
        const struct rule *moving = &rules_all[ROUTE_move_model];
        JSON_OWN ids = json_make("[s]", http_param(req, "modelName"));
        access_ask(req, &(struct access_ask){moving, SUBJECT_MODEL, on_may_move, m}, ids);
    }
}

void api_move_model(struct shell *sh, struct http_req *req)
{
    struct write_call *c = http_mem(req, sizeof *c);
    struct move *m = http_mem(req, sizeof *m);
    struct det_err err;
    *c = (struct write_call){.req = req};
    *m = (struct move){c, NULL};
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    const json_t *to = wire_get(body, "destinationWorkspaceId");
    int64_t id = 0;
    if (to && wire_i64(to, "destinationWorkspaceId", &id, &err) < 0) {
        http_fail_err(req, &err);
    } else if (id <= 0 || id > INT32_MAX) {
        http_fail(req, DET_EINVAL, "destinationWorkspaceId: expected the id of a workspace");
    } else {
        c->words.workspace_id = id;
        move_on(m);
    }
}

static void on_done(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0)
        model_not_found(arg);
    else
        http_reply(arg, 200, "{}");
}

void api_archive_model(struct shell *sh, struct http_req *req)
{
    db_model_archive(sh->db, http_param(req, "modelName"), true, on_done, req);
}

void api_unarchive_model(struct shell *sh, struct http_req *req)
{
    db_model_archive(sh->db, http_param(req, "modelName"), false, on_done, req);
}

void api_delete_model(struct shell *sh, struct http_req *req)
{
    db_model_delete(sh->db, http_param(req, "modelName"), on_done, req);
}
