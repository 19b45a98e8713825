/* Workspaces and projects that are there: changed. */
#include "api_handlers.h"
#include "api_places.h"
#include "api_util.h"
#include "db_places.h"
#include "shell.h"

/* What a request asks of one place; lives as long as the request. */
struct edit_call {
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
