/* Workspaces and projects that are there: changed, and deleted where nothing is in them. */
#include "api_handlers.h"
#include "api_places.h"
#include "api_util.h"
#include "buf.h"
#include "db_places.h"
#include "mem.h"
#include "origins.h"
#include "shell.h"

/* What a request asks of one place; lives as long as the request. */
struct edit_call {
    struct shell *sh; /* of a deletion */
    struct http_req *req;
    const char *noun; /* "workspace" */
    int64_t id;       /* of the path */
};

/* NULL: answered. */
static struct edit_call *call_of(struct http_req *req, const char *noun)
{
    struct edit_call *c = http_mem(req, sizeof *c);
    *c = (struct edit_call){.req = req, .noun = noun};
    return api_id(req, "id", &c->id) ? c : NULL;
}

/* Why a place that is there stays as it is. */
static void refuse_edit(const struct edit_call *c, const struct db_result *r)
{
    if (db_bool(r, 0, PLACE_FIXED))
        http_fail(c->req, DET_ESTATE,
                  "%s 1 is the one that every cluster has: it is not changed; make another",
                  c->noun);
    else
        http_fail(c->req, DET_ESTATE,
                  "%s %lld, or what it is in, is archived: unarchive it, then change it", c->noun,
                  (long long)c->id);
}

static void on_edited(void *arg, const struct db_result *r)
{
    const struct edit_call *c = arg;
    if (db_state(r) == DB_STATE_TAKEN)
        place_name_taken(c->req);
    else if (db_rc(r) == 0 && db_rows(r) == 0)
        http_fail(c->req, DET_ENOENT, "%s %lld not found", c->noun, (long long)c->id);
    else if (db_rc(r) == 0 && db_is_null(r, 0, PLACE_DOC))
        refuse_edit(c, r);
    else
        api_reply_doc(c->req, r);
}

struct place_words {
    const char *name, *description; /* NULL: as they were */
};
static const struct wire_field words_fields[] = {
    {"name", WIRE_STR, offsetof(struct place_words, name), 0, NULL},
    {"description", WIRE_STR, offsetof(struct place_words, description), 0, NULL},
};

/* False: answered. *ret_body owns the strings. */
static bool words_read(struct http_req *req, struct place_words *w, json_t **ret_body)
{
    *w = (struct place_words){NULL, NULL};
    return api_decode(req, words_fields, DET_ARRAY_LEN(words_fields), w, ret_body) &&
           (!w->name || place_check_name(req, w->name));
}

void api_patch_workspace(struct shell *sh, struct http_req *req)
{
    struct edit_call *c = call_of(req, "workspace");
    struct place_words w;
    JSON_OWN body = NULL;
    if (c && words_read(req, &w, &body) && place_check_kept(req, body))
        db_workspace_edit(sh->db, c->id, w.name, on_edited, c);
}

void api_patch_project(struct shell *sh, struct http_req *req)
{
    struct edit_call *c = call_of(req, "project");
    struct place_words w;
    JSON_OWN body = NULL;
    if (c && words_read(req, &w, &body))
        db_project_edit(sh->db, c->id, w.name, w.description, on_edited, c);
}

/* What may be in a place: the columns from GONE_HELD on. */
static const char *const workspace_holds[] = {"project", "model", "template", NULL};
static const char *const project_holds[] = {"experiment", NULL};

/* "holds 2 projects and 1 template" */
static void add_held(struct buf *b, const char *const *nouns, const struct db_result *r)
{
    const char *front = "holds";
    for (int i = 0; nouns[i]; i++) {
        int64_t n = db_i64(r, 0, GONE_HELD + i);
        if (n > 0)
            buf_addf(b, "%s %lld %s%s", front, (long long)n, nouns[i], n == 1 ? "" : "s");
        if (n > 0)
            front = " and";
    }
}

static void refuse_deletion(const struct edit_call *c, const char *const *nouns,
                            const struct db_result *r)
{
    det_cleanup(buf_finish) struct buf held = BUF_INIT;
    add_held(&held, nouns, r);
    if (db_bool(r, 0, GONE_FIXED))
        http_fail(c->req, DET_ESTATE,
                  "%s 1 is the one that every cluster has: it cannot be deleted", c->noun);
    else
        http_fail(c->req, DET_ESTATE,
                  "%s %lld %s (archived ones count): move or delete what is in it first", c->noun,
                  (long long)c->id, buf_str(&held));
}

static void fail_contested(const struct edit_call *c)
{
    http_fail(c->req, DET_ESTATE,
              "%s %lld is not empty: something has just come into it, or it is being deleted; "
              "look, and ask again",
              c->noun, (long long)c->id);
}

static void on_deleted(const struct edit_call *c, const char *const *nouns,
                       const struct db_result *r)
{
    if (db_state(r) == DB_STATE_MISSING)
        fail_contested(c);
    else if (db_rc(r) == 0 && db_rows(r) == 0)
        http_fail(c->req, DET_ENOENT, "%s %lld not found", c->noun, (long long)c->id);
    else if (db_rc(r) == 0 && !db_bool(r, 0, GONE_DONE))
        refuse_deletion(c, nouns, r);
    else if (!api_failed(c->req, r))
        http_reply(c->req, 200, "{\"completed\":true}");
}

static void on_workspace_deleted(void *arg, const struct db_result *r)
{
    on_deleted(arg, workspace_holds, r);
}

static bool is_gone(const struct db_result *r)
{
    return db_rc(r) == 0 && db_rows(r) > 0 && db_bool(r, 0, GONE_DONE);
}

static void on_project_deleted(void *arg, const struct db_result *r)
{
    const struct edit_call *c = arg;
    origins_end_deletion(c->sh->origins, c->id, is_gone(r));
    on_deleted(c, project_holds, r);
}

void api_delete_workspace(struct shell *sh, struct http_req *req)
{
    struct edit_call *c = call_of(req, "workspace");
    if (c)
        db_workspace_delete(sh->db, c->id, on_workspace_deleted, c);
}

void api_delete_project(struct shell *sh, struct http_req *req)
{
    struct edit_call *c = call_of(req, "project");
    if (!c)
        return;
    c->sh = sh;
    if (origins_begin_deletion(sh->origins, c->id))
        db_project_delete(sh->db, c->id, on_project_deleted, c);
    else
        fail_contested(c);
}
