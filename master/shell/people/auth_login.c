/* Log-in: look the user up, verify off the loop, write the session, answer. */
#include "auth.h"
#include "auth_private.h"
#include "clk.h"
#include "db_users.h"
#include "guard.h"
#include "hash.h"
#include "mem.h"
#include "shell.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

enum { SESSION_BYTES = 32 };
_Static_assert(AUTH_SESSION_MAX == 2 * SESSION_BYTES + 1, "hex");

struct login {
    struct slow_job job;
    struct shell *sh;
    char *username, *address, *password, *stored, *user_json;
    char token[AUTH_SESSION_MAX];
    int64_t user_id;
    bool is_hashed, active, good;
    auth_login_cb *cb;
    void *arg;
};

static void login_end(struct login *l, int code, const char *text)
{
    struct det_err err;
    struct auth_login ok = {l->token, l->username, l->user_json, l->user_id};
    if (code)
        det_fail(&err, code, "%s", text);
    if (code == DET_EAUTH)
        auth_note(l->sh->auth, "a log-in as", l->username, l->address);
    else
        guard_forgive(auth_guard(l->sh->auth), l->username, l->address);
    l->cb(l->arg, code ? NULL : &ok, code ? &err : NULL);
    free(l->username);
    free(l->address);
    free(l->password);
    free(l->stored);
    free(l->user_json);
    free(l);
}

static void on_session(void *arg, int rc, const struct det_err *err)
{
    login_end(arg, rc, err->text);
}

static void verify_work(struct slow_job *job)
{
    struct login *l = container_of(job, struct login, job);
    l->good = auth_verify_now(l->password, l->is_hashed, l->stored);
}

void auth_session_new(char token[AUTH_SESSION_MAX], char sha256[AUTH_SESSION_MAX])
{
    char hex[HASH_HEX_MAX];
    random_hex(token, SESSION_BYTES);
    hash_bytes(HASH_SHA256, token, strlen(token), hex);
    memcpy(sha256, hex, AUTH_SESSION_MAX);
}

static void verify_done(struct slow_job *job, int status)
{
    struct login *l = container_of(job, struct login, job);
    if (status < 0 || !l->good) {
        login_end(l, DET_EAUTH, "invalid credentials");
        return;
    }
    if (!l->active) {
        login_end(l, DET_EPERM, "user not active");
        return;
    }
    char hex[AUTH_SESSION_MAX];
    auth_session_new(l->token, hex);
    db_session_create(l->sh->db, hex, l->user_id, AUTH_SESSION_DAYS, on_session, l);
}

/* Everybody knows that it is there, and clients of old try it first: until it is given a password
 * it is refused by name, which costs nothing. Of others nobody is told that they are there. */
static bool is_unused_default(const struct login *l)
{
    return l->user_id && !l->active && !l->stored && !strcmp(l->username, "determined");
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
    if (is_unused_default(l)) {
        login_end(l, DET_EPERM, "user not active");
        return;
    }
    struct det_err err;
    l->job = (struct slow_job){.work = verify_work, .done = verify_done};
    if (auth_work(l->sh->auth, &l->job, &err) < 0)
        login_end(l, err.code, err.text);
}

int64_t auth_login(struct shell *sh, const struct auth_attempt *a, auth_login_cb *cb, void *arg)
{
    int64_t wait_ms = guard_begin(auth_guard(sh->auth), a->username, a->address, clk_mono_ms());
    if (wait_ms > 0)
        return wait_ms;
    struct login *l = det_zalloc(sizeof *l);
    l->sh = sh;
    l->username = det_strdup(a->username);
    l->address = det_strdup(a->address);
    l->password = det_strdup(a->password);
    l->is_hashed = a->is_hashed;
    l->cb = cb;
    l->arg = arg;
    db_user_by_name(sh->db, a->username, on_user, l);
    return 0;
}

void auth_cookie(struct shell *sh, const char *token, char out[AUTH_COOKIE_MAX])
{
    snprintf(out, AUTH_COOKIE_MAX, "auth=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s",
             token, *token ? AUTH_SESSION_DAYS * 86400 : 0,
             http_is_tls(sh->http) ? "; Secure" : "");
}
