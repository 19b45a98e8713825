/* det token: access tokens, which programs use in place of a password. */
#include "cli.h"
#include "listing.h"
#include "named.h"
#include "show.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    int64_t days;
    const char *description;
    bool all;
} o;

static int create_token(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body = json_object();
    int64_t id = 0;
    if (cli_arg(c, 0) && named_user(c, cli_arg(c, 0), &id, err) < 0)
        return CLI_FAILED;
    if (id)
        json_set(body, "userId", json_integer(id));
    if (o.description)
        json_set(body, "description", json_string(o.description));
    if (o.days) {
        char *hours det_cleanup(freep) = det_asprintf("%" PRId64 "h", o.days * 24);
        json_set(body, "lifespan", json_string(hours));
    }
    if (cli_call(c, "POST", "/tokens", body, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    const json_t *info = json_obj(answer, "tokenInfo");
    fprintf(stderr, "token %" PRId64 ", good until %s; it is not shown again:\n",
            json_int(info, "id", 0), show_time(json_str(info, "expiry", NULL)));
    puts(json_str(answer, "token", ""));
    return 0;
}

static const char *state_of(const json_t *t)
{
    if (json_flag(t, "active", false))
        return "";
    return *json_str(t, "revokedAt", "") ? "revoked" : "ended";
}

static void token_row(struct table *t, const json_t *one)
{
    table_cell(t, "%" PRId64, json_int(one, "id", 0));
    table_cell(t, "%s", json_str(one, "username", ""));
    table_cell(t, "%s", json_str(one, "description", ""));
    table_cell(t, "%s", show_time(json_str(one, "createdAt", NULL)));
    table_cell(t, "%s", show_time(json_str(one, "expiry", NULL)));
    table_cell(t, "%s", show_time(json_str(one, "lastUsedAt", NULL)));
    table_cell(t, "%s", state_of(one));
}

static int list_tokens(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID",       "USER", "DESCRIPTION", "CREATED", "UNTIL",
                                        "LAST USED", ""};
    static const struct listing listing = {"tokenInfo", heads, DET_ARRAY_LEN(heads), token_row,
                                           "no tokens"};
    JSON_OWN answer = NULL;
    char *name det_cleanup(freep) = cli_escaped(cli_arg(c, 0) ? cli_arg(c, 0) : "");
    if (cli_get(c, &answer, err, "/tokens?showInactive=%s&username=%s", o.all ? "true" : "false",
                name) < 0)
        return CLI_FAILED;
    return listing_print(c, answer, &listing);
}

static int revoke_token(struct cli *c, struct det_err *err)
{
    int64_t id;
    if (cli_arg_id(c, 0, "TOKEN-ID", &id, err) < 0)
        return CLI_USAGE;
    JSON_OWN body = json_make("{s:b}", "setRevoked", 1);
    char *path det_cleanup(freep) = det_asprintf("/tokens/%" PRId64, id);
    if (cli_call(c, "PATCH", path, body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "token %" PRId64 " is revoked\n", id);
    return 0;
}

static const struct opt create_opts[] = {
    {"expiration-days", 'e', OPT_COUNT, &o.days, "N",
     "how long it is good; else as the master says"},
    {"description", 'd', OPT_STR, &o.description, "TEXT", "what it is for"},
    {0},
};
static const struct opt list_opts[] = {
    {"show-inactive", 0, OPT_FLAG, &o.all, NULL, "also what was revoked or has ended"},
    {0},
};
static const struct verb verbs[] = {
    {"create", NULL, "[USER]", "a new token, to be set as DET_USER_TOKEN", create_opts,
     create_token},
    {"list", "ls", "[USER]", "one's own; an administrator sees everybody's", list_opts,
     list_tokens},
    {"revoke", NULL, "TOKEN-ID", "end a token for good", NULL, revoke_token},
    {0},
};

const struct noun noun_token = {"token", "", NULL, "access tokens, for programs", verbs};
