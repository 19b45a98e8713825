/* Workspaces and projects: where experiments belong. */
#include "api_places.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_places.h"
#include "shell.h"
#include <string.h>

enum { NAME_MAX_BYTES = 80 };

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

static bool read_filter(struct http_req *req, struct db_place_filter *f)
{
    const char *name = http_query(req, "name");
    *f = (struct db_place_filter){.name = name && *name ? name : NULL};
    return api_query_flag(req, "archived", &f->archived) &&
           api_query_strings(req, "users", &f->users) &&
           api_query_ints(req, "userIds", &f->user_ids);
}

void api_get_workspaces(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct db_place_filter f;
    c->key = "workspaces";
    if (!read_filter(req, &f) || !api_page(req, wire_workspace_sort, &c->page))
        return;
    const char *exact = http_query(req, "nameCaseSensitive");
    f.exact_name = exact && *exact ? exact : NULL;
    db_workspace_list(sh->db, &f, &c->page, on_list, c);
}

void api_get_workspace_projects(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct db_place_filter f;
    c->key = "projects";
    if (read_filter(req, &f) && api_id(req, "id", &f.workspace_id) &&
        api_page(req, wire_project_sort, &c->page))
        db_project_list(sh->db, &f, &c->page, on_list, c);
}

void api_get_workspace(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "id", &id))
        db_workspace_read(sh->db, id, api_reply_doc, req);
}

void api_get_project(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "id", &id))
        db_project_read(sh->db, id, api_reply_doc, req);
}

struct place_body {
    const char *name, *description;
};
static const struct wire_field place_fields[] = {
    {"name", WIRE_STR, offsetof(struct place_body, name), WIRE_REQUIRED, NULL},
    {"description", WIRE_STR, offsetof(struct place_body, description), 0, NULL},
};

bool place_check_name(struct http_req *req, const char *name)
{
    size_t n = strlen(name);
    if (n > 0 && n <= NAME_MAX_BYTES && strspn(name, " \t\r\n") < n)
        return true;
    http_fail(req, DET_EINVAL, "name: 1 to %d bytes, not blank", NAME_MAX_BYTES);
    return false;
}

/* The body, its name checked; false: answered. *ret_body owns the strings. */
static bool place_read(struct http_req *req, struct place_body *b, json_t **ret_body)
{
    *b = (struct place_body){.description = ""};
    if (!api_decode(req, place_fields, DET_ARRAY_LEN(place_fields), b, ret_body))
        return false;
    if (place_check_name(req, b->name))
        return true;
    json_decref(*ret_body);
    return false;
}

void place_name_taken(struct http_req *req)
{
    http_fail(req, DET_EEXIST,
              "name: there is one of this name already (archived ones count); take another");
}

static void on_created(void *arg, const struct db_result *r)
{
    if (db_state(r) == DB_STATE_TAKEN)
        place_name_taken(arg);
    else
        api_reply_doc(arg, r);
}

/* What Determined's workspaces hold and these do not: to take it would be to lose it. Empty is as
 * good as not given. */
bool place_check_kept(struct http_req *req, const json_t *body)
{
    static const char *const lost[] = {"agentUserGroup",     "checkpointStorageConfig",
                                       "defaultComputePool", "defaultComputeResourcePool",
                                       "defaultAuxPool",     "defaultAuxResourcePool"};
    for (size_t i = 0; i < DET_ARRAY_LEN(lost); i++) {
        const json_t *v = wire_get(body, lost[i]);
        bool empty = (json_is_string(v) && json_string_length(v) == 0) ||
                     (json_is_object(v) && json_object_size(v) == 0);
        if (!v || empty)
            continue;
        http_fail(req, DET_EUNIMPL,
                  "%s: not kept for a workspace in this version; leave it out, and name it in each "
                  "experiment's configuration, in a template, or for the whole cluster in "
                  "master.yaml",
                  lost[i]);
        return false;
    }
    return true;
}

void api_post_workspace(struct shell *sh, struct http_req *req)
{
    struct place_body b;
    json_t *body;
    if (!place_read(req, &b, &body))
        return;
    if (place_check_kept(req, body))
        db_workspace_create(sh->db, b.name, req->who.user_id, on_created, req);
    json_decref(body);
}

static void on_project_created(void *arg, const struct db_result *r)
{
    if (db_rc(r) == 0 && db_rows(r) == 0)
        http_fail(arg, DET_ENOENT,
                  "workspace %.20s: not there, archived, or the one that nothing is added to",
                  http_param(arg, "workspaceId"));
    else
        on_created(arg, r);
}

void api_post_project(struct shell *sh, struct http_req *req)
{
    struct place_body b;
    json_t *body;
    int64_t id;
    if (!api_id(req, "workspaceId", &id) || !place_read(req, &b, &body))
        return;
    db_project_create(sh->db, id, b.name, b.description, req->who.user_id, on_project_created, req);
    json_decref(body);
}

static void on_archived(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0)
        http_fail(arg, DET_ENOENT, "%.20s: not there, or the one that cannot be archived",
                  http_param(arg, "id"));
    else
        http_reply(arg, 200, "{}");
}

#define ARCHIVE(name, fn, archived)                                                                \
    void api_##name(struct shell *sh, struct http_req *req)                                        \
    {                                                                                              \
        int64_t id;                                                                                \
        if (api_id(req, "id", &id))                                                                \
            fn(sh->db, id, archived, on_archived, req);                                            \
    }
ARCHIVE(archive_workspace, db_workspace_archive, true)
ARCHIVE(unarchive_workspace, db_workspace_archive, false)
ARCHIVE(archive_project, db_project_archive, true)
ARCHIVE(unarchive_project, db_project_archive, false)
