/* Views of the page: ours. One is its owner's alone until he shows it in a workspace. */
#include "access.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_places.h"
#include "db_views.h"
#include "shell.h"
#include "views.h"

#include <inttypes.h>

enum { PAGE_MAX = 500 };

static void view_not_found(struct http_req *req, int64_t id)
{
    http_fail(req, DET_ENOENT, "view %" PRId64 " not found: it was deleted, or is not shared", id);
}

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

void api_get_views(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    c->key = "views";
    if (!api_page(req, NULL, &c->page))
        return;
    if (c->page.limit == -1 || c->page.limit > PAGE_MAX)
        c->page.limit = PAGE_MAX;
    db_view_list(sh->db, req->who.user_id, http_query(req, "name"), &c->page, on_list, c);
}

/* What a request asks of one view; texts are of the request's memory. */
struct view_call {
    struct http_req *req;
    int64_t id; /* of the path */
    bool is_new;
    struct db_view_words words;
};

static void on_one(void *arg, const struct db_result *r)
{
    const struct view_call *c = arg;
    if (db_rc(r) == 0 && db_rows(r) == 0)
        view_not_found(c->req, c->id);
    else
        api_reply_doc(c->req, r);
}

/* NULL: answered. */
static struct view_call *call_of(struct http_req *req)
{
    struct view_call *c = http_mem(req, sizeof *c);
    *c = (struct view_call){.req = req, .words = {NULL, NULL, VIEW_KEEP}};
    return api_id(req, "viewId", &c->id) ? c : NULL;
}

void api_get_view(struct shell *sh, struct http_req *req)
{
    struct view_call *c = call_of(req);
    if (c)
        db_view_read(sh->db, req->who.user_id, c->id, on_one, c);
}

static void on_written(void *arg, const struct db_result *r)
{
    const struct view_call *c = arg;
    if (db_state(r) == DB_STATE_TAKEN)
        http_fail(c->req, DET_EEXIST,
                  "there is a view named \"%.80s\" already: choose another name",
                  c->words.name ? c->words.name : "");
    else if (db_rc(r) == 0 && db_rows(r) == 0 && c->is_new)
        http_fail(c->req, DET_ESTATE, "you have %d views, which is all that are kept: delete one",
                  VIEWS_MAX);
    else
        on_one(arg, r);
}

static void view_write(void *arg)
{
    struct view_call *c = arg;
    struct db *db = c->req->sh->db;
    int64_t user_id = c->req->who.user_id;
    if (c->is_new)
        db_view_create(db, user_id, &c->words, VIEWS_MAX, on_written, c);
    else
        db_view_edit(db, user_id, c->id, &c->words, on_written, c);
}

/* Who may add to a workspace may show views in it. */
static void on_workspace(void *arg, const struct db_result *r)
{
    struct view_call *c = arg;
    const struct access_one ask = {&rules_all[ROUTE_post_view], SUBJECT_WORKSPACE, view_write, c};
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0)
        http_fail(c->req, DET_ENOENT, "workspaceId: workspace %" PRId64 " not found",
                  c->words.workspace_id);
    else if (db_bool(r, 0, 1))
        http_fail(c->req, DET_ESTATE, "workspace \"%.80s\" is archived", db_text(r, 0, 2));
    else
        access_ask_one(c->req, &ask, c->words.workspace_id);
}

static const struct wire_field words_fields[] = {
    {"name", WIRE_STR, offsetof(struct db_view_words, name), 0, NULL},
    {"address", WIRE_STR, offsetof(struct db_view_words, address), 0, NULL},
    {"workspaceId", WIRE_I32, offsetof(struct db_view_words, workspace_id), 0, NULL},
};

static int words_check(const struct view_call *c, struct det_err *err)
{
    const struct db_view_words *w = &c->words;
    int rc = w->name ? view_check_name(w->name, err) : 0;
    if (rc == 0 && w->address)
        rc = view_check_address(w->address, err);
    if (rc == 0 && w->workspace_id < (c->is_new ? VIEW_PRIVATE : VIEW_KEEP))
        rc = det_fail(err, DET_EINVAL,
                      "workspaceId: expected a workspace's id, or 0 for nobody else");
    return rc;
}

static void keep_text(struct http_req *req, const char **text)
{
    if (*text)
        *text = http_strdup(req, *text);
}

static void view_post(struct view_call *c)
{
    struct http_req *req = c->req;
    struct db_view_words *w = &c->words;
    struct det_err err;
    JSON_OWN body = NULL;
    if (!api_decode(req, words_fields, DET_ARRAY_LEN(words_fields), w, &body))
        return;
    if (words_check(c, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    keep_text(req, &w->name);
    keep_text(req, &w->address);
    if (w->workspace_id > 0)
        db_workspace_find(req->sh->db, NULL, w->workspace_id, on_workspace, c);
    else
        view_write(c);
}

void api_post_view(struct shell *sh, struct http_req *req)
{
    struct view_call *c = http_mem(req, sizeof *c);
    *c = (struct view_call){.req = req, .is_new = true, .words = {"", "", VIEW_PRIVATE}};
    view_post(c);
}

void api_patch_view(struct shell *sh, struct http_req *req)
{
    struct view_call *c = call_of(req);
    if (c)
        view_post(c);
}

static void on_deleted(void *arg, const struct db_result *r)
{
    const struct view_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0)
        view_not_found(c->req, c->id);
    else
        http_reply(c->req, 200, "{}");
}

void api_delete_view(struct shell *sh, struct http_req *req)
{
    struct view_call *c = call_of(req);
    if (c)
        db_view_delete(sh->db, req->who.user_id, c->id, on_deleted, c);
}
