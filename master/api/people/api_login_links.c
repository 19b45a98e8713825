/* Links that sign a browser in: made by a session, good once and for ten minutes. The database
 * keeps a link's hash; what a link is exchanged for is a session of its own, as a cookie only. */
#include "api_handlers.h"
#include "api_util.h"
#include "audit.h"
#include "auth.h"
#include "db_users.h"
#include "hash.h"
#include "shell.h"
#include "uuid.h"

#include <string.h>

enum { LINK_BYTES = 32, LINK_S = 600 };

struct make_call {
    struct http_req *req;
    char token[2 * LINK_BYTES + 1], sha256[HASH_HEX_MAX];
};

static void on_made(void *arg, const struct db_result *r)
{
    struct make_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_EAUTH, "this session has ended");
        return;
    }
    json_t *answer = json_make("{s:s, s:s}", "token", c->token, "expiresAt", db_text(r, 0, 0));
    json_set(answer, "path", json_sprintf("/?t=%s", c->token));
    api_reply_json(c->req, answer);
}

void api_make_login_link(struct shell *sh, struct http_req *req)
{
    if (req->who.token_id) {
        http_fail(req, DET_EPERM,
                  "an access token makes no link that signs in: ask with a session "
                  "(det user login)");
        return;
    }
    struct make_call *c = http_mem(req, sizeof *c);
    c->req = req;
    random_hex(c->token, LINK_BYTES);
    hash_bytes(HASH_SHA256, c->token, strlen(c->token), c->sha256);
    db_login_link_create(sh->db, c->sha256, req->who.session, LINK_S, on_made, c);
}

struct use_call {
    struct http_req *req;
    char session[AUTH_SESSION_MAX];
};

static void on_used(void *arg, const struct db_result *r)
{
    struct use_call *c = arg;
    char cookie[AUTH_COOKIE_MAX];
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        http_fail(c->req, DET_EAUTH,
                  "this link signs nobody in any more: it is good once, for ten "
                  "minutes; det auth link makes another");
        return;
    }
    audit_login(c->req, db_i64(r, 0, USER_ID), db_text(r, 0, USER_NAME));
    auth_cookie(c->req->sh, c->session, cookie);
    struct buf out = BUF_INIT;
    buf_addf(&out, "{\"user\":%s}", db_text(r, 0, USER_JSON));
    http_reply_with(c->req, &(struct http_answer){.status = 200, .cookie = cookie}, out.p, out.len);
    buf_finish(&out);
}

struct use_body {
    const char *token;
};
static const struct wire_field use_fields[] = {
    {"token", WIRE_STR, offsetof(struct use_body, token), 0, NULL},
};

void api_exchange_login_link(struct shell *sh, struct http_req *req)
{
    struct use_body b = {.token = ""};
    json_t *given;
    if (!api_decode(req, use_fields, DET_ARRAY_LEN(use_fields), &b, &given))
        return;
    JSON_OWN body = given;
    if (!b.token || !*b.token) {
        http_fail(req, DET_EINVAL, "token is required");
        return;
    }
    struct use_call *c = http_mem(req, sizeof *c);
    char link[HASH_HEX_MAX], session[AUTH_SESSION_MAX];
    c->req = req;
    auth_session_new(c->session, session);
    hash_bytes(HASH_SHA256, b.token, strlen(b.token), link);
    db_login_link_use(sh->db, link, session, AUTH_SESSION_DAYS, on_used, c);
}
