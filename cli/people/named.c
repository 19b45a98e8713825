#include "named.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { PAGE = 500 };

/* ---- ids of names ---- */

int named_user(struct cli *c, const char *name, int64_t *ret_id, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *escaped det_cleanup(freep) = cli_escaped(name);
    int rc = *name ? cli_get(c, &answer, err, "/users/%s/by-username", escaped) : DET_ENOENT;
    if (rc == DET_ENOENT)
        return det_fail(err, rc,
                        "could not find users for usernames %.80s; det user list shows all", name);
    *ret_id = rc == 0 ? json_int(json_obj(answer, "user"), "id", 0) : 0;
    return rc;
}

int named_users(struct cli *c, const char *const *names, size_t n, json_t *ids, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf missing = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        int64_t id;
        int rc = named_user(c, names[i], &id, err);
        if (rc == DET_ENOENT)
            buf_addf(&missing, "%s%.80s", missing.len ? ", " : "", names[i]);
        else if (rc < 0)
            return rc;
        else
            json_array_append_new(ids, json_integer(id));
    }
    if (missing.len == 0)
        return 0;
    return det_fail(err, DET_ENOENT,
                    "could not find users for usernames %.300s; det user list shows all",
                    buf_str(&missing));
}

int named_group(struct cli *c, const char *name, json_t **ret_group, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body = json_make("{s:i,s:i,s:s}", "limit", 1, "offset", 0, "name", name);
    int rc = cli_call(c, "POST", "/groups/search", body, &answer, err);
    json_t *found = json_obj(json_array_get(json_arr(answer, "groups"), 0), "group");
    if (rc == 0 && (!found || !*name))
        rc = det_fail(err, DET_ENOENT,
                      "could not find user group name %.80s; det user-group list shows all", name);
    if (rc == 0)
        *ret_group = json_incref(found);
    return rc;
}

int named_role(struct cli *c, const char *name, json_t **ret_role, struct det_err *err)
{
    JSON_OWN list = NULL;
    int rc = named_search(c, "/roles/search", "roles", NULL, &list, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *role = json_array_get(list, i);
        if (strcasecmp(json_str(role, "name", ""), name) == 0) {
            *ret_role = json_incref(role);
            return 0;
        }
    }
    return det_fail(err, DET_ENOENT,
                    "could not find role name %.80s; det rbac list-roles shows all", name);
}

/* ---- names of ids ---- */

int named_search(struct cli *c, const char *path, const char *key, const json_t *filter,
                 json_t **ret_list, struct det_err *err)
{
    JSON_OWN all = json_array();
    for (size_t before = 0;; before = json_array_size(all)) {
        JSON_OWN answer = NULL;
        JSON_OWN body = filter ? json_deep_copy(filter) : json_object();
        json_set(body, "limit", json_integer(PAGE));
        json_set(body, "offset", json_integer((json_int_t)before));
        int rc = cli_call(c, "POST", path, body, &answer, err);
        if (rc < 0)
            return rc;
        json_array_extend(all, json_arr(answer, key));
        int64_t total = json_int(json_obj(answer, "pagination"), "total", 0);
        if (json_array_size(all) == before || json_array_size(all) >= (size_t)total)
            break;
    }
    *ret_list = json_incref(all);
    return 0;
}

static void put_name(json_t *map, int64_t id, const char *name)
{
    char key[24];
    snprintf(key, sizeof key, "%" PRId64, id);
    json_set(map, key, json_string(name));
}

int named_all_groups(struct cli *c, json_t **ret, struct det_err *err)
{
    JSON_OWN list = NULL;
    int rc = named_search(c, "/groups/search", "groups", NULL, &list, err);
    if (rc < 0)
        return rc;
    *ret = json_object();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *g = json_obj(json_array_get(list, i), "group");
        put_name(*ret, json_int(g, "groupId", 0), json_str(g, "name", ""));
    }
    return 0;
}

/* Of a GET that answers with all: each has "id" and the name. */
static int get_all(struct cli *c, const char *path, const char *key, const char *name, json_t **ret,
                   struct det_err *err)
{
    JSON_OWN answer = NULL;
    int rc = cli_call(c, "GET", path, NULL, &answer, err);
    if (rc < 0)
        return rc;
    *ret = json_object();
    for (size_t i = 0; i < json_array_size(json_arr(answer, key)); i++) {
        const json_t *one = json_array_get(json_arr(answer, key), i);
        put_name(*ret, json_int(one, "id", 0), json_str(one, name, ""));
    }
    return 0;
}

int named_all_users(struct cli *c, json_t **ret, struct det_err *err)
{
    return get_all(c, "/users", "users", "username", ret, err);
}

int named_all_workspaces(struct cli *c, json_t **ret, struct det_err *err)
{
    return get_all(c, "/workspaces", "workspaces", "name", ret, err);
}

const char *named_in(const json_t *map, int64_t id)
{
    char key[24];
    snprintf(key, sizeof key, "%" PRId64, id);
    return json_str(map, key, "");
}
