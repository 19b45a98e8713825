/* Roles: what there are (proto/rights.c), who has them, and giving and taking them. */
#include "access.h"
#include "api_handlers.h"
#include "api_util.h"
#include "auth.h"
#include "db_roles.h"
#include "masterconf.h"
#include "may.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT_MAX = 500 };

/* ---- as the API says them; new references ---- */

static json_t *scope_json(bool workspace)
{
    return json_make("{s:b,s:b}", "cluster", 1, "workspace", workspace);
}

static json_t *role_json(const struct role *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < permissions_n; i++) {
        const struct permission *p = &permissions[i];
        if (!(r->rights & p->right))
            continue;
        json_t *one = json_make("{s:s,s:s}", "id", p->type, "name", p->name);
        json_set(one, "scopeTypeMask", scope_json(!(p->right & (RIGHT_CLUSTER | RIGHT_FOUND))));
        json_array_append_new(list, one);
    }
    return json_make("{s:i,s:s,s:o,s:o}", "roleId", r->id, "name", r->name, "permissions", list,
                     "scopeTypeMask", scope_json(r->is_local));
}

static json_t *assignment_json(const struct role *role, const struct db_result *r, int i)
{
    json_t *out = json_make("{s:o,s:b}", "role", role_json(role), "scopeCluster",
                            db_is_null(r, i, ROLE_WORKSPACE));
    json_set(out, "scopeWorkspaceId",
             db_is_null(r, i, ROLE_WORKSPACE) ? json_null()
                                              : json_integer(db_i64(r, i, ROLE_WORKSPACE)));
    return out;
}

/* Adds row i to a RoleWithAssignments. */
static void with_row(json_t *to, const struct role *role, const struct db_result *r, int i)
{
    bool by_group = !db_is_null(r, i, ROLE_GROUP);
    json_t *one = json_make("{s:I,s:o}", by_group ? "groupId" : "userId",
                            (json_int_t)db_i64(r, i, by_group ? ROLE_GROUP : ROLE_USER),
                            "roleAssignment", assignment_json(role, r, i));
    const char *list = by_group ? "groupRoleAssignments" : "userRoleAssignments";
    json_array_append_new(json_object_get(to, list), one);
}

static json_t *with_assignments(const struct role *role, const struct db_result *r)
{
    json_t *out = json_make("{s:o,s:[],s:[]}", "role", role_json(role), "groupRoleAssignments",
                            "userRoleAssignments");
    for (int i = 0; i < db_rows(r); i++)
        if (db_i64(r, i, ROLE_ID) == role->id)
            with_row(out, role, r, i);
    return out;
}

/* A RoleAssignmentSummary of all rows of the role; NULL: there is none. */
static json_t *summary_json(const struct role *role, const struct db_result *r)
{
    json_t *places = json_array();
    bool any = false, whole = false;
    for (int i = 0; i < db_rows(r); i++) {
        if (db_i64(r, i, ROLE_ID) != role->id)
            continue;
        any = true;
        if (db_is_null(r, i, ROLE_WORKSPACE))
            whole = true;
        else
            json_array_append_new(places, json_integer(db_i64(r, i, ROLE_WORKSPACE)));
    }
    json_t *out = json_make("{s:i,s:o,s:b}", "roleId", role->id, "scopeWorkspaceIds", places,
                            "scopeCluster", whole);
    if (any)
        return out;
    json_decref(out);
    return NULL;
}

/* The roles of these rows, each with where. */
static json_t *summaries_json(const struct db_result *r)
{
    json_t *list = json_array(), *sums = json_array();
    for (size_t i = 0; i < roles_n; i++) {
        json_t *sum = summary_json(&roles[i], r);
        if (!sum)
            continue;
        json_array_append_new(sums, sum);
        json_array_append_new(list, role_json(&roles[i]));
    }
    return json_make("{s:o,s:o}", "roles", list, "assignments", sums);
}

static void on_summary(void *arg, const struct db_result *r)
{
    if (!api_failed(arg, r))
        api_reply_json(arg, summaries_json(r));
}

/* The permissions that somebody without a role has of a thing, by whose it is. */
static json_t *without_role(enum may_mode mode, const struct may_what *what)
{
    const struct may_who anybody = {.user_id = 1};
    unsigned rights = may_rights(mode, &anybody, what);
    json_t *list = json_array();
    for (size_t i = 0; i < permissions_n; i++)
        if (rights & permissions[i].right)
            json_array_append_new(list, json_string(permissions[i].type));
    return list;
}

static void on_own_summary(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    if (api_failed(req, r))
        return;
    enum may_mode mode = req->sh->conf->authz;
    json_t *j = summaries_json(r);
    json_set(j, "everybody", without_role(mode, &(struct may_what){0}));
    json_set(j, "owner", without_role(mode, &(struct may_what){.owner_id = 1}));
    json_set(j, "workspaceOwner", without_role(mode, &(struct may_what){.host_id = 1}));
    api_reply_json(req, j);
}

void api_get_permissions_summary(struct shell *sh, struct http_req *req)
{
    db_roles_list(sh->db, &(struct db_role_filter){.user_id = req->who.user_id}, on_own_summary,
                  req);
}

void api_get_roles_of_group(struct shell *sh, struct http_req *req)
{
    struct db_role_filter f = {0};
    if (api_id(req, "groupId", &f.group_id))
        db_roles_list(sh->db, &f, on_summary, req);
}

/* Those that somebody has, each with who has it where. */
static json_t *given_roles(const struct db_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < roles_n; i++) {
        JSON_OWN sum = summary_json(&roles[i], r);
        if (sum)
            json_array_append_new(list, with_assignments(&roles[i], r));
    }
    return list;
}

static void on_of_user(void *arg, const struct db_result *r)
{
    if (!api_failed(arg, r))
        api_reply_json(arg, json_make("{s:o}", "roles", given_roles(r)));
}

void api_get_roles_of_user(struct shell *sh, struct http_req *req)
{
    struct db_role_filter f = {0};
    if (api_id(req, "userId", &f.user_id))
        db_roles_list(sh->db, &f, on_of_user, req);
}

static void on_of_place(void *arg, const struct db_result *r)
{
    if (api_failed(arg, r))
        return;
    if (db_rows(r) == 0) {
        api_not_found(arg);
        return;
    }
    json_t *groups = json_parse(db_text(r, 0, PLACE_GROUPS), db_text_len(r, 0, PLACE_GROUPS), NULL);
    json_t *users = json_parse(db_text(r, 0, PLACE_USERS), db_text_len(r, 0, PLACE_USERS), NULL);
    api_reply_json(arg, json_make("{s:o,s:o,s:o}", "groups", groups, "usersAssignedDirectly", users,
                                  "assignments", given_roles(r)));
}

void api_get_roles_of_workspace(struct shell *sh, struct http_req *req)
{
    int64_t id;
    const char *name = http_query(req, "name");
    if (api_id(req, "workspaceId", &id))
        db_roles_of_place(sh->db, id, name && *name ? name : NULL, on_of_place, req);
}

/* ---- searches ---- */

struct search_body {
    int64_t offset, limit, workspace_id;
};
static const struct wire_field search_fields[] = {
    {"offset", WIRE_I32, offsetof(struct search_body, offset), 0, NULL},
    {"limit", WIRE_I32, offsetof(struct search_body, limit), 0, NULL},
    {"workspaceId", WIRE_I32, offsetof(struct search_body, workspace_id), 0, NULL},
};

static void find_roles(struct http_req *req, bool local_only)
{
    struct search_body b = {0};
    json_t *given;
    if (!api_decode(req, search_fields, DET_ARRAY_LEN(search_fields), &b, &given))
        return;
    JSON_OWN body = given;
    JSON_OWN fit = json_array();
    for (size_t i = 0; i < roles_n; i++)
        if (roles[i].is_local || !(local_only && b.workspace_id))
            json_array_append_new(fit, role_json(&roles[i]));
    size_t start, end, total = json_array_size(fit);
    const struct db_page p = {.offset = b.offset, .limit = b.limit};
    if (b.limit < 1 || b.limit > LIMIT_MAX) {
        http_fail(req, DET_EINVAL, "limit: 1 to %d", LIMIT_MAX);
        return;
    }
    if (!api_slice(req, &p, total, &start, &end))
        return;
    json_t *list = json_array();
    for (size_t i = start; i < end; i++)
        json_array_append(list, json_array_get(fit, i));
    api_reply_json(req, json_make("{s:o,s:o}", "roles", list, "pagination",
                                  api_pagination(&p, start, end, total)));
}

void api_search_roles(struct shell *sh, struct http_req *req)
{
    find_roles(req, false);
}

void api_search_roles_assignable(struct shell *sh, struct http_req *req)
{
    find_roles(req, true);
}

static void on_by_id(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < roles_n; i++)
        if ((uint64_t)c->id >> roles[i].id & 1)
            json_array_append_new(list, with_assignments(&roles[i], r));
    api_reply_json(c->req, json_make("{s:o}", "roles", list));
}

void api_get_roles_by_id(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct det_err err;
    JSON_OWN body = api_body(req);
    const json_t *ids = body ? api_list(req, body, "roleIds") : NULL;
    for (size_t i = 0; ids && i < json_array_size(ids); i++) {
        int64_t id;
        if (wire_i64(json_array_get(ids, i), "roleIds", &id, &err) < 0) {
            http_fail_err(req, &err);
            return;
        }
        if (!role_find(id)) {
            http_fail(req, DET_ENOENT, "roleIds: there is no role %" PRId64, id);
            return;
        }
        c->id |= (int64_t)1 << id;
    }
    if (ids)
        db_roles_list(sh->db, &(struct db_role_filter){0}, on_by_id, c);
}

/* ---- giving and taking ---- */

struct grant {
    struct http_req *req;
    const char *list; /* as db_roles_add takes it; of the request's memory */
    bool add;
};

static void on_granted(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    auth_forget_user(req->sh->auth, 0);
    if (db_state(r) == DB_STATE_MISSING)
        http_fail(req, DET_ENOENT,
                  "the user, group or workspace is not there (nothing was changed)");
    else if (db_state(r) == DB_STATE_NO_ROWS)
        http_fail(req, DET_ENOENT, "there is no such assignment (nothing was changed)");
    else if (!api_failed(req, r))
        http_reply(req, 200, "{}");
}

static void apply_grant(const struct grant *g)
{
    if (g->add)
        db_roles_add(g->req->sh->db, g->list, on_granted, g->req);
    else
        db_roles_remove(g->req->sh->db, g->list, on_granted, g->req);
}

static void on_asked(void *arg, const json_t *refused)
{
    struct grant *g = arg;
    if (refused && !access_refused(g->req, refused))
        apply_grant(g);
}

/* One assignment as {"role", "user" or "group", "workspace"}; its workspace also into places. */
static int grant_read(const json_t *j, const char *who, json_t *list, json_t *places,
                      struct det_err *err)
{
    const json_t *a = json_is_object(j) ? wire_get(j, "roleAssignment") : NULL;
    const json_t *role = json_is_object(a) ? wire_get(a, "role") : NULL;
    const json_t *where = json_is_object(a) ? wire_get(a, "scopeWorkspaceId") : NULL;
    int64_t id = 0, role_id = 0, place = 0;
    char name[24];
    if (!json_is_object(role) || !wire_get(role, "roleId") || !wire_get(j, who))
        return det_fail(err, DET_EINVAL,
                        "assignments: %s and roleAssignment.role.roleId are required", who);
    int rc = wire_i64(wire_get(j, who), who, &id, err);
    if (rc == 0)
        rc = wire_i64(wire_get(role, "roleId"), "roleId", &role_id, err);
    if (rc == 0 && where)
        rc = wire_i64(where, "scopeWorkspaceId", &place, err);
    const struct role *r = role_find(role_id);
    if (rc == 0 && !r)
        rc = det_fail(err, DET_ENOENT, "roleId: there is no role %" PRId64, role_id);
    if (rc == 0 && place && !r->is_local)
        rc = det_fail(
            err, DET_EINVAL,
            "roleId: %s can be given in the whole cluster only: leave scopeWorkspaceId out",
            r->name);
    if (rc < 0)
        return rc;
    json_t *one = json_make("{s:I,s:I}", "role", (json_int_t)role_id,
                            !strcmp(who, "userId") ? "user" : "group", (json_int_t)id);
    json_set(one, "workspace", place ? json_integer(place) : json_null());
    json_array_append_new(list, one);
    snprintf(name, sizeof name, "%" PRId64, place);
    json_array_append_new(places, json_string(name));
    return 0;
}

static int grants_read(struct http_req *req, json_t *body, json_t *list, json_t *places,
                       struct det_err *err)
{
    static const char *const lists[][2] = {{"userRoleAssignments", "userId"},
                                           {"groupRoleAssignments", "groupId"}};
    for (size_t k = 0; k < DET_ARRAY_LEN(lists); k++) {
        const json_t *given = wire_get(body, lists[k][0]);
        if (given && !json_is_array(given))
            return det_fail(err, DET_EINVAL, "%s: expected a list", lists[k][0]);
        for (size_t i = 0; i < json_array_size(given); i++) {
            int rc = grant_read(json_array_get(given, i), lists[k][1], list, places, err);
            if (rc < 0)
                return rc;
        }
    }
    if (json_array_size(list) == 0)
        return det_fail(
            err, DET_EINVAL,
            "userRoleAssignments, groupRoleAssignments: one of them is to have something");
    return 0;
}

static void change_assignments(struct http_req *req, enum route_id route, bool add)
{
    struct det_err err;
    JSON_OWN body = api_body(req);
    JSON_OWN list = json_array();
    JSON_OWN places = json_array();
    if (!body)
        return;
    if (grants_read(req, body, list, places, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    struct grant *g = http_mem(req, sizeof *g);
    det_cleanup(freep) char *text = json_text(list);
    *g = (struct grant){req, http_strdup(req, text), add};
    bool whole = false;
    for (size_t i = 0; i < json_array_size(places); i++)
        whole = whole || !strcmp(json_string_value(json_array_get(places, i)), "0");
    if (whole && !req->who.is_admin)
        http_fail(req, DET_EPERM,
                  "only an administrator may give and take roles in the whole cluster; name a "
                  "workspace (scopeWorkspaceId, det rbac -w) or ask one");
    else if (whole)
        apply_grant(g);
    else
        access_ask(req, &(struct access_ask){&rules_all[route], SUBJECT_WORKSPACE, on_asked, g},
                   places);
}

void api_add_assignments(struct shell *sh, struct http_req *req)
{
    change_assignments(req, ROUTE_add_assignments, true);
}

void api_remove_assignments(struct shell *sh, struct http_req *req)
{
    change_assignments(req, ROUTE_remove_assignments, false);
}
