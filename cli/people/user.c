/* det user */
#include "cli.h"
#include "listing.h"
#include "show.h"

#include "hash.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool admin;
    int64_t uid, gid;
    const char *user, *group, *fingerprint;
} o = {.uid = -1, .gid = -1};

static int login_user(struct cli *c, struct det_err *err)
{
    const char *name = cli_arg(c, 0) ? cli_arg(c, 0) : c->user;
    if (!name) {
        det_fail(err, DET_EINVAL, "det user login NAME: which user?");
        return CLI_USAGE;
    }
    c->fingerprint = o.fingerprint;
    if (session_open(c, err) < 0)
        return CLI_FAILED; /* before a password is asked for */
    char *prompt det_cleanup(freep) = det_asprintf("Password for %s: ", name);
    char *password det_cleanup(freep) = session_ask_password(prompt);
    if (session_login(c, name, password, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "logged in as %s\n", name);
    return 0;
}

static int logout_user(struct cli *c, struct det_err *err)
{
    return session_logout(c, err) < 0 ? CLI_FAILED : 0;
}

static int show_self(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/me") < 0)
        return CLI_FAILED;
    if (!cli_print_json(c, json_obj(answer, "user")))
        printf("%s%s\n", json_str(json_obj(answer, "user"), "username", ""),
               json_flag(json_obj(answer, "user"), "admin", false) ? " (administrator)" : "");
    return 0;
}

static void user_row(struct table *t, const json_t *u)
{
    table_cell(t, "%s", json_str(u, "username", ""));
    table_cell(t, "%s", json_str(u, "displayName", ""));
    table_cell(t, "%s", json_flag(u, "admin", false) ? "yes" : "");
    table_cell(t, "%s", json_flag(u, "active", false) ? "yes" : "no");
    table_cell(t, "%s", show_time(json_str(u, "lastAuthAt", NULL)));
}

static int list_users(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"USER", "NAME", "ADMIN", "ACTIVE", "LAST LOGIN"};
    static const struct listing listing = {"users", heads, DET_ARRAY_LEN(heads), user_row,
                                           "no users"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/users") < 0)
        return CLI_FAILED;
    return listing_print(c, answer, &listing);
}

static int find_user(struct cli *c, const char *name, int64_t *ret_id, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *escaped det_cleanup(freep) = cli_escaped(name ? name : "");
    int rc = name ? cli_get(c, &answer, err, "/users/%s/by-username", escaped)
                  : cli_get(c, &answer, err, "/me");
    if (rc == 0)
        *ret_id = json_int(json_obj(answer, "user"), "id", 0);
    return rc;
}

static int patch_user(struct cli *c, const char *name, json_t *change, struct det_err *err)
{
    int64_t id = 0;
    JSON_OWN body = change;
    int rc = find_user(c, name, &id, err);
    if (rc < 0)
        return CLI_FAILED;
    char *path det_cleanup(freep) = det_asprintf("/users/%" PRId64, id);
    return cli_call(c, "PATCH", path, body, NULL, err) < 0 ? CLI_FAILED : 0;
}

static int change_password(struct cli *c, struct det_err *err)
{
    char hashed[HASH_HEX_MAX];
    char *first det_cleanup(freep) = session_ask_password("New password: ");
    char *second det_cleanup(freep) = session_ask_password("Again: ");
    if (strcmp(first, second) != 0 || strlen(first) < 8) {
        det_fail(err, DET_EINVAL,
                 strcmp(first, second) ? "the two passwords differ"
                                       : "a password needs 8 characters or more");
        return CLI_FAILED;
    }
    session_hash_password(first, hashed);
    json_t *change = json_object();
    json_set(change, "password", json_string(hashed));
    json_set(change, "isHashed", json_true());
    int status = patch_user(c, cli_arg(c, 0), change, err);
    if (status == 0)
        fprintf(stderr, "the password is changed\n");
    return status;
}

static int create_user(struct cli *c, struct det_err *err)
{
    JSON_OWN body = json_make("{s:{s:s, s:b, s:b}}", "user", "username", cli_arg(c, 0), "active", 1,
                              "admin", o.admin);
    if (cli_call(c, "POST", "/users", body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "user %s created; det user change-password %s gives it a password\n",
            cli_arg(c, 0), cli_arg(c, 0));
    return 0;
}

static int activate_user(struct cli *c, struct det_err *err)
{
    return patch_user(c, cli_arg(c, 0), json_make("{s:b}", "active", 1), err);
}

static int deactivate_user(struct cli *c, struct det_err *err)
{
    return patch_user(c, cli_arg(c, 0), json_make("{s:b}", "active", 0), err);
}

static int link_with_agent_user(struct cli *c, struct det_err *err)
{
    if (o.uid < 0 || o.gid < 0 || !o.user || !o.group) {
        det_fail(err, DET_EINVAL,
                 "say all of --agent-uid, --agent-user, --agent-gid and --agent-group");
        return CLI_USAGE;
    }
    return patch_user(c, cli_arg(c, 0),
                      json_make("{s:{s:I,s:s,s:I,s:s}}", "agentUserGroup", "agentUid",
                                (json_int_t)o.uid, "agentUser", o.user, "agentGid",
                                (json_int_t)o.gid, "agentGroup", o.group),
                      err);
}

static const struct opt create_opts[] = {
    {"admin", 0, OPT_FLAG, &o.admin, NULL, "an administrator"},
    {0},
};
static const struct opt login_opts[] = {
    {"fingerprint", 0, OPT_STR, &o.fingerprint, "SHA256",
     "trust the authority that has this fingerprint for this master from now on"},
    {0},
};
static const struct opt link_opts[] = {
    {"agent-uid", 0, OPT_INT, &o.uid, "N", "the account's user id on the agents"},
    {"agent-user", 0, OPT_STR, &o.user, "NAME", "its name"},
    {"agent-gid", 0, OPT_INT, &o.gid, "N", "its group's id"},
    {"agent-group", 0, OPT_STR, &o.group, "NAME", "its group's name"},
    {0},
};
static const struct verb verbs[] = {
    {"login", NULL, "[NAME]", "log in and keep the token", login_opts, login_user},
    {"logout", NULL, "", "end the session", NULL, logout_user},
    {"whoami", NULL, "", "who the commands run as", NULL, show_self},
    {"list", "ls", "", "all users", NULL, list_users},
    {"create", NULL, "NAME", "a new user", create_opts, create_user},
    {"change-password", NULL, "[NAME]", "one's own password, or another's as administrator", NULL,
     change_password},
    {"link-with-agent-user", NULL, "NAME", "the account that runs his tasks on the agents",
     link_opts, link_with_agent_user},
    {"activate", NULL, "NAME", "let a user log in", NULL, activate_user},
    {"deactivate", NULL, "NAME", "let a user no longer log in", NULL, deactivate_user},
    {0},
};

const struct noun noun_user = {"user", "u", NULL, "users: log in, passwords, accounts", verbs};
