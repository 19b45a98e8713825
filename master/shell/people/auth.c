#include "auth.h"
#include "auth_private.h"

#include "clk.h"
#include "driver.h"
#include "db_cluster.h"
#include "db_tokens.h"
#include "db_users.h"
#include "guard.h"
#include "hash.h"
#include "joins.h"
#include "lives.h"
#include "log.h"
#include "map.h"
#include "mem.h"
#include "rights.h"
#include "shell.h"
#include "strays.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>

enum { REMEMBER_MS = 60000, REMEMBER_MAX = 20000, PASSWORDS_MAX = 200 };
/* "A2:" and the leadership; "A1:" of before leaderships had nonces. */
#define ALLOC_OLD "A1:"
#define ALLOC_NEW "A2:"

struct session { /* remembered */
    int64_t until_ms;
    struct http_who who;
};
struct auth {
    struct shell *sh;
    char key[65], agent_token[65];
    EVP_MAC_CTX *mac;     /* of the key: to look HMAC up takes longer than to compute it */
    struct map *sessions; /* token's sha256 -> struct session */
    uint64_t turn;        /* raised whenever something is forgotten */
    struct slow *queue;   /* of work on passwords */
    struct guard *guard;
    struct notes notes;
};

int auth_work(struct auth *a, struct slow_job *j, struct det_err *err)
{
    if (slow_push(a->queue, j) == 0)
        return 0;
    return det_fail(err, DET_EUNAVAIL, "too many people log in at once; try again");
}

struct guard *auth_guard(struct auth *a)
{
    return a->guard;
}

void auth_note(struct auth *a, const char *what, const char *name, const char *address)
{
    int64_t more;
    if (!notes_may(&a->notes, clk_mono_ms(), &more))
        return;
    char left_out[64] = "";
    if (more > 0)
        snprintf(left_out, sizeof left_out, " (and %" PRId64 " more refusals before)", more);
    log_warning("refused %s '%.64s' from %s%s", what, name, address, left_out);
}

static EVP_MAC_CTX *mac_create(const char *key)
{
    char digest[] = "SHA256";
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *mac = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC_free(hmac);
    if (!mac || !EVP_MAC_init(mac, (const unsigned char *)key, strlen(key), params))
        abort(); /* OpenSSL without HMAC, or no memory */
    return mac;
}

struct auth *auth_create(struct shell *sh, const struct db_cluster *secrets)
{
    struct auth *a = det_zalloc(sizeof *a);
    a->sh = sh;
    snprintf(a->key, sizeof a->key, "%s", secrets->token_key);
    snprintf(a->agent_token, sizeof a->agent_token, "%s", secrets->agent_token);
    a->mac = mac_create(a->key);
    a->sessions = map_create();
    a->queue = slow_create(sh->loop, 1, PASSWORDS_MAX);
    a->guard = guard_create();
    return a;
}

static void sessions_drop(struct auth *a)
{
    const char *key;
    void *v;
    for (size_t it = 0; map_next(a->sessions, &it, &key, &v);)
        free(v);
    map_destroy(a->sessions);
}

void auth_drain(struct auth *a, void (*cb)(void *arg), void *arg)
{
    slow_drain(a->queue, cb, arg);
}

void auth_destroy(struct auth *a)
{
    if (!a)
        return;
    sessions_drop(a);
    EVP_MAC_CTX_free(a->mac);
    slow_destroy(a->queue);
    guard_destroy(a->guard);
    free(a);
}

void auth_forget_session(struct auth *a, const char *token_sha256)
{
    a->turn++;
    free(map_del(a->sessions, token_sha256));
}

/* Rare, so everybody is forgotten: the next request of each costs one query. */
void auth_forget_user(struct auth *a, int64_t user_id)
{
    a->turn++;
    sessions_drop(a);
    a->sessions = map_create();
}

/* Tokens in a request. */

static const char *skip_bearer(const char *v)
{
    return v && !strncasecmp(v, "Bearer ", 7) ? v + 7 : v;
}

static const char *token_find(const struct http_req *req, bool *ret_alloc)
{
    const char *t = http_header(req, "Grpc-Metadata-x-allocation-token");
    *ret_alloc = t && *t;
    if (*ret_alloc)
        return skip_bearer(t);
    t = http_header(req, "Authorization");
    if (!t || !*t)
        t = http_header(req, "Grpc-Metadata-x-user-token");
    if (!t || !*t)
        t = http_header(req, "Cookie:auth");
    t = skip_bearer(t);
    *ret_alloc = t && (!strncmp(t, ALLOC_NEW, strlen(ALLOC_NEW)) ||
                       !strncmp(t, ALLOC_OLD, strlen(ALLOC_OLD)));
    return t && *t ? t : NULL;
}

bool auth_has_token(const struct http_req *req)
{
    bool alloc;
    return token_find(req, &alloc) != NULL;
}

bool auth_has_certificate(const struct http_req *req)
{
    char print[65];
    return (req->route->auth & HTTP_AUTH_AGENT) && http_certificate(req, print);
}

bool auth_by_cookie(const struct http_req *req)
{
    bool alloc;
    const char *found = token_find(req, &alloc), *cookie = http_header(req, "Cookie:auth");
    return found && cookie && found == skip_bearer(cookie);
}

static void sign_text(const struct auth *a, const char *text, size_t n, char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t len = 0;
    if (!EVP_MAC_init(a->mac, NULL, 0, NULL) || /* with the key that it has */
        !EVP_MAC_update(a->mac, (const unsigned char *)text, n) ||
        !EVP_MAC_final(a->mac, mac, &len, sizeof mac))
        len = 0;
    for (size_t i = 0; i < len && i < 32; i++) { /* for each request of each task */
        *hex++ = digits[mac[i] >> 4];
        *hex++ = digits[mac[i] & 15];
    }
    *hex = 0;
}

void auth_alloc_token(const struct auth *a, const struct auth_claim *c, char out[AUTH_TOKEN_MAX])
{
    char hex[65] = "", mark[LIVES_MARK_MAX];
    int64_t epoch, batch;
    lives_now(a->sh->lives, &epoch, mark, &batch);
    int n = snprintf(out, AUTH_TOKEN_MAX - 66,
                     ALLOC_NEW "%" PRId64 ":%s:%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64
                               ":%" PRId64 ":%s:%s",
                     epoch, mark, batch, c->experiment_id, c->trial_id, c->run_id, c->user_id,
                     c->alloc_id, c->task_id);
    if (n < 0 || n >= AUTH_TOKEN_MAX - 66)
        abort(); /* ids are ours and short */
    sign_text(a, out, (size_t)n, hex);
    snprintf(out + n, 66, ":%s", hex);
}

/* What the mac covers; *ret_ours: of this database's past. */
static bool claim_parse(const struct auth *a, const char *token, struct http_who *who,
                        bool *ret_ours)
{
    int64_t epoch = 0, batch = 0;
    char mark[LIVES_MARK_MAX] = "";
    int at = 0;
    if (!strncmp(token, ALLOC_NEW, strlen(ALLOC_NEW)) &&
        sscanf(token, ALLOC_NEW "%" SCNd64 ":%8[^:]:%" SCNd64 "%n", &epoch, mark, &batch, &at) != 3)
        return false;
    const char *claim = token + (at ? at + 1 : (int)strlen(ALLOC_OLD));
    *ret_ours = lives_has(a->sh->lives, epoch, mark, batch);
    return sscanf(claim, "%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%" SCNd64 ":%95[^:]:%79[^:]:",
                  &who->experiment_id, &who->trial_id, &who->run_id, &who->user_id, who->alloc_id,
                  who->task_id) == 6;
}

static bool alloc_parse(const struct auth *a, const char *token, struct http_who *who,
                        bool *ret_ours)
{
    const char *mac = strrchr(token, ':');
    char hex[65] = "";
    if (!mac || strlen(token) >= AUTH_TOKEN_MAX || strlen(mac + 1) != 64)
        return false;
    sign_text(a, token, (size_t)(mac - token), hex);
    if (!hash_equal(hex, mac + 1))
        return false;
    who->kind = WHO_ALLOC;
    return claim_parse(a, token, who, ret_ours);
}

/* May this caller use the route? */
static void admit_caller(struct http_req *req,
                         void (*done)(struct http_req *, const struct det_err *))
{
    unsigned want = req->route->auth;
    const struct http_who *w = &req->who;
    bool ok = (w->kind == WHO_USER && (want & HTTP_AUTH_USER)) ||
              (w->kind == WHO_USER && (want & HTTP_AUTH_ADMIN) && w->is_admin) ||
              (w->kind == WHO_ALLOC && (want & HTTP_AUTH_ALLOC)) ||
              (w->kind == WHO_AGENT && (want & HTTP_AUTH_AGENT));
    struct det_err err;
    if (!ok)
        det_fail(&err, DET_EPERM, "%s",
                 w->kind == WHO_USER && (want & HTTP_AUTH_ADMIN)
                     ? "only an administrator may do this"
                     : "this kind of token may not do this");
    done(req, ok ? NULL : &err);
}

static void deny_caller(struct http_req *req,
                        void (*done)(struct http_req *, const struct det_err *), int code,
                        const char *text)
{
    struct det_err err;
    char address[HTTP_ADDRESS_MAX];
    if (code == DET_EAUTH)
        auth_note(req->sh->auth, "an unknown token at", req->path, http_address(req, address));
    det_fail(&err, code, "%s", text);
    done(req, &err);
}

struct lookup {
    struct auth *auth;
    struct http_req *req;
    uint64_t turn;
    void (*done)(struct http_req *, const struct det_err *);
};

static void remember_session(struct auth *a, const struct http_who *who)
{
    if (map_size(a->sessions) >= REMEMBER_MAX)
        auth_forget_user(a, 0);
    struct session *s = det_alloc(sizeof *s);
    int64_t until_ms = clk_mono_ms() + REMEMBER_MS;
    *s = (struct session){who->until_ms < until_ms ? who->until_ms : until_ms, *who};
    free(map_put(a->sessions, who->session, s));
}

static void on_session(void *arg, const struct db_result *r)
{
    struct lookup *l = arg;
    struct http_who *w = &l->req->who;
    if (db_rc(r) == 0 && l->turn != l->auth->turn) { /* it may have been ended after it was read */
        l->turn = l->auth->turn;
        db_user_by_session(l->auth->sh->db, w->session, on_session, l);
        return;
    }
    if (db_rc(r) < 0) {
        l->done(l->req, db_error(r));
    } else if (db_rows(r) != 1) {
        deny_caller(l->req, l->done, DET_EAUTH, "invalid credentials");
    } else if (!db_bool(r, 0, USER_ACTIVE)) {
        deny_caller(l->req, l->done, DET_EPERM, "user not active");
    } else {
        w->kind = WHO_USER;
        w->user_id = db_i64(r, 0, USER_ID);
        w->roles = (uint64_t)db_i64(r, 0, SESSION_ROLES);
        w->is_admin = db_bool(r, 0, USER_ADMIN) || (roles_rights(w->roles) & RIGHT_CLUSTER);
        snprintf(w->username, sizeof w->username, "%s", db_text(r, 0, USER_NAME));
        w->token_id = db_i64(r, 0, SESSION_TOKEN);
        if (w->token_id)
            db_token_used(l->auth->sh->db, w->token_id);
        w->until_ms = clk_mono_ms() + db_i64(r, 0, SESSION_LEFT_MS);
        remember_session(l->auth, w);
        admit_caller(l->req, l->done);
    }
    free(l);
}

static void check_user(struct auth *a, struct http_req *req, const char *token,
                       void (*done)(struct http_req *, const struct det_err *))
{
    char hex[HASH_HEX_MAX];
    hash_bytes(HASH_SHA256, token, strlen(token), hex);
    struct session *s = map_get(a->sessions, hex);
    if (s && s->until_ms > clk_mono_ms()) {
        req->who = s->who;
        admit_caller(req, done);
        return;
    }
    snprintf(req->who.session, sizeof req->who.session, "%.64s", hex);
    struct lookup *l = det_alloc(sizeof *l);
    *l = (struct lookup){a, req, a->turn, done};
    db_user_by_session(a->sh->db, hex, on_session, l);
}

/* A token reads as long as its allocation lives. What it still writes is another matter: lines and
 * reports that a dead rank left are sent after the end, and the fence judges them. */
static bool is_live(struct shell *sh, const char *alloc_id)
{
    struct core_alloc_view v;
    return core_alloc_get(driver_core(sh->driver), alloc_id, &v);
}

struct stray {
    struct http_req *req;
    void (*done)(struct http_req *, const struct det_err *);
};

static void on_kept(void *arg, const struct db_result *r)
{
    struct stray *s = arg;
    if (db_rc(r) == DET_EUNAVAIL)
        s->done(s->req, db_error(r));
    else
        deny_caller(
            s->req, s->done, DET_ESTALE,
            "this allocation is of another life of the cluster: its database was restored from an "
            "older copy, or there are two of it; what was sent is kept aside (det master strays)");
    free(s);
}

/* A genuine token, of another life: what it says is kept before it is refused. */
static void refuse_stray(struct shell *sh, struct http_req *req,
                         void (*done)(struct http_req *, const struct det_err *))
{
    struct stray *s = det_alloc(sizeof *s);
    *s = (struct stray){req, done};
    strays_keep_request(sh, req, on_kept, s);
}

static void check_alloc(struct auth *a, struct http_req *req, const char *token,
                        void (*done)(struct http_req *, const struct det_err *))
{
    bool ours;
    if (!alloc_parse(a, token, &req->who, &ours))
        deny_caller(req, done, DET_EAUTH, "invalid credentials");
    else if (!ours && req->method != HTTP_GET)
        refuse_stray(a->sh, req, done);
    else if (!ours)
        deny_caller(req, done, DET_ESTALE, "this allocation is of another life of the cluster");
    else if (req->method == HTTP_GET && !is_live(a->sh, req->who.alloc_id))
        deny_caller(req, done, DET_ESTALE, "the allocation of this token has ended");
    else
        admit_caller(req, done);
}

/* Whether the path speaks of the certificate's holder, or of none. */
static int check_name(const struct http_req *req, const char *holder, struct det_err *err)
{
    const char *named = strstr(req->route->pattern, "{agent}") ? http_param(req, "agent") : holder;
    if (!strcmp(named, holder))
        return 0;
    return det_fail(err, DET_EPERM,
                    "this certificate is agent %s's, who may not speak for another: start "
                    "det-agent with --id %s, or join under the other name (det agent join-token)",
                    holder, holder);
}

static void check_certificate(struct shell *sh, struct http_req *req, const char *print,
                              void (*done)(struct http_req *, const struct det_err *))
{
    struct det_err err;
    const char *holder;
    int rc = joins_holder(sh->joins, print, &holder, &err);
    if (rc == 0)
        rc = check_name(req, holder, &err);
    if (rc < 0) {
        char address[HTTP_ADDRESS_MAX];
        auth_note(sh->auth, "a certificate at", req->path, http_address(req, address));
        done(req, &err);
        return;
    }
    req->who.kind = WHO_AGENT;
    snprintf(req->who.agent_id, sizeof req->who.agent_id, "%s", holder);
    admit_caller(req, done);
}

/* The token is everybody's who has one: which names it is good for is another matter. */
static void check_shared(struct shell *sh, struct http_req *req,
                         void (*done)(struct http_req *, const struct det_err *))
{
    struct det_err err;
    bool named = strstr(req->route->pattern, "{agent}") != NULL;
    req->who.kind = WHO_AGENT;
    if (named && joins_may_share(sh->joins, http_param(req, "agent"), &err) < 0)
        done(req, &err);
    else
        admit_caller(req, done);
}

void auth_check(struct shell *sh, struct http_req *req,
                void (*done)(struct http_req *req, const struct det_err *err))
{
    struct auth *a = sh->auth;
    bool alloc;
    char print[65];
    const char *token = token_find(req, &alloc);
    req->who = (struct http_who){0};
    if (!token && auth_has_certificate(req)) {
        check_certificate(sh, req, http_certificate(req, print), done);
    } else if (!token) {
        deny_caller(req, done, DET_EAUTH, "token missing");
    } else if (alloc) {
        check_alloc(a, req, token, done);
    } else if (hash_equal(token, a->agent_token)) {
        check_shared(sh, req, done);
    } else {
        check_user(a, req, token, done);
    }
}
