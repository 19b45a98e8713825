/* det user-group: groups of users, which roles are given to. */
#include "cli.h"
#include "named.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct opt_list members;
    const char *member;
    bool yes;
} o;

static int64_t id_of(const json_t *group)
{
    return json_int(group, "groupId", 0);
}

static int list_groups(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID", "GROUP", ">MEMBERS"};
    JSON_OWN filter = json_object();
    JSON_OWN groups = NULL;
    int64_t member = 0;
    if (o.member && named_user(c, o.member, &member, err) < 0)
        return CLI_FAILED;
    if (member)
        json_set(filter, "userId", json_integer(member));
    if (named_search(c, "/groups/search", "groups", filter, &groups, err) < 0)
        return CLI_FAILED;
    JSON_OWN answer = json_make("{s:O}", "groups", groups);
    if (cli_print_json(c, answer))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *one = json_array_get(groups, i);
        table_cell(t, "%" PRId64, id_of(json_obj(one, "group")));
        table_cell(t, "%s", json_str(json_obj(one, "group"), "name", ""));
        table_cell(t, "%" PRId64, json_int(one, "numMembers", 0));
    }
    table_print(t, "no groups; det user-group create NAME makes one");
    return 0;
}

static int create_group(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN ids = json_array();
    JSON_OWN body = json_make("{s:s,s:O}", "name", cli_arg(c, 0), "addUsers", ids);
    if (named_users(c, o.members.v, o.members.n, ids, err) < 0 ||
        cli_call(c, "POST", "/groups", body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *g = json_obj(answer, "group");
    if (cli_print_json(c, g))
        return 0;
    printf("user group with name %s and ID %" PRId64 " created", json_str(g, "name", ""), id_of(g));
    for (size_t i = 0; i < o.members.n; i++)
        printf(", %s", o.members.v[i]);
    puts(o.members.n == 0 ? "" : o.members.n == 1 ? " was added to it" : " were added to it");
    return 0;
}

static int describe_group(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID", "USER", "NAME", "ADMIN", "ACTIVE"};
    JSON_OWN found = NULL;
    JSON_OWN answer = NULL;
    if (named_group(c, cli_arg(c, 0), &found, err) < 0 ||
        cli_get(c, &answer, err, "/groups/%" PRId64, id_of(found)) < 0)
        return CLI_FAILED;
    const json_t *g = json_obj(answer, "group"), *users = json_arr(g, "users");
    if (cli_print_json(c, g))
        return 0;
    if (!table_is_csv())
        printf("user group with ID %" PRId64 " name %s\n", id_of(g), json_str(g, "name", ""));
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(users); i++) {
        const json_t *u = json_array_get(users, i);
        table_cell(t, "%" PRId64, json_int(u, "id", 0));
        table_cell(t, "%s", json_str(u, "username", ""));
        table_cell(t, "%s", json_str(u, "displayName", ""));
        table_cell(t, "%s", json_flag(u, "admin", false) ? "yes" : "");
        table_cell(t, "%s", json_flag(u, "active", false) ? "yes" : "no");
    }
    table_print(t, "nobody is in it; det user-group add-user GROUP NAME,NAME puts people in");
    return 0;
}

/* Takes the change; the body's groupId comes along. */
static int put_group(struct cli *c, const json_t *group, json_t *change, struct det_err *err)
{
    JSON_OWN body = change;
    char *path det_cleanup(freep) = det_asprintf("/groups/%" PRId64, id_of(group));
    json_set(body, "groupId", json_integer(id_of(group)));
    return cli_call(c, "PUT", path, body, NULL, err);
}

/* The names of "ann,bob", which words then holds, with a NULL in the end; the caller frees both. */
static const char **split_names(const char *text, char **ret_words, size_t *ret_n)
{
    size_t n = 0;
    const char **names = det_reallocarray(NULL, strlen(text) + 2, sizeof *names);
    *ret_words = det_strdup(text);
    for (char *at = *ret_words, *word; (word = strsep(&at, ","));)
        names[n++] = word;
    *ret_n = n;
    return names;
}

static int edit_members(struct cli *c, const char *member, const char *done, struct det_err *err)
{
    JSON_OWN group = NULL;
    JSON_OWN ids = json_array();
    char *words det_cleanup(freep) = NULL;
    size_t n;
    const char **names = split_names(cli_arg(c, 1), &words, &n);
    int rc = named_group(c, cli_arg(c, 0), &group, err);
    if (rc == 0)
        rc = named_users(c, names, n, ids, err);
    if (rc == 0)
        rc = put_group(c, group, json_make("{s:O}", member, ids), err);
    if (rc == 0)
        printf("user group with ID %" PRId64 " name %s\n", id_of(group),
               json_str(group, "name", ""));
    for (size_t i = 0; i < n && rc == 0; i++)
        printf("user %s the group with username %s and ID %" PRId64 "\n", done, names[i],
               (int64_t)json_integer_value(json_array_get(ids, i)));
    free(names);
    return rc < 0 ? CLI_FAILED : 0;
}

static int add_user(struct cli *c, struct det_err *err)
{
    return edit_members(c, "addUsers", "added to", err);
}

static int remove_user(struct cli *c, struct det_err *err)
{
    return edit_members(c, "removeUsers", "removed from", err);
}

static int change_name(struct cli *c, struct det_err *err)
{
    JSON_OWN group = NULL;
    if (named_group(c, cli_arg(c, 0), &group, err) < 0 ||
        put_group(c, group, json_make("{s:s}", "name", cli_arg(c, 1)), err) < 0)
        return CLI_FAILED;
    printf("user group with ID %" PRId64 " name changed from %s to %s\n", id_of(group),
           json_str(group, "name", ""), cli_arg(c, 1));
    return 0;
}

static int delete_group(struct cli *c, struct det_err *err)
{
    JSON_OWN group = NULL;
    if (named_group(c, cli_arg(c, 0), &group, err) < 0)
        return CLI_FAILED;
    const char *name = json_str(group, "name", "");
    char *question det_cleanup(freep) =
        det_asprintf("Delete the user group %s and the roles that were given to it?", name);
    if (!o.yes && !cli_confirmed(question, "deleted", err))
        return CLI_FAILED;
    char *path det_cleanup(freep) = det_asprintf("/groups/%" PRId64, id_of(group));
    if (cli_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    printf("user group with name %s and ID %" PRId64 " deleted\n", name, id_of(group));
    return 0;
}

static const struct opt list_opts[] = {
    {"groups-user-belongs-to", 0, OPT_STR, &o.member, "NAME", "only those that this user is in"},
    {0},
};
static const struct opt create_opts[] = {
    {"add-user", 0, OPT_STR_LIST, &o.members, "NAME", "who is in it from the start; repeatable"},
    {0},
};
static const struct opt delete_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
static const struct verb verbs[] = {
    {"list", "ls", "", "all groups", list_opts, list_groups},
    {"create", NULL, "NAME", "a new one", create_opts, create_group},
    {"describe", NULL, "NAME", "who is in it", NULL, describe_group},
    {"add-user", NULL, "NAME USERS", "put users in (ann,bob)", NULL, add_user},
    {"remove-user", NULL, "NAME USERS", "take users out (ann,bob)", NULL, remove_user},
    {"change-name", NULL, "OLD NEW", "another name for it", NULL, change_name},
    {"delete", NULL, "NAME", "delete it, with the roles given to it", delete_opts, delete_group},
    {0},
};

const struct noun noun_group = {"user-group", "", NULL, "groups of users: members", verbs};
