#include "client_uv.h"

#include "client_impl.h"
#include "clk.h"
#include "vec.h"

#include <string.h>

#define WATCH_MS 250

struct client_uv_call {
    struct client_uv *u;
    struct client_uv_call *next, **link; /* in u->calls */
    CURL *easy;
    struct client_xfer xfer;
    struct client_resp resp;
    struct client_req req; /* strings and body owned */
    int64_t silence_ms;
    client_uv_done *done;
    client_line_fn *line;
    void *arg;
    bool is_canceled, is_added;
};

struct client_uv {
    uv_loop_t *loop;
    struct client_conf conf;
    CURLM *multi;
    uv_timer_t timer, watch; /* curl's time-out; silent streams */
    struct client_uv_call *calls;
    VEC(CURL *) idle; /* easy handles to use again */
    size_t handles;   /* of libuv, not yet closed */
    int depth;        /* > 0: inside curl, where no exchange may be taken away */
    bool is_closing;
};

struct sock {
    uv_poll_t poll;
    struct client_uv *u;
    curl_socket_t fd;
};

static void maybe_free(struct client_uv *u)
{
    if (u->handles > 0 || !u->is_closing)
        return;
    client_conf_finish(&u->conf);
    vec_free(&u->idle);
    free(u);
}

/* Takes it off the list and out of curl; after this the owner may close the client. */
static void call_detach(struct client_uv_call *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    curl_multi_remove_handle(c->u->multi, c->easy);
}

static void call_release(struct client_uv_call *c)
{
    client_xfer_finish(&c->xfer);
    if (c->u->is_closing || c->u->idle.n >= 8)
        curl_easy_cleanup(c->easy);
    else
        vec_push(&c->u->idle, c->easy);
    client_resp_finish(&c->resp);
    free((char *)c->req.method);
    free((char *)c->req.path);
    free((char *)c->req.query);
    free((void *)c->req.body);
    free(c);
}

static void call_free(struct client_uv_call *c)
{
    call_detach(c);
    call_release(c);
}

static void call_finish(struct client_uv_call *c, CURLcode code)
{
    struct det_err err = {0};
    int rc = c->is_canceled ? 0 : client_xfer_result(&c->xfer, code, &c->req, &err);
    client_conf_failed(&c->u->conf, c->xfer.addr, rc);
    call_detach(c);
    if (!c->is_canceled) {
        c->is_canceled = true; /* done() may try */
        c->done(c->arg, rc, &c->resp, &err);
    }
    call_release(c);
}

static void add_waiting(struct client_uv *u)
{
    for (struct client_uv_call *c = u->depth == 0 ? u->calls : NULL; c; c = c->next) {
        if (!c->is_added)
            curl_multi_add_handle(u->multi, c->easy);
        c->is_added = true;
    }
}

/* What could not be done inside curl: exchanges that ended or were canceled, and new ones. */
static void sweep_calls(struct client_uv *u)
{
    CURLMsg *m;
    int left;
    add_waiting(u);
    while (u->depth == 0 && !u->is_closing && (m = curl_multi_info_read(u->multi, &left)) != NULL) {
        struct client_uv_call *c = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c);
        call_finish(c, m->data.result);
    }
}

static void act_on_socket(struct client_uv *u, curl_socket_t fd, int events)
{
    int running;
    u->depth++;
    curl_multi_socket_action(u->multi, fd, events, &running);
    u->depth--;
    sweep_calls(u);
}

static void on_timer(uv_timer_t *t)
{
    act_on_socket(container_of(t, struct client_uv, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *m, long timeout_ms, void *arg)
{
    struct client_uv *u = arg;
    if (u->is_closing)
        return 0;
    if (timeout_ms < 0)
        uv_timer_stop(&u->timer);
    else
        uv_timer_start(&u->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void on_ready(uv_poll_t *p, int status, int events)
{
    struct sock *s = container_of(p, struct sock, poll);
    int what = status < 0 ? CURL_CSELECT_ERR : 0;
    what |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    what |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    act_on_socket(s->u, s->fd, what);
}

static void on_sock_closed(uv_handle_t *h)
{
    struct sock *s = container_of((uv_poll_t *)h, struct sock, poll);
    s->u->handles--;
    maybe_free(s->u);
    free(s);
}

static struct sock *sock_create(struct client_uv *u, curl_socket_t fd)
{
    struct sock *s = det_zalloc(sizeof *s);
    s->u = u;
    s->fd = fd;
    if (uv_poll_init_socket(u->loop, &s->poll, fd) < 0)
        abort(); /* a socket of curl's that epoll does not take */
    u->handles++;
    curl_multi_assign(u->multi, fd, s);
    return s;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct client_uv *u = arg;
    struct sock *s = known;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            uv_poll_stop(&s->poll);
            curl_multi_assign(u->multi, fd, NULL);
            uv_close((uv_handle_t *)&s->poll, on_sock_closed);
        }
        return 0;
    }
    if (!s)
        s = sock_create(u, fd);
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    uv_poll_start(&s->poll, events, on_ready);
    return 0;
}

static void on_watch(uv_timer_t *t)
{
    struct client_uv *u = container_of(t, struct client_uv, watch);
    int64_t now = clk_mono_ms();
    bool any = false;
    for (struct client_uv_call *c = u->calls, *next; c; c = next) {
        next = c->next;
        any = any || c->silence_ms > 0;
        if (c->silence_ms <= 0 || now - c->xfer.last_byte_ms < c->silence_ms)
            continue;
        c->xfer.stop = det_fail(&c->xfer.err, DET_ETIMEOUT, "nothing came for %.1f s",
                                (double)c->silence_ms / 1e3);
        call_finish(c, CURLE_ABORTED_BY_CALLBACK);
        return; /* done() may have changed the list; the others' turn is next time */
    }
    if (!any)
        uv_timer_stop(t);
}

/* A handle's first use sets up what libcurl leaves until then. */
void client_uv_warm_up(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    curl_easy_cleanup(curl_easy_init());
    curl_multi_cleanup(curl_multi_init());
}

int client_uv_create(uv_loop_t *loop, const struct client_options *o, struct client_uv **ret,
                     struct det_err *err)
{
    struct client_uv *u = det_zalloc(sizeof *u);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int rc = client_conf_init(&u->conf, o, err);
    u->multi = rc == 0 ? curl_multi_init() : NULL;
    if (!u->multi) {
        client_conf_finish(&u->conf);
        free(u);
        return rc < 0 ? rc : det_fail(err, DET_ENOMEM, "libcurl cannot start");
    }
    u->loop = loop;
    uv_timer_init(loop, &u->timer);
    uv_timer_init(loop, &u->watch);
    u->handles = 2;
    curl_multi_setopt(u->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    curl_multi_setopt(u->multi, CURLMOPT_SOCKETDATA, u);
    curl_multi_setopt(u->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(u->multi, CURLMOPT_TIMERDATA, u);
    *ret = u;
    return 0;
}

void client_uv_set_certificate(struct client_uv *u, const char *cert, const char *key)
{
    client_conf_set_certificate(&u->conf, cert, key);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct client_uv *u = h->data;
    u->handles--;
    maybe_free(u);
}

void client_uv_close(struct client_uv *u)
{
    if (!u)
        return;
    u->is_closing = true;
    while (u->calls)
        call_free(u->calls);
    for (size_t i = 0; i < u->idle.n; i++)
        curl_easy_cleanup(u->idle.v[i]);
    curl_multi_cleanup(u->multi);
    u->timer.data = u->watch.data = u;
    uv_close((uv_handle_t *)&u->timer, on_timer_closed);
    uv_close((uv_handle_t *)&u->watch, on_timer_closed);
}

static CURL *take_easy(struct client_uv *u)
{
    CURL *e = u->idle.n > 0 ? u->idle.v[--u->idle.n] : curl_easy_init();
    if (!e)
        abort(); /* as every small allocation */
    return e;
}

static struct client_uv_call *begin_call(struct client_uv *u, const struct client_req *req,
                                         client_line_fn *line, client_uv_done *done, void *arg)
{
    struct client_uv_call *c = det_zalloc(sizeof *c);
    *c = (struct client_uv_call){.u = u, .done = done, .arg = arg, .req = *req, .line = line};
    c->req.body_len = req->body && req->body_len == 0 ? strlen(req->body) : req->body_len;
    c->req.body = req->body ? det_memdup(req->body, c->req.body_len + !c->req.body_len) : NULL;
    c->req.method = det_strdup(req->method);
    c->req.path = det_strdup(req->path);
    c->req.query = det_strdup(req->query);
    c->easy = take_easy(u);
    client_xfer_begin(&c->xfer, c->easy, &u->conf, &c->req, &c->resp);
    curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
    c->link = &u->calls;
    c->next = u->calls;
    if (c->next)
        c->next->link = &c->next;
    u->calls = c;
    return c;
}

struct client_uv_call *client_uv_start(struct client_uv *u, const struct client_req *req,
                                       client_uv_done *done, void *arg)
{
    struct client_uv_call *c = begin_call(u, req, NULL, done, arg);
    add_waiting(u);
    return c;
}

static int on_line(void *arg, const char *line, size_t len, struct det_err *err)
{
    struct client_uv_call *c = arg;
    int rc = c->is_canceled ? 0 : c->line(c->arg, line, len, err);
    return c->is_canceled ? det_fail(err, DET_ECANCELED, "canceled") : rc;
}

struct client_uv_call *
client_uv_stream(struct client_uv *u, const struct client_req *req, int64_t silence_ms,
                 int (*line)(void *arg, const char *line, size_t len, struct det_err *err),
                 client_uv_done *done, void *arg)
{
    struct client_uv_call *c = begin_call(u, req, line, done, arg);
    c->xfer.on_line = on_line;
    c->xfer.line_arg = c;
    c->silence_ms = silence_ms;
    curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS,
                     (long)(req->timeout_ms > 0 ? req->timeout_ms : 0));
    if (silence_ms > 0)
        uv_timer_start(&u->watch, on_watch, WATCH_MS, WATCH_MS);
    add_waiting(u);
    return c;
}

void client_uv_cancel(struct client_uv_call *c)
{
    if (!c || c->is_canceled)
        return;
    c->is_canceled = true;
    if (c->u->depth == 0)
        call_free(c);
}
