#include "enrol.h"

#include "certkey.h"
#include "clk.h"
#include "fsx.h"
#include "hash.h"
#include "json.h"
#include "log.h"
#include "mem.h"
#include "notify.h"
#include "pem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MAX_S = 60, EXTEND_S = 90 };

/* ---- joining ---- */

/* In the chain of the first master that answers. */
static int find_authority(const struct agentopts *o, const char *print, char **ret,
                          struct det_err *err)
{
    det_cleanup(freep) char *list = det_strdup(o->master);
    int rc = DET_EUNAVAIL;
    for (char *rest = list, *one; rc == DET_EUNAVAIL && (one = strsep(&rest, ","));) {
        det_cleanup(buf_finish) struct buf chain = BUF_INIT;
        det_cleanup(client_destroyp) struct client *c = NULL;
        rc =
            client_create(&(struct client_options){.url = one, .cert_name = o->cert_name}, &c, err);
        if (rc == 0)
            rc = client_peer_chain(c, &chain, err);
        if (rc == 0 && !(*ret = pem_find(buf_str(&chain), print)))
            rc = det_fail(err, DET_EAUTH,
                          "WHO ANSWERS AT %s IS NOT THE MASTER THAT MADE THE JOIN TOKEN. Somebody "
                          "may stand between, or the token is another cluster's; nothing was sent",
                          one);
    }
    return rc;
}

static int ask_certificate(struct client *c, const struct agentopts *o, const char *secret,
                           const char *request, char **ret_cert, struct det_err *err)
{
    JSON_OWN in = json_make("{s:s, s:s}", "token", secret, "request", request);
    JSON_OWN out = NULL;
    det_cleanup(freep) char *path = det_asprintf("/agent/v1/%s/join", o->id);
    int rc = client_json(c, "POST", path, in, &out, err);
    if (rc < 0)
        return rc;
    *ret_cert = det_strdup(json_str(out, "certificate", ""));
    return 0;
}

/* Of the key that waits, if it waits for this token's certificate. */
static int prepare_request(struct identity *id, const char *digest, struct buf *request,
                           struct det_err *err)
{
    det_cleanup(buf_finish) struct buf key = BUF_INIT;
    if (id->key && !id->cert && id->token && strcmp(id->token, digest) == 0)
        return certkey_request(id->key, request, err);
    int rc = certkey_make(&key, request, err);
    if (rc == 0)
        rc = identity_prepare(id, buf_str(&key), digest, err);
    if (key.p)
        explicit_bzero(key.p, key.len);
    return rc;
}

static int join_cluster(struct identity *id, const struct agentopts *o, const struct join_token *t,
                        const char *digest, struct det_err *err)
{
    det_cleanup(freep) char *authority = NULL, *cert = NULL;
    det_cleanup(buf_finish) struct buf request = BUF_INIT;
    det_cleanup(client_destroyp) struct client *c = NULL;
    int rc = o->ca_file ? 0 : find_authority(o, t->fingerprint, &authority, err);
    struct client_options want = {
        .url = o->master, .ca_file = o->ca_file, .authority = authority, .cert_name = o->cert_name};
    if (rc == 0)
        rc = client_create(&want, &c, err);
    if (rc == 0)
        rc = prepare_request(id, digest, &request, err);
    if (rc == 0 && authority)
        rc =
            fsx_write_atomic(AT_FDCWD, id->authority_path, authority, strlen(authority), 0644, err);
    if (rc == 0)
        rc = ask_certificate(c, o, t->secret, buf_str(&request), &cert, err);
    return rc == 0 ? identity_take(id, NULL, cert, err) : rc;
}

static int try_once(struct identity *id, const struct agentopts *o, struct det_err *err)
{
    struct join_token t;
    char digest[HASH_HEX_MAX];
    if (!o->join_token)
        return 0;
    if (join_token_read(o->join_token, &t, err) < 0)
        return det_wrap(err, DET_EINVAL, "--join-token");
    hash_bytes(HASH_SHA256, t.secret, strlen(t.secret), digest);
    if (id->cert && id->token && strcmp(id->token, digest) == 0)
        return 0; /* done at an earlier start */
    if (strncmp(o->master, "https:", 6) != 0)
        return det_fail(err, DET_EINVAL,
                        "--join-token is for a master at https://, and --master is %s", o->master);
    int rc = join_cluster(id, o, &t, digest, err);
    explicit_bzero(&t, sizeof t);
    if (rc < 0)
        return det_wrap(err, rc, "join the cluster as agent %s", o->id);
    log_info("joined the cluster as agent %s", o->id);
    return 0;
}

/* A reason once, however often it is met. */
static void log_new_reason(char **told, const struct det_err *err)
{
    if (*told && strcmp(*told, err->text) == 0)
        return;
    log_error("%s; it is tried again, with growing pauses", err->text);
    free(*told);
    *told = det_strdup(err->text);
}

/* The manager would start us again each second for good, and take a start without a word for a
 * hang. SIGTERM, which nobody catches yet, ends the wait. */
int enrol(struct identity *id, const struct agentopts *o, struct det_err *err)
{
    det_cleanup(freep) char *told = NULL;
    char state[128];
    for (unsigned pause_s = 1;; pause_s = 2 * pause_s < PAUSE_MAX_S ? 2 * pause_s : PAUSE_MAX_S) {
        int rc = try_once(id, o, err);
        if (rc == 0 || !notify_is_asked())
            return rc;
        log_new_reason(&told, err);
        snprintf(state, sizeof state,
                 "EXTEND_TIMEOUT_USEC=%u000000\nSTATUS=not joined yet; tried again in %u s",
                 pause_s + EXTEND_S, pause_s);
        notify_manager(state);
        sleep(pause_s);
    }
}

/* ---- renewal ---- */

struct renewal {
    struct client_uv *http;
    struct identity *id;
    uv_timer_t timer;
    struct client_uv_call *call;
    char *path;
    struct buf key; /* that the request under way is for */
    bool is_late;   /* the log has it */
};

static void key_forget(struct renewal *r)
{
    if (r->key.p)
        explicit_bzero(r->key.p, r->key.len);
    buf_finish(&r->key);
}

static void on_timer(uv_timer_t *t);

static void look_again(struct renewal *r)
{
    int64_t ms = cert_look_ms(&r->id->dates, clk_wall_us() / 1000000);
    uv_timer_start(&r->timer, on_timer, (uint64_t)ms, 0);
}

static void on_answer(void *arg, int rc, const struct client_resp *resp, const struct det_err *e)
{
    struct renewal *r = arg;
    struct det_err err = *e;
    r->call = NULL;
    JSON_OWN j = rc == 0 ? json_parse(buf_str(&resp->body), resp->body.len, &err) : NULL;
    if (rc == 0)
        rc = identity_take(r->id, buf_str(&r->key), json_str(j, "certificate", ""), &err);
    if (rc == 0) {
        client_uv_set_certificate(r->http, r->id->cert, r->id->key);
        log_info("this agent has a new certificate");
        if (identity_follow(r->id, json_str(j, "authority", ""), &err) < 0)
            log_error("%s", err.text);
    } else if (!r->is_late) {
        log_warning("this agent's certificate could not be renewed yet: %s", err.text);
    }
    r->is_late = rc < 0;
    key_forget(r);
    look_again(r);
}

static void ask_anew(struct renewal *r)
{
    det_cleanup(buf_finish) struct buf request = BUF_INIT;
    struct det_err err;
    if (certkey_make(&r->key, &request, &err) < 0) {
        log_error("%s", err.text);
        look_again(r);
        return;
    }
    JSON_OWN j = json_make("{s:s}", "request", buf_str(&request));
    det_cleanup(freep) char *body = json_text(j);
    struct client_req req = {.method = "POST", .path = r->path, .body = body};
    r->call = client_uv_start(r->http, &req, on_answer, r);
}

static void on_timer(uv_timer_t *t)
{
    struct renewal *r = container_of(t, struct renewal, timer);
    enum cert_state s = cert_state(&r->id->dates, false, clk_wall_us() / 1000000);
    if (s == CERT_DUE)
        ask_anew(r);
    else
        look_again(r);
}

struct renewal *renewal_create(uv_loop_t *loop, struct client_uv *http, struct identity *id,
                               const char *agent_id)
{
    if (!id->cert)
        return NULL;
    struct renewal *r = det_zalloc(sizeof *r);
    *r = (struct renewal){.http = http, .id = id};
    r->path = det_asprintf("/agent/v1/%s/certificate", agent_id);
    if (cert_state(&id->dates, false, clk_wall_us() / 1000000) == CERT_EXPIRED)
        log_error("the certificate of this agent has expired: det agent join-token %s makes a "
                  "token to join anew",
                  agent_id);
    uv_timer_init(loop, &r->timer);
    look_again(r);
    return r;
}

void renewal_now(struct renewal *r)
{
    if (!r || r->call)
        return;
    uv_timer_stop(&r->timer);
    ask_anew(r);
}

static void on_closed(uv_handle_t *h)
{
    struct renewal *r = h->data;
    key_forget(r);
    free(r->path);
    free(r);
}

void renewal_close(struct renewal *r)
{
    if (!r)
        return;
    client_uv_cancel(r->call);
    r->timer.data = r;
    uv_close((uv_handle_t *)&r->timer, on_closed);
}
