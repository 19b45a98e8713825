#include "client.h"

#include "client_impl.h"
#include "clk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_FIRST_MS     100
#define PAUSE_MAX_MS       5000
#define RETRY_AFTER_MAX_MS 60000

struct client {
    struct client_conf conf;
    CURLM *multi; /* a multi handle even for one transfer: it can be woken, for client_cancel() */
    CURL *easy;
    atomic_bool is_canceled;
    unsigned seed; /* of the jitter */
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int client_create(const struct client_options *o, struct client **ret, struct det_err *err)
{
    pthread_once(&curl_once, init_curl);
    det_cleanup(client_destroyp) struct client *c = det_zalloc(sizeof *c);
    int rc = client_conf_init(&c->conf, o, err);
    if (rc < 0)
        return rc;
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    c->seed = (unsigned)clk_mono_us();
    if (!c->multi || !c->easy)
        return det_fail(err, DET_ENOMEM, "libcurl cannot start");
    *ret = det_take(c);
    return 0;
}

void client_destroy(struct client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    client_conf_finish(&c->conf);
    free(c);
}

int client_peer_chain(const struct client *c, struct buf *out, struct det_err *err)
{
    return client_conf_chain(&c->conf, out, err);
}

void client_shown_chain(const struct client *c, struct buf *out)
{
    client_add_certs(c->easy, out);
}

void client_set_token(struct client *c, enum client_token kind, const char *token)
{
    client_conf_set_token(&c->conf, kind, token);
}

const char *client_url(const struct client *c)
{
    return c->conf.addrs[0].base;
}

void client_cancel(struct client *c)
{
    atomic_store(&c->is_canceled, true);
    curl_multi_wakeup(c->multi);
}

void client_resp_finish(struct client_resp *r)
{
    buf_finish(&r->body);
    r->status = 0;
}

/* How long to wait for something to happen, given the stream's watchdog. */
static int wait_ms(const struct client_xfer *x, int64_t silence_ms)
{
    if (silence_ms <= 0)
        return 1000;
    int64_t left = x->last_byte_ms + silence_ms - clk_mono_ms();
    return left < 1 ? 1 : left > 1000 ? 1000 : (int)left;
}

static bool should_stop(struct client *c, struct client_xfer *x, int64_t silence_ms)
{
    if (atomic_load(&c->is_canceled))
        x->stop = det_fail(&x->err, DET_ECANCELED, "canceled");
    else if (silence_ms > 0 && clk_mono_ms() - x->last_byte_ms >= silence_ms && x->stop == 0)
        x->stop =
            det_fail(&x->err, DET_ETIMEOUT, "nothing came for %.1f s", (double)silence_ms / 1e3);
    return x->stop != 0;
}

/* Drives the handle to its end. */
static CURLcode perform_transfer(struct client *c, struct client_xfer *x, int64_t silence_ms)
{
    int running = 1, left;
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    curl_multi_add_handle(c->multi, c->easy);
    while (!should_stop(c, x, silence_ms)) {
        curl_multi_perform(c->multi, &running);
        if (!running)
            break;
        curl_multi_poll(c->multi, NULL, 0, wait_ms(x, silence_ms), NULL);
    }
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left)) != NULL;)
        if (m->msg == CURLMSG_DONE)
            code = m->data.result;
    curl_multi_remove_handle(c->multi, c->easy);
    return code;
}

/* Whether the failed attempt may be repeated; *ret_after_ms is what the server asked for, or 0. */
static bool may_repeat(struct client *c, const struct client_req *req, CURLcode code,
                       const struct client_xfer *x, int64_t *ret_after_ms)
{
    curl_off_t after = 0, connected = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &after);
    curl_easy_getinfo(c->easy, CURLINFO_CONNECT_TIME_T, &connected);
    *ret_after_ms = after > 60 ? RETRY_AFTER_MAX_MS : (int64_t)after * 1000;
    if (x->stop != 0)
        return false;
    switch ((int)code) { /* curl has a hundred */
    case CURLE_OK:
        return !req->once &&
               (x->resp->status == 502 || x->resp->status == 503 || x->resp->status == 504);
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST: return true;
    case CURLE_OPERATION_TIMEDOUT: return connected == 0;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR: return !req->once;
    default: return false;
    }
}

/* Doubles from 100 ms to 5 s; half of it is jitter, so that many clients do not come back at once.
 */
static int64_t pause_ms(struct client *c, int attempt, int64_t after_ms)
{
    int64_t full = attempt > 6 ? PAUSE_MAX_MS : (int64_t)PAUSE_FIRST_MS << attempt;
    if (full > PAUSE_MAX_MS)
        full = PAUSE_MAX_MS;
    full = full / 2 + rand_r(&c->seed) % (full / 2 + 1);
    return full < after_ms ? after_ms : full;
}

/* Waits ms, or until client_cancel(). */
static void pause_for(struct client *c, int64_t ms)
{
    int64_t until = clk_mono_ms() + ms;
    while (!atomic_load(&c->is_canceled) && clk_mono_ms() < until)
        curl_multi_poll(c->multi, NULL, 0, (int)(until - clk_mono_ms()), NULL);
}

static bool may_wait(const struct client *c, int attempt, int64_t begun_ms, int64_t wait)
{
    const struct client_options *o = &c->conf.o;
    if (o->retries >= 0 && attempt >= o->retries)
        return false;
    return o->retry_ms <= 0 || clk_mono_ms() + wait - begun_ms <= o->retry_ms;
}

static int call_with_retries(struct client *c, const struct client_req *req,
                             struct client_resp *resp, struct det_err *err)
{
    int64_t begun_ms = clk_mono_ms(), after_ms = 0;
    for (int attempt = 0;; attempt++) {
        struct client_xfer x;
        client_xfer_begin(&x, c->easy, &c->conf, req, resp);
        CURLcode code = perform_transfer(c, &x, 0);
        int rc = client_xfer_result(&x, code, req, err);
        bool again = rc < 0 && may_repeat(c, req, code, &x, &after_ms);
        client_xfer_finish(&x);
        client_conf_failed(&c->conf, x.addr, rc);
        /* The other masters are asked before there is a pause. */
        bool all_asked = (size_t)attempt % c->conf.addrs_n == c->conf.addrs_n - 1;
        int round = attempt / (int)c->conf.addrs_n;
        int64_t wait = all_asked ? pause_ms(c, round, after_ms) : 0;
        if (!again || !may_wait(c, round, begun_ms, wait))
            return rc;
        pause_for(c, wait);
    }
}

int client_call(struct client *c, const struct client_req *req, struct client_resp *resp,
                struct det_err *err)
{
    det_cleanup(client_resp_finish) struct client_resp own = CLIENT_RESP_INIT;
    return call_with_retries(c, req, resp ? resp : &own, err);
}

int client_json(struct client *c, const char *method, const char *path, const json_t *in,
                json_t **ret_out, struct det_err *err)
{
    det_cleanup(client_resp_finish) struct client_resp resp = CLIENT_RESP_INIT;
    det_cleanup(freep) char *body = in ? json_text(in) : NULL;
    struct client_req req = {.method = method, .path = path, .body = body};
    int rc = call_with_retries(c, &req, &resp, err);
    if (rc < 0 || !ret_out)
        return rc;
    *ret_out = json_parse(buf_str(&resp.body), resp.body.len, err);
    if (!*ret_out)
        return det_wrap(err, DET_ECORRUPT, "%s %s: the answer", client_req_method(&req), path);
    return 0;
}

int client_stream(struct client *c, const struct client_req *req, int64_t silence_ms,
                  int (*on_line)(void *arg, const char *line, size_t len, struct det_err *err),
                  void *arg, struct det_err *err)
{
    det_cleanup(client_resp_finish) struct client_resp resp = CLIENT_RESP_INIT;
    struct client_xfer x;
    client_xfer_begin(&x, c->easy, &c->conf, req, &resp);
    x.on_line = on_line;
    x.on_open = req->on_open;
    x.line_arg = arg;
    curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS,
                     (long)(req->timeout_ms > 0 ? req->timeout_ms : 0));
    CURLcode code = perform_transfer(c, &x, silence_ms);
    int rc = client_xfer_result(&x, code, req, err);
    client_xfer_finish(&x);
    client_conf_failed(&c->conf, x.addr, rc);
    return rc;
}
