/* Personal access tokens: what a person gives to programs instead of a password. The token itself
 * is answered once; the database keeps its hash. */
#include "access.h"
#include "api_handlers.h"
#include "api_util.h"
#include "auth.h"
#include "db_tokens.h"
#include "hash.h"
#include "masterconf.h"
#include "shell.h"
#include "uuid.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKEN_BYTES = 32, DESCRIPTION_MAX = 200, DAY_S = 86400 };
#define TOKEN_PREFIX "det_" /* for those who look for secrets in what others publish */

struct create_call {
    struct http_req *req;
    struct db_token in;
    char token[sizeof TOKEN_PREFIX + 2 * TOKEN_BYTES], sha256[HASH_HEX_MAX];
};

static void on_created(void *arg, const struct db_result *r)
{
    struct create_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_ESTATE,
                  "this user has %d tokens that are good: revoke those that are of no use "
                  "(det token list, det token revoke ID)",
                  TOKENS_LIVE_MAX);
        return;
    }
    json_t *answer = json_parse(db_text(r, 0, 0), db_text_len(r, 0, 0), NULL);
    json_set(answer, "token", json_string(c->token));
    api_reply_json(c->req, answer);
}

static void create_token(void *arg)
{
    struct create_call *c = arg;
    memcpy(c->token, TOKEN_PREFIX, sizeof TOKEN_PREFIX);
    random_hex(c->token + strlen(TOKEN_PREFIX), TOKEN_BYTES);
    hash_bytes(HASH_SHA256, c->token, strlen(c->token), c->sha256);
    c->in.sha256 = c->sha256;
    db_token_create(c->req->sh->db, &c->in, on_created, c);
}

/* "720h", as Determined's clients say it; absent: the default. */
static int lifespan_read(const struct masterconf *conf, const char *text, int64_t *ret_s,
                         struct det_err *err)
{
    int64_t most = conf->token_max_days * DAY_S, hours = 0;
    int end = 0;
    *ret_s = conf->token_default_days * DAY_S;
    if (text && *text) {
        if (sscanf(text, "%9" SCNd64 "h%n", &hours, &end) != 1 || end == 0 || text[end] ||
            hours <= 0)
            return det_fail(err, DET_EINVAL,
                            "lifespan: \"%.40s\"; expected a number of hours, as 720h", text);
        *ret_s = hours * 3600;
    }
    if (*ret_s > most)
        return det_fail(err, DET_EINVAL,
                        "lifespan: %" PRId64 " days at most (the master's setting "
                        "security.token.max_lifespan_days)",
                        conf->token_max_days);
    return 0;
}

static bool description_ok(struct http_req *req, const char *s)
{
    if (!s || strlen(s) <= DESCRIPTION_MAX)
        return true;
    http_fail(req, DET_EINVAL, "description: %d bytes at most", DESCRIPTION_MAX);
    return false;
}

struct create_body {
    int64_t user_id;
    const char *lifespan, *description;
};
static const struct wire_field create_fields[] = {
    {"userId", WIRE_I32, offsetof(struct create_body, user_id), 0, NULL},
    {"lifespan", WIRE_STR, offsetof(struct create_body, lifespan), 0, NULL},
    {"description", WIRE_STR, offsetof(struct create_body, description), 0, NULL},
};

void api_post_token(struct shell *sh, struct http_req *req)
{
    struct create_body b = {.description = ""};
    struct det_err err;
    json_t *given;
    if (!api_decode(req, create_fields, DET_ARRAY_LEN(create_fields), &b, &given))
        return;
    JSON_OWN body = given;
    struct create_call *c = http_mem(req, sizeof *c);
    c->req = req;
    c->in.user_id = b.user_id ? b.user_id : req->who.user_id;
    c->in.description = http_strdup(req, b.description);
    if (!description_ok(req, b.description))
        return;
    if (lifespan_read(sh->conf, b.lifespan, &c->in.lifespan_s, &err) < 0)
        http_fail_err(req, &err);
    else
        access_ask_one(
            req, &(struct access_one){&rules_all[ROUTE_post_token], SUBJECT_USER, create_token, c},
            c->in.user_id);
}

static void on_list(void *arg, const struct db_result *r)
{
    api_reply_list(arg, r, NULL, true);
}

/* One's own; an administrator sees everybody's. */
void api_get_tokens(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    const char *name = http_query(req, "username");
    struct db_token_filter f = {.user_id = req->who.is_admin ? 0 : req->who.user_id,
                                .username = name && *name ? name : NULL};
    int ended;
    c->key = "tokenInfo";
    if (!api_page(req, NULL, &c->page) || !api_query_flag(req, "showInactive", &ended))
        return;
    f.also_ended = ended == 1;
    db_token_list(sh->db, &f, &c->page, on_list, c);
}

static void on_edited(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    auth_forget_user(c->sh->auth, 0);
    if (c->id)
        http_drop(c->sh->http, &(struct http_ended){.token_id = c->id});
    api_reply_doc(c->req, r);
}

struct edit_body {
    const char *description;
    int revoke;
};
static const struct wire_field edit_fields[] = {
    {"description", WIRE_STR, offsetof(struct edit_body, description), 0, NULL},
    {"setRevoked", WIRE_BOOL, offsetof(struct edit_body, revoke), 0, NULL},
};

void api_patch_token(struct shell *sh, struct http_req *req)
{
    struct edit_body b = {0};
    int64_t id;
    json_t *given;
    if (!api_id(req, "tokenId", &id) ||
        !api_decode(req, edit_fields, DET_ARRAY_LEN(edit_fields), &b, &given))
        return;
    JSON_OWN body = given;
    struct api_call *c = api_call(sh, req);
    c->id = b.revoke == 1 ? id : 0;
    if (description_ok(req, b.description))
        db_token_edit(sh->db, id, b.description, b.revoke == 1, on_edited, c);
}
