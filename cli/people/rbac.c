/* det rbac: what roles there are, who has them, giving and taking them. */
#include "cli.h"
#include "named.h"
#include "place.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *workspace, *user, *group;
    bool local_only;
} o;

static int64_t role_id(const json_t *role)
{
    return json_int(role, "roleId", 0);
}

/* ---- tables ---- */

static void print_permissions(const json_t *list)
{
    static const char *const heads[] = {"ID", "PERMISSION", "SCOPE"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *p = json_array_get(list, i), *mask = json_obj(p, "scopeTypeMask");
        table_cell(t, "%s", json_str(p, "id", ""));
        table_cell(t, "%s", json_str(p, "name", ""));
        table_cell(t, "%s", json_flag(mask, "workspace", false) ? "cluster, workspace" : "cluster");
    }
    table_print(t, "no permissions");
}

/* Where an assignment holds. */
static const char *place_of(const json_t *assignment, const json_t *workspaces)
{
    if (json_flag(assignment, "scopeCluster", false))
        return "(the whole cluster)";
    return named_in(workspaces, json_int(assignment, "scopeWorkspaceId", 0));
}

/* One row for each of a role's assignments to users or to groups. */
static void print_holders(const json_t *list, const char *kind, const json_t *names,
                          const json_t *workspaces)
{
    const char *heads[] = {">ID", strcmp(kind, "userId") ? "GROUP" : "USER", "WORKSPACE"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        table_cell(t, "%" PRId64, json_int(one, kind, 0));
        table_cell(t, "%s", named_in(names, json_int(one, kind, 0)));
        table_cell(t, "%s", place_of(json_obj(one, "roleAssignment"), workspaces));
    }
    table_print(t, "");
}

/* ---- roles ---- */

static int list_roles(struct cli *c, struct det_err *err)
{
    JSON_OWN filter = json_object();
    JSON_OWN roles = NULL;
    if (o.local_only) /* those that can be given in one: the first is as good as any */
        json_set(filter, "workspaceId", json_integer(1));
    if (named_search(c, "/roles/search/by-assignability", "roles", filter, &roles, err) < 0)
        return CLI_FAILED;
    JSON_OWN answer = json_make("{s:O}", "roles", roles);
    if (cli_print_json(c, answer))
        return 0;
    for (size_t i = 0; i < json_array_size(roles); i++) {
        const json_t *role = json_array_get(roles, i);
        printf("role '%s' with ID %" PRId64 " with permissions\n", json_str(role, "name", ""),
               role_id(role));
        print_permissions(json_arr(role, "permissions"));
        puts("");
    }
    if (json_array_size(roles) == 0)
        puts("no roles found");
    return 0;
}

static int describe_role(struct cli *c, struct det_err *err)
{
    JSON_OWN role = NULL;
    JSON_OWN answer = NULL;
    JSON_OWN users = NULL;
    JSON_OWN groups = NULL;
    JSON_OWN places = NULL;
    if (named_role(c, cli_arg(c, 0), &role, err) < 0)
        return CLI_FAILED;
    JSON_OWN body = json_make("{s:[I]}", "roleIds", (json_int_t)role_id(role));
    if (cli_call(c, "POST", "/roles/search/by-ids", body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *found = json_array_get(json_arr(answer, "roles"), 0);
    if (cli_print_json(c, found))
        return 0;
    if (named_all_users(c, &users, err) < 0 || named_all_groups(c, &groups, err) < 0 ||
        named_all_workspaces(c, &places, err) < 0)
        return CLI_FAILED;
    const json_t *to_groups = json_arr(found, "groupRoleAssignments");
    const json_t *to_users = json_arr(found, "userRoleAssignments");
    printf("role '%s' with ID %" PRId64 " with permissions\n", json_str(role, "name", ""),
           role_id(role));
    print_permissions(json_arr(role, "permissions"));
    puts(json_array_size(to_groups) ? "\nrole is assigned to groups"
                                    : "\nrole is not assigned to any group");
    if (json_array_size(to_groups))
        print_holders(to_groups, "groupId", groups, places);
    puts(json_array_size(to_users) ? "\nrole is assigned to users"
                                   : "\nrole is not assigned to any users");
    if (json_array_size(to_users))
        print_holders(to_users, "userId", users, places);
    return 0;
}

/* ---- who has which ---- */

/* Where an answer's list of roles says that this one holds; borrowed. */
static const json_t *places_of(const json_t *answer, const json_t *role)
{
    const json_t *sums = json_arr(answer, "assignments");
    for (size_t i = 0; i < json_array_size(sums); i++)
        if (role_id(json_array_get(sums, i)) == role_id(role))
            return json_array_get(sums, i);
    return NULL;
}

static bool holds_at(const json_t *sum, int64_t place)
{
    const json_t *where = json_arr(sum, "scopeWorkspaceIds");
    bool holds = place == 0 && json_flag(sum, "scopeCluster", false);
    for (size_t k = 0; k < json_array_size(where); k++)
        holds = holds || json_integer_value(json_array_get(where, k)) == place;
    return holds;
}

/* The permissions of all roles that hold at a place (0: the whole cluster), each once. New
 * reference. */
static json_t *permissions_at(const json_t *summary, int64_t place)
{
    json_t *out = json_array();
    JSON_OWN seen = json_object();
    const json_t *roles = json_arr(summary, "roles");
    for (size_t i = 0; i < json_array_size(roles); i++) {
        const json_t *role = json_array_get(roles, i), *list = json_arr(role, "permissions");
        if (!holds_at(places_of(summary, role), place))
            continue;
        for (size_t k = 0; k < json_array_size(list); k++) {
            json_t *p = json_array_get(list, k);
            const char *id = json_str(p, "id", "");
            if (!json_object_get(seen, id))
                json_array_append(out, p);
            json_set(seen, id, json_true());
        }
    }
    return out;
}

static void print_mine(const json_t *summary, const json_t *places)
{
    JSON_OWN whole = permissions_at(summary, 0);
    bool any = json_array_size(whole) > 0;
    if (any) {
        puts("global permissions assigned");
        print_permissions(whole);
    }
    const char *id, *gap = any ? "\n" : "";
    const json_t *name;
    json_object_foreach((json_t *)places, id, name)
    {
        JSON_OWN list = permissions_at(summary, strtoll(id, NULL, 10));
        if (json_array_size(list) == 0)
            continue;
        printf("%spermissions assigned over workspace '%s' with ID '%s'\n", gap,
               json_string_value(name), id);
        print_permissions(list);
        gap = "\n";
    }
    if (!*gap)
        puts("no permissions assigned; what is your own is yours to change");
}

static int my_permissions(struct cli *c, struct det_err *err)
{
    JSON_OWN summary = NULL;
    JSON_OWN places = NULL;
    if (cli_get(c, &summary, err, "/permissions/summary") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, summary))
        return 0;
    if (named_all_workspaces(c, &places, err) < 0)
        return CLI_FAILED;
    print_mine(summary, places);
    return 0;
}

static void add_roles_of(struct table *t, const json_t *role, const json_t *groups,
                         const json_t *places)
{
    static const char *const lists[] = {"userRoleAssignments", "groupRoleAssignments"};
    for (size_t k = 0; k < DET_ARRAY_LEN(lists); k++)
        for (size_t i = 0; i < json_array_size(json_arr(role, lists[k])); i++) {
            const json_t *one = json_array_get(json_arr(role, lists[k]), i);
            table_cell(t, "%" PRId64, role_id(json_obj(role, "role")));
            table_cell(t, "%s", json_str(json_obj(role, "role"), "name", ""));
            table_cell(t, "%s", k ? named_in(groups, json_int(one, "groupId", 0)) : "");
            table_cell(t, "%s", place_of(json_obj(one, "roleAssignment"), places));
        }
}

static int list_users_roles(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID", "ROLE", "BY GROUP", "WORKSPACE"};
    JSON_OWN answer = NULL;
    JSON_OWN groups = NULL;
    JSON_OWN places = NULL;
    int64_t id;
    if (named_user(c, cli_arg(c, 0), &id, err) < 0 ||
        cli_get(c, &answer, err, "/roles/search/by-user/%" PRId64, id) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    if (named_all_groups(c, &groups, err) < 0 || named_all_workspaces(c, &places, err) < 0)
        return CLI_FAILED;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(json_arr(answer, "roles")); i++)
        add_roles_of(t, json_array_get(json_arr(answer, "roles"), i), groups, places);
    table_print(t, "user has no role assignments");
    return 0;
}

static void add_places(struct table *t, const json_t *role, const json_t *sum, const json_t *places)
{
    const json_t *where = json_arr(sum, "scopeWorkspaceIds");
    bool whole = json_flag(sum, "scopeCluster", false);
    for (size_t i = 0; i < json_array_size(where) + whole; i++) {
        bool is_whole = whole && i == json_array_size(where);
        int64_t id = json_integer_value(json_array_get(where, i));
        table_cell(t, "%" PRId64, role_id(role));
        table_cell(t, "%s", json_str(role, "name", ""));
        table_cell(t, "%s", is_whole ? "(the whole cluster)" : named_in(places, id));
    }
}

static int list_groups_roles(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID", "ROLE", "WORKSPACE"};
    JSON_OWN group = NULL;
    JSON_OWN answer = NULL;
    JSON_OWN places = NULL;
    if (named_group(c, cli_arg(c, 0), &group, err) < 0 ||
        cli_get(c, &answer, err, "/roles/search/by-group/%" PRId64, json_int(group, "groupId", 0)) <
            0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    if (named_all_workspaces(c, &places, err) < 0)
        return CLI_FAILED;
    const json_t *roles = json_arr(answer, "roles");
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(roles); i++) {
        const json_t *role = json_array_get(roles, i);
        add_places(t, role, places_of(answer, role), places);
    }
    table_print(t, "group has no role assignments");
    return 0;
}

/* ---- giving and taking ---- */

/* The assignment as the API takes it, and in words who it is: "user 'ann' with ID 7", which the
 * caller frees. */
static int read_grant(struct cli *c, const json_t *role, json_t **ret_body, char **ret_whom,
                      struct det_err *err)
{
    JSON_OWN group = NULL;
    JSON_OWN place = NULL;
    int64_t id = 0;
    if (o.user ? named_user(c, o.user, &id, err) < 0 : named_group(c, o.group, &group, err) < 0)
        return CLI_FAILED;
    if (o.workspace && place_workspace(c, o.workspace, &place, err) < 0)
        return CLI_FAILED;
    if (group)
        id = json_int(group, "groupId", 0);
    JSON_OWN one =
        json_make("{s:{s:{s:I}},s:I}", "roleAssignment", "role", "roleId",
                  (json_int_t)role_id(role), group ? "groupId" : "userId", (json_int_t)id);
    if (place)
        json_set(json_obj(one, "roleAssignment"), "scopeWorkspaceId",
                 json_integer(json_int(place, "id", 0)));
    *ret_body = group
                    ? json_make("{s:[],s:[O]}", "userRoleAssignments", "groupRoleAssignments", one)
                    : json_make("{s:[O],s:[]}", "userRoleAssignments", one, "groupRoleAssignments");
    *ret_whom = det_asprintf("%s '%s' with ID %" PRId64, group ? "group" : "user",
                             group ? o.group : o.user, id);
    return 0;
}

static int change_assignment(struct cli *c, const char *verb, const char *done, const char *to,
                             struct det_err *err)
{
    JSON_OWN role = NULL;
    JSON_OWN body = NULL;
    char *whom det_cleanup(freep) = NULL;
    char *path det_cleanup(freep) = det_asprintf("/roles/%s-assignments", verb);
    if (!o.user == !o.group) {
        det_fail(err, DET_EINVAL,
                 "must provide exactly one of --username-to-assign or --group-name-to-assign");
        return CLI_FAILED;
    }
    if (named_role(c, cli_arg(c, 0), &role, err) < 0 ||
        read_grant(c, role, &body, &whom, err) != 0 ||
        cli_call(c, "POST", path, body, NULL, err) < 0)
        return CLI_FAILED;
    printf("%s role '%s' with ID %" PRId64 " %s %s %s%s\n", done, json_str(role, "name", ""),
           role_id(role), to, whom, o.workspace ? "to workspace " : "globally",
           o.workspace ? o.workspace : "");
    return 0;
}

static int assign_role(struct cli *c, struct det_err *err)
{
    return change_assignment(c, "add", "assigned", "to", err);
}

static int unassign_role(struct cli *c, struct det_err *err)
{
    return change_assignment(c, "remove", "removed", "from", err);
}

static const struct opt list_opts[] = {
    {"exclude-global-roles", 0, OPT_FLAG, &o.local_only, NULL,
     "only those that can be given in a workspace"},
    {0},
};
static const struct opt grant_opts[] = {
    {"workspace-name", 'w', OPT_STR, &o.workspace, "NAME",
     "in this one; else in the whole cluster"},
    {"username-to-assign", 'u', OPT_STR, &o.user, "NAME", "the user"},
    {"group-name-to-assign", 'g', OPT_STR, &o.group, "NAME", "or the group"},
    {0},
};
static const struct verb verbs[] = {
    {"list-roles", NULL, "", "all roles, and what each permits", list_opts, list_roles},
    {"my-permissions", NULL, "", "what roles permit to who asks", NULL, my_permissions},
    {"list-users-roles", NULL, "USER", "the roles of a user, by groups too", NULL,
     list_users_roles},
    {"list-groups-roles", NULL, "GROUP", "the roles of a group", NULL, list_groups_roles},
    {"describe-role", NULL, "ROLE", "what it permits, and who has it", NULL, describe_role},
    {"assign-role", NULL, "ROLE", "give it to a user or a group", grant_opts, assign_role},
    {"unassign-role", NULL, "ROLE", "take it away again", grant_opts, unassign_role},
    {0},
};

const struct noun noun_rbac = {"rbac", "", NULL, "roles: who may do what, and where", verbs};
