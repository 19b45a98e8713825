/* Log-in: look the user up, verify off the loop, write the session, answer. */
#include "auth.h"
#include "auth_private.h"
#include "db_users.h"
#include "hash.h"
#include "mem.h"
#include "shell.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

enum { SESSION_DAYS = 7, SESSION_BYTES = 32 };

struct login {
    uv_work_t work;
    struct shell *sh;
    char *password, *stored, *user_json;
    char token[2 * SESSION_BYTES + 1];
    int64_t user_id;
    bool is_hashed, active, good;
    auth_login_cb *cb;
    void *arg;
};

static void login_end(struct login *l, int code, const char *text)
{
    struct det_err err;
    struct auth_login ok = {l->token, l->user_json, l->user_id};
    if (code)
        det_fail(&err, code, "%s", text);
    l->cb(l->arg, code ? NULL : &ok, code ? &err : NULL);
    free(l->password);
    free(l->stored);
    free(l->user_json);
    free(l);
}

static void on_session(void *arg, int rc, const struct det_err *err)
{
    login_end(arg, rc, err->text);
}

static void verify_work(uv_work_t *w)
{
    struct login *l = container_of(w, struct login, work);
    l->good = auth_verify_now(l->password, l->is_hashed, l->stored);
}

static void verify_done(uv_work_t *w, int status)
{
    struct login *l = container_of(w, struct login, work);
    if (status < 0 || (!l->good && !(l->user_id && !l->active && !l->stored))) {
        login_end(l, DET_EAUTH, "invalid credentials");
        return;
    }
    if (!l->active) {
        login_end(l, DET_EPERM, "user not active");
        return;
    }
    char hex[HASH_HEX_MAX];
    random_hex(l->token, SESSION_BYTES);
    hash_bytes(HASH_SHA256, l->token, strlen(l->token), hex);
    db_session_create(l->sh->db, hex, l->user_id, SESSION_DAYS, on_session, l);
}

static void on_user(void *arg, const struct db_result *r)
{
    struct login *l = arg;
    if (db_rc(r) < 0) {
        login_end(l, db_rc(r), db_error(r)->text);
        return;
    }
    if (db_rows(r) == 1) {
        l->user_id = db_i64(r, 0, USER_ID);
        l->active = db_bool(r, 0, USER_ACTIVE);
        l->stored =
            db_is_null(r, 0, USER_PASSWORD) ? NULL : det_strdup(db_text(r, 0, USER_PASSWORD));
        l->user_json = det_strdup(db_text(r, 0, USER_JSON));
    }
    uv_queue_work(l->sh->loop, &l->work, verify_work, verify_done);
}

void auth_login(struct shell *sh, const char *username, const char *password, bool is_hashed,
                auth_login_cb *cb, void *arg)
{
    struct login *l = det_zalloc(sizeof *l);
    l->sh = sh;
    l->password = det_strdup(password);
    l->is_hashed = is_hashed;
    l->cb = cb;
    l->arg = arg;
    db_user_by_name(sh->db, username, on_user, l);
}

void auth_cookie(const char *token, char out[AUTH_COOKIE_MAX])
{
    snprintf(out, AUTH_COOKIE_MAX, "auth=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict", token,
             *token ? SESSION_DAYS * 86400 : 0);
}
