/* Groups of users. Everybody sees them; administrators change them. */
#include "api_handlers.h"
#include "api_util.h"
#include "auth.h"
#include "db_roles.h"
#include "shell.h"
#include <string.h>

enum { NAME_MAX_BYTES = 250, LIMIT_MAX = 500 };

static void on_group(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    enum db_state state = db_state(r);
    if (state == DB_STATE_TAKEN) {
        http_fail(req, DET_EEXIST, "name: there is a group of this name already");
    } else if (state == DB_STATE_MISSING) {
        http_fail(req, DET_ENOENT, "one of the users or groups is not there (nothing was changed)");
    } else {
        auth_forget_user(req->sh->auth, 0);
        api_reply_doc(req, r);
    }
}

/* A list of the body's as text, of ids only; NULL: answered. */
static char *ids_text(struct http_req *req, json_t *body, const char *name)
{
    struct det_err err;
    const json_t *list = api_list(req, body, name);
    JSON_OWN out = json_array();
    for (size_t i = 0; list && i < json_array_size(list); i++) {
        int64_t id;
        if (wire_i64(json_array_get(list, i), name, &id, &err) < 0) {
            http_fail_err(req, &err);
            return NULL;
        }
        json_array_append_new(out, json_integer(id));
    }
    return list ? json_text(out) : NULL;
}

static bool name_ok(struct http_req *req, const json_t *name)
{
    const char *s = json_string_value(name);
    if (s && strlen(s) <= NAME_MAX_BYTES && s[strspn(s, " \t\r\n")])
        return true;
    http_fail(req, DET_EINVAL, "name: 1 to %d bytes, not blank", NAME_MAX_BYTES);
    return false;
}

static void edit_group(struct shell *sh, struct http_req *req, int64_t id)
{
    JSON_OWN body = api_body(req);
    const json_t *name = body ? wire_get(body, "name") : NULL;
    bool named = id == 0 || (name && !(json_is_string(name) && !json_string_length(name)));
    if (!body || (named && !name_ok(req, name)))
        return;
    det_cleanup(freep) char *add = ids_text(req, body, "addUsers");
    det_cleanup(freep) char *remove = add ? ids_text(req, body, "removeUsers") : NULL;
    if (!remove)
        return;
    const struct db_group_edit g = {id, named ? json_string_value(name) : NULL, add, remove};
    db_group_edit(sh->db, &g, on_group, req);
}

void api_post_group(struct shell *sh, struct http_req *req)
{
    edit_group(sh, req, 0);
}

void api_put_group(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "groupId", &id))
        edit_group(sh, req, id);
}

void api_get_group(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "groupId", &id))
        db_group_read(sh->db, id, api_reply_doc, req);
}

static void on_done(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    auth_forget_user(req->sh->auth, 0);
    if (api_failed(req, r))
        return;
    if (req->method == HTTP_DELETE && db_rows(r) == 0)
        api_not_found(req);
    else
        http_reply(req, 200, "{}");
}

void api_delete_group(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "groupId", &id))
        db_group_delete(sh->db, id, on_done, req);
}

static void on_assigned(void *arg, const struct db_result *r)
{
    if (db_state(r) == DB_STATE_MISSING)
        on_group(arg, r);
    else
        on_done(arg, r);
}

void api_assign_groups(struct shell *sh, struct http_req *req)
{
    JSON_OWN body = api_body(req);
    if (!body)
        return;
    det_cleanup(freep) char *users = ids_text(req, body, "userIds");
    det_cleanup(freep) char *add = users ? ids_text(req, body, "addGroups") : NULL;
    det_cleanup(freep) char *remove = add ? ids_text(req, body, "removeGroups") : NULL;
    if (remove)
        db_groups_assign(sh->db, users, add, remove, on_assigned, req);
}

struct search_body {
    const char *name;
    int64_t user_id, offset, limit;
};
static const struct wire_field search_fields[] = {
    {"name", WIRE_STR, offsetof(struct search_body, name), 0, NULL},
    {"userId", WIRE_I32, offsetof(struct search_body, user_id), 0, NULL},
    {"offset", WIRE_I32, offsetof(struct search_body, offset), 0, NULL},
    {"limit", WIRE_I32, offsetof(struct search_body, limit), 0, NULL},
};

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

void api_search_groups(struct shell *sh, struct http_req *req)
{
    struct search_body b = {0};
    json_t *given;
    if (!api_decode(req, search_fields, DET_ARRAY_LEN(search_fields), &b, &given))
        return;
    JSON_OWN body = given;
    if (b.limit < 1 || b.limit > LIMIT_MAX) {
        http_fail(req, DET_EINVAL, "limit: 1 to %d", LIMIT_MAX);
        return;
    }
    struct api_call *c = api_call(sh, req);
    c->key = "groups";
    c->page = (struct db_page){.offset = b.offset, .limit = b.limit};
    db_group_list(sh->db, b.name && *b.name ? b.name : NULL, b.user_id, &c->page, on_list, c);
}
