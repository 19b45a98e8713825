/*
 * Who calls: sessions of users, allocation tokens, agents' certificates and their token; passwords.
 *
 * A session is 32 random bytes, shown once; the table keeps their sha256; it lives 7 days. Sessions
 * seen are remembered for a minute, so that a request costs no query and PostgreSQL's absence locks
 * nobody out. An allocation's token is a claim signed with the cluster's key (HMAC-SHA256): checked
 * without the database. Passwords are stored as argon2id over what the client sends
 * (docs/contract/trial.md 5); hashing runs in threads of its own, one at a time.
 *
 * The files of this folder:
 *   auth.c: sessions, tokens, who calls
 *   auth_login.c: log-in
 *   auth_password.c: argon2id
 *   origins.c: where new experiments belong, remembered
 */
#ifndef SHELL_AUTH_H
#define SHELL_AUTH_H

#include "http.h"

struct auth;
struct db_cluster;
struct auth *auth_create(struct shell *sh, const struct db_cluster *secrets);
/* For the end: slow_drain() of the work on passwords. */
void auth_drain(struct auth *a, void (*cb)(void *arg), void *arg);
void auth_destroy(struct auth *a);

/* True when the request carries any token. */
bool auth_has_token(const struct http_req *req);
/* True when its client has shown a certificate and the route is the agents'. */
bool auth_has_certificate(const struct http_req *req);
/* True when that is the session's cookie, which a browser sends by itself. */
bool auth_by_cookie(const struct http_req *req);
/* Finds out who calls and whether the route's classes admit them; fills req->who. done runs once,
 * now or later; err is NULL when admitted. */
void auth_check(struct shell *sh, struct http_req *req,
                void (*done)(struct http_req *req, const struct det_err *err));

struct auth_claim { /* what an allocation's token is bound to */
    int64_t experiment_id, trial_id, run_id, user_id;
    const char *alloc_id, *task_id;
};
#define AUTH_TOKEN_MAX 384
void auth_alloc_token(const struct auth *a, const struct auth_claim *c, char out[AUTH_TOKEN_MAX]);

/* Log in: cb once, later, or (not 0) so many ms are to pass before this name or address may try
 * again, and cb is not called. password as sent; is_hashed false: the client's transformation is
 * done here first. On success token is the new session's and user_json the user.v1.User; a code
 * otherwise: DET_EAUTH (unknown user, wrong password), DET_EPERM (inactive), DET_EUNAVAIL. Strings
 * live until cb returns. */
struct auth_login {
    const char *token, *username, *user_json;
    int64_t user_id;
};
typedef void auth_login_cb(void *arg, const struct auth_login *ok, const struct det_err *err);
struct auth_attempt {
    const char *username, *password;
    bool is_hashed;
    const char *address; /* the client's */
};
int64_t auth_login(struct shell *sh, const struct auth_attempt *a, auth_login_cb *cb, void *arg);
/* A new session's token and what is kept of it. */
#define AUTH_SESSION_MAX 65
enum { AUTH_SESSION_DAYS = 7 };
void auth_session_new(char token[AUTH_SESSION_MAX], char sha256[AUTH_SESSION_MAX]);
#define AUTH_COOKIE_MAX 256
/* The Set-Cookie value of a session; an empty token clears it. Over TLS it is for TLS only. */
void auth_cookie(struct shell *sh, const char *token, char out[AUTH_COOKIE_MAX]);

/* argon2id of a password as sent. text is NULL on failure. */
typedef void auth_hash_cb(void *arg, const char *text);
void auth_hash(struct shell *sh, const char *password, bool is_hashed, auth_hash_cb *cb, void *arg);
/* The same, blocking: for the first start. */
#define AUTH_HASH_MAX 160
DET_MUST int auth_hash_now(const char *password, bool is_hashed, char out[AUTH_HASH_MAX],
                           struct det_err *err);

/* Forgets remembered sessions: after a user, a password or a session changed. */
void auth_forget_user(struct auth *a, int64_t user_id);
void auth_forget_session(struct auth *a, const char *token_sha256);

/* "refused: WHAT from ADDRESS", with the text in what bounded; not more of them than a log can
 * bear. */
void auth_note(struct auth *a, const char *what, const char *name, const char *address);

#endif
