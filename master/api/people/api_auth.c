/* Log in, log out, who am I. */
#include "api_handlers.h"
#include "api_util.h"
#include "audit.h"
#include "auth.h"
#include "db_users.h"
#include "shell.h"
#include <inttypes.h>
#include <string.h>

struct login_body {
    const char *username, *password;
    int is_hashed;
};
static const struct wire_field login_fields[] = {
    {"username", WIRE_STR, offsetof(struct login_body, username), 0, NULL},
    {"password", WIRE_STR, offsetof(struct login_body, password), 0, NULL},
    {"isHashed", WIRE_BOOL, offsetof(struct login_body, is_hashed), 0, NULL},
};

static void on_login(void *arg, const struct auth_login *ok, const struct det_err *err)
{
    struct api_call *c = arg;
    char cookie[AUTH_COOKIE_MAX];
    if (!ok) {
        http_fail_err(c->req, err);
        return;
    }
    audit_login(c->req, ok->user_id, ok->username);
    struct buf out = BUF_INIT; /* the token is hex */
    buf_addf(&out, "{\"token\":\"%s\"", ok->token);
    if (c->key)
        buf_addf(&out, ",\"user\":%s", ok->user_json);
    buf_add_ch(&out, '}');
    struct http_answer a = {.status = 200};
    if (c->key || http_query(c->req, "cookie")) {
        auth_cookie(c->sh, ok->token, cookie);
        a.cookie = cookie;
    }
    http_reply_with(c->req, &a, out.p, out.len);
    buf_finish(&out);
}

static void log_in(struct shell *sh, struct http_req *req, const char *user_key)
{
    struct login_body b = {.username = "", .password = ""};
    json_t *body;
    if (!api_decode(req, login_fields, DET_ARRAY_LEN(login_fields), &b, &body))
        return;
    struct api_call *c = api_call(sh, req);
    c->key = user_key;
    char address[HTTP_ADDRESS_MAX];
    const struct auth_attempt a = {b.username, b.password, b.is_hashed, http_address(req, address)};
    int64_t wait_ms = *b.username ? auth_login(sh, &a, on_login, c) : 0;
    if (!*b.username)
        http_fail(req, DET_EINVAL, "username is required");
    else if (wait_ms > 0)
        http_fail_later(req, (int)(wait_ms / 1000 + 1), "too many failed log-ins");
    json_decref(body);
}

void api_login(struct shell *sh, struct http_req *req)
{
    log_in(sh, req, "user");
}

void api_legacy_login(struct shell *sh, struct http_req *req)
{
    log_in(sh, req, NULL);
}

static void on_logout(void *arg, int rc, const struct det_err *err)
{
    struct api_call *c = arg;
    char cookie[AUTH_COOKIE_MAX];
    if (rc < 0) {
        http_fail_err(c->req, err);
        return;
    }
    auth_forget_session(c->sh->auth, c->req->who.session);
    http_drop(c->sh->http, &(struct http_ended){.session = c->req->who.session});
    auth_cookie(c->sh, "", cookie);
    http_reply_with(c->req, &(struct http_answer){.status = 200, .cookie = cookie}, "{}", 2);
}

void api_logout(struct shell *sh, struct http_req *req)
{
    if (req->who.kind != WHO_USER) {
        http_fail(req, DET_EINVAL, "a task's token cannot be logged out");
        return;
    }
    if (req->who.token_id) {
        http_fail(req, DET_EINVAL,
                  "an access token is not logged out but revoked: det token revoke "
                  "%" PRId64,
                  req->who.token_id);
        return;
    }
    db_session_delete(sh->db, req->who.session, on_logout, api_call(sh, req));
}

/* The row as {"user": doc}. */
static void on_user(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_failed(c->req, r))
        return;
    if (db_rows(r) == 0) {
        api_not_found(c->req);
        return;
    }
    struct buf out = BUF_INIT;
    buf_addf(&out, "{\"user\":%s}", db_text(r, 0, USER_JSON));
    http_reply_buf(c->req, 200, &out);
    buf_finish(&out);
}

void api_get_me(struct shell *sh, struct http_req *req)
{
    db_user_by_id(sh->db, req->who.user_id, on_user, api_call(sh, req));
}

void api_current_user(struct shell *sh, struct http_req *req)
{
    api_get_me(sh, req);
}

void api_get_user(struct shell *sh, struct http_req *req)
{
    int64_t id;
    if (api_id(req, "userId", &id))
        db_user_by_id(sh->db, id, on_user, api_call(sh, req));
}

void api_get_user_by_username(struct shell *sh, struct http_req *req)
{
    db_user_by_name(sh->db, http_param(req, "username"), on_user, api_call(sh, req));
}
