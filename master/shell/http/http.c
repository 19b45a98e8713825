#include "http.h"

#include "agentlink.h"
#include "auth.h"
#include "browser.h"
#include "clk.h"
#include "driver.h"
#include "http_conn.h"
#include "http_tls.h"
#include "log.h"
#include "mem.h"
#include "origins.h"
#include "shell.h"
#include "trim.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IDLE_TIMEOUT_S = 150, /* for a client that does not read; else http_peer.h has shorter ones */
    CONNECTIONS_MAX = 20000,
    SPARE = 64, /* of those: several are accepted at a time, and who is cut ends a moment later */
    /* A connection's own memory, all of it touched when a second request comes on it: for the
     * request's line and headers together, and the answer's headers. */
    HEAD_BYTES = HTTP_HEAD_MAX + (1 << 10),
    /* Of all bodies together: a few of the largest at a time. */
    BODIES_BYTES_MAX = 384 << 20,
    CLOSE_GRACE_MS = 3000,
    CLOSE_LOOK_MS = 20,
    PEER_TIMEOUT_MS = 10000,
    SWEEP_MS = 5000,
    TRIM_BODY = 64 << 10,    /* of a body: what was made of it was as large */
    TRIM_CONNECTIONS = 1000, /* that have ended since there were the most */
    HANDLES = 4              /* of libuv, in struct http */
};

/* One request. */

static void conn_link(struct http *h, struct http_conn *c)
{
    c->next = h->conns;
    if (c->next)
        c->next->prev = c;
    h->conns = c;
}

static void conn_unlink(struct http_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->http->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

static void body_drop(struct http_conn *c)
{
    if (c->req.body.len >= TRIM_BODY && c->http->sh)
        trim_soon(c->http->sh->trim);
    c->http->body_bytes -= c->req.body.len;
    buf_finish(&c->req.body);
}

void http_free_when_over(struct http *h)
{
    if (h->handles > 0 || h->orphans > 0 || h->streams)
        return;
    http_router_finish(&h->router);
    free(h->leader);
    free(h->web_hosts);
    http_stats_finish(&h->stats);
    http_tls_finish();
    free(h);
}

void http_keep(struct http_req *req, void *p, void (*let_go)(struct shell *sh, void *p))
{
    req->kept = p;
    req->conn->let_go = let_go;
}

static void conn_free(struct http_conn *c)
{
    while (c->chunks) {
        struct http_chunk *k = c->chunks;
        c->chunks = k->next;
        free(k);
    }
    if (c->response)
        MHD_destroy_response(c->response);
    http_match_finish(&c->match);
    if (c->let_go)
        c->let_go(c->http->sh, c->req.kept);
    body_drop(c);
    free(c->uri);
    free(c->path);
    free(c->early);
    free(c);
}

/* Its handler answers, in whose place the server has answered before. */
static void forced_answered(struct http_conn *c)
{
    struct http *h = c->http;
    c->forced = false;
    if (c->mhd)
        return;
    conn_free(c);
    h->orphans--;
    http_free_when_over(h);
}

void http_conn_answer(struct http_conn *c, int status, struct MHD_Response *r)
{
    struct http *h = c->http;
    if (http_conn_keep(c, status, r))
        return;
    if (c->forced) { /* the server answered in the handler's place */
        MHD_destroy_response(r);
        forced_answered(c);
        return;
    }
    http_stats_count(&h->stats, c->req.route ? c->req.route->pattern : NULL, status);
    origins_on_request(h->sh->origins, &c->req);
    if (c->on_answer)
        c->on_answer(&c->req, c->on_answer_arg, status);
    c->response = r;
    c->status = status;
    bool suspended = c->state == CONN_PENDING || c->state == CONN_WAITING;
    c->state = CONN_ANSWERED;
    h->pending--;
    if (suspended) {
        MHD_resume_connection(c->mhd);
        http_kick(h);
    }
}

/* What follows the '?' is ours to take apart: libmicrohttpd is shown its end here, as it would keep
 * 64 bytes for each parameter, and where there is no room for one more (0.9.75), or none but for
 * the line itself, would neither answer nor hang up. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http *h = cls;
    struct http_conn *c = det_zalloc(sizeof *c);
    c->http = h;
    c->mhd = mhd;
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    c->peer = i ? i->socket_context : NULL;
    http_peer_begins(&h->peers, c->peer, uv_now(h->loop));
    c->uri = det_strdup(uri);
    char *query = strchr(uri, '?');
    if (query)
        query[1] = 0;
    c->req.conn = c;
    c->req.sh = h->sh;
    conn_link(h, c);
    return c;
}

static int method_of(const char *name)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (int i = 0; i < HTTP_METHOD_COUNT; i++)
        if (!strcmp(name, names[i]))
            return i;
    return strcmp(name, "HEAD") ? -1 : HTTP_GET;
}

static void refuse_early(struct http_conn *c, int status, int code, const char *text)
{
    if (c->early_status)
        return;
    c->early_status = status;
    c->early_code = code;
    c->early = det_strdup(text);
}

static void refuse_length(struct http_conn *c)
{
    char text[120];
    snprintf(text, sizeof text, "the request's body is too large: %zu bytes are the most here",
             c->body_max);
    refuse_early(c, 413, DET_ETOOBIG, text);
}

static void path_init(struct http_conn *c)
{
    c->path = det_strndup(c->uri, strcspn(c->uri, "?"));
    size_t n = strlen(c->path);
    while (n > 1 && c->path[n - 1] == '/')
        c->path[--n] = 0;
    c->api = !strncmp(c->path, "/api/", 5) || !strncmp(c->path, "/agent/", 7);
    c->req.path = c->path;
}

static void refuse_standby(struct http_conn *c)
{
    if (!strcmp(c->path, "/healthz")) {
        c->early_status = 200;
        return;
    }
    char text[400];
    snprintf(text, sizeof text, "this master stands by; the leader is %s", c->http->leader);
    refuse_early(c, 503, DET_EUNAVAIL, text);
}

static int route_find(struct http_conn *c, int method)
{
    int rc = http_router_find(&c->http->router, method < 0 ? HTTP_METHOD_COUNT : c->req.method,
                              c->path, &c->match);
    http_unescape(c->path, false);
    if (rc == 0)
        c->req.route = c->match.entry->route;
    else if (rc == DET_ENOENT && method == HTTP_GET && c->http->rest && c->http->covers(c->path))
        c->req.route = c->http->rest;
    return c->req.route ? 0 : rc;
}

static void refuse_foreign(struct http_conn *c)
{
    const struct browser_ask a = {
        .host = http_header(&c->req, "Host"),
        .origin = http_header(&c->req, "Origin"),
        .site = http_header(&c->req, "Sec-Fetch-Site"),
        .is_marked = http_header(&c->req, BROWSER_MARK),
        .is_write = c->req.method != HTTP_GET,
        .by_cookie = auth_by_cookie(&c->req),
        .is_page = c->req.route == c->http->rest,
        .is_tls = http_is_tls(c->http),
        .names = c->http->web_hosts,
    };
    struct det_err err;
    if (browser_check(&a, &err) < 0)
        refuse_early(c, 403, DET_EPERM, err.text);
}

/* Headers are in: find the route, refuse what needs no body to be refused. */
static void conn_begin(struct http_conn *c, const char *method)
{
    c->started = true;
    path_init(c);
    if (c->http->leader) {
        refuse_standby(c);
        return;
    }
    int m = method_of(method);
    c->req.method = m < 0 ? HTTP_GET : (enum http_method)m;
    int rc = route_find(c, m);
    if (rc < 0) {
        refuse_early(c, rc == DET_ENOENT ? 404 : 405, rc,
                     rc == DET_ENOENT ? "no such route; see proto/openapi.yaml"
                                      : "method not allowed");
        return;
    }
    refuse_foreign(c);
    c->body_max = c->req.route->body_max ? c->req.route->body_max
                  : c->req.route->auth   ? HTTP_BODY_DEFAULT
                                         : HTTP_BODY_STRANGERS;
    if (c->req.route->auth && !auth_has_token(&c->req) && !auth_has_certificate(&c->req))
        refuse_early(c, 401, DET_EAUTH, "token missing");
    const char *protocol = http_header(&c->req, LINK_HEADER);
    struct det_err err;
    if (protocol && link_protocol_check(strtoll(protocol, NULL, 10), &err) < 0)
        refuse_early(c, 426, DET_EUNIMPL, err.text);
    const char *coding = http_header(&c->req, "Content-Encoding");
    if (coding && *coding && strcasecmp(coding, "identity") != 0)
        refuse_early(c, 415, DET_EINVAL,
                     "bodies are taken as they are: send it without Content-Encoding");
    const char *length = http_header(&c->req, "Content-Length");
    if (length && strtoull(length, NULL, 10) > c->body_max)
        refuse_length(c);
}

static bool has_body(const struct http_conn *c)
{
    const char *length = http_header(&c->req, "Content-Length");
    return http_header(&c->req, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

static void on_identity(struct http_req *req, const struct det_err *err)
{
    struct http_conn *c = req->conn;
    bool suspended = c->state == CONN_WAITING;
    if (c->forced) { /* the server answered meanwhile */
        forced_answered(c);
        return;
    }
    c->http->pending--;
    http_peer_goes_on(&c->http->peers, c->peer, uv_now(c->http->loop));
    c->state = CONN_READING;
    c->resumed = suspended;
    if (err)
        refuse_early(c, http_status_of(err->code, NULL, NULL), err->code, err->text);
    if (suspended) {
        MHD_resume_connection(c->mhd);
        http_kick(c->http);
    }
}

/* Nobody's body is read, let alone kept, before it is known that they may send one. */
static void identify_caller(struct http_conn *c)
{
    c->state = CONN_ASKING;
    c->begun_ms = uv_now(c->http->loop);
    c->http->pending++;
    http_peer_in_hand(&c->http->peers, c->peer, c->begun_ms);
    auth_check(c->http->sh, &c->req, on_identity);
    if (c->state == CONN_ASKING) {
        c->state = CONN_WAITING;
        MHD_suspend_connection(c->mhd);
    }
}

static void conn_body(struct http_conn *c, const char *p, size_t n)
{
    struct http *h = c->http;
    if (c->early_status) {
        if (!http_drain_take(&h->drain, &c->drained, c->mhd, n))
            http_peer_reset(&h->peers, c->peer, uv_now(h->loop));
        return;
    }
    if (c->req.body.len + n > c->body_max)
        refuse_length(c);
    else if (h->body_bytes + n > BODIES_BYTES_MAX)
        refuse_early(c, 503, DET_EUNAVAIL,
                     "the master has its hands full of large requests; try again");
    if (c->early_status) {
        body_drop(c);
        return;
    }
    buf_add(&c->req.body, p, n);
    h->body_bytes += n;
    h->stats.bytes_in += n;
}

static void on_auth(struct http_req *req, const struct det_err *err)
{
    if (err)
        http_fail_err(req, err);
    else
        req->route->fn(req->sh, req);
}

static void early_reply(struct http_conn *c)
{
    if (c->early_status == 200) {
        http_reply(&c->req, 200, "{\"status\":\"standby\"}");
        return;
    }
    if (c->early_status == 426) {
        http_fail_upgrade(&c->req, c->early);
        return;
    }
    if (c->early_status == 415) {
        http_fail_coding(&c->req, c->early);
        return;
    }
    if (c->early_status != 405) {
        http_fail(&c->req, c->early_code, "%s", c->early);
        return;
    }
    static const char body[] =
        "{\"error\":{\"code\":12,\"reason\":\"Unimplemented\",\"error\":\"method "
        "not allowed\"}}";
    http_reply_with(&c->req, &(struct http_answer){.status = 405}, body, sizeof body - 1);
}

static void conn_dispatch(struct http_conn *c)
{
    struct http *h = c->http;
    c->state = CONN_INLINE;
    c->begun_ms = uv_now(h->loop);
    h->pending++;
    origins_on_request(h->sh->origins, &c->req);
    http_peer_in_hand(&h->peers, c->peer, c->begun_ms);
    if (c->early_status)
        early_reply(c);
    else if (h->closing)
        http_fail(&c->req, DET_EUNAVAIL, "the master is stopping");
    else if (c->req.route->auth)
        auth_check(h->sh, &c->req, on_auth);
    else
        c->req.route->fn(h->sh, &c->req);
    if (c->state == CONN_INLINE) {
        c->state = CONN_PENDING;
        MHD_suspend_connection(c->mhd);
    }
}

/* Whether it is refused and better answered before its body, with which its connection ends: who
 * asked whether to send it, and whose is longer than anybody's. */
static bool is_answered_early(const struct http_conn *c)
{
    const char *length = http_header(&c->req, "Content-Length");
    return c->state == CONN_READING && c->early_status &&
           (http_header(&c->req, "Expect") ||
            (length && strtoull(length, NULL, 10) > HTTP_DRAIN_MAX));
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_n, void **con_cls)
{
    struct http_conn *c = *con_cls;
    struct http *h = c->http;
    if (!c->started) {
        if (c->is_told || http_head_is_too_long(c))
            return MHD_NO;
        conn_begin(c, method);
        if (!c->early_status && c->req.route->auth && !h->closing && has_body(c))
            identify_caller(c);
        if (!is_answered_early(c))
            return MHD_YES;
    }
    if (c->resumed && !*upload_n && !is_answered_early(c)) {
        c->resumed = false;
        return MHD_YES;
    }
    c->resumed = false;
    if (*upload_n) {
        http_peer_sent(&h->peers, c->peer, *upload_n, uv_now(h->loop));
        conn_body(c, upload, *upload_n);
        *upload_n = 0;
        return MHD_YES;
    }
    if (c->state == CONN_READING)
        conn_dispatch(c);
    if (c->state != CONN_ANSWERED)
        return MHD_YES;
    c->state = CONN_QUEUED;
    enum MHD_Result rc = MHD_queue_response(mhd, (unsigned)c->status, c->response);
    MHD_destroy_response(c->response);
    c->response = NULL;
    return rc;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct http_conn *c = *con_cls;
    *con_cls = NULL;
    if (!c)
        return;
    conn_unlink(c);
    http_peer_idle(&c->http->peers, c->peer, uv_now(c->http->loop));
    c->mhd = NULL;
    if (c->forced) /* its handler still holds the request, and frees it by answering */
        c->http->orphans++;
    else
        conn_free(c);
}

/* A peer that vanished is noticed by what it does not acknowledge: agents' links send every 2 s. */
static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_cls,
                          enum MHD_ConnectionNotificationCode what)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    unsigned ms = PEER_TIMEOUT_MS;
    bool began = what == MHD_CONNECTION_NOTIFY_STARTED;
    struct http *h = cls;
    h->stats.connections += began ? 1 : (uint64_t)-1;
    if (!began) {
        http_peer_remove(&h->peers, *socket_cls);
        *socket_cls = NULL;
    } else if (i) {
        setsockopt(i->connect_fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
        *socket_cls = http_peer_add(&h->peers, i->connect_fd, uv_now(h->loop));
    }
}

static void trim_after_many(struct http *h)
{
    if (h->peers.count > h->peers_most)
        h->peers_most = h->peers.count;
    if (h->peers_most - h->peers.count < TRIM_CONNECTIONS || !h->sh)
        return;
    h->peers_most = h->peers.count;
    trim_soon(h->sh->trim);
}

static void on_sweep(uv_timer_t *t)
{
    struct http *h = t->data;
    trim_after_many(h);
    http_peers_sweep(&h->peers, uv_now(h->loop));
    http_streams_sweep(h);
    http_drop(h, &(struct http_ended){.by_ms = clk_mono_ms()});
    if (h->sh && h->sh->driver && driver_not_ready(h->sh->driver))
        http_answer_late(h);
}

static void on_mhd_log(void *cls, const char *fmt, va_list ap)
{
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = 0;
    log_debug("http: %s", text);
    if (strstr(text, "to parse cookies"))
        http_head_cookies(cls);
}

/* The loop. */

static void finish_close(struct http *h);

static void on_timer(uv_timer_t *t);

static void http_run(struct http *h)
{
    h->kicked = false;
    MHD_run(h->daemon);
    MHD_UNSIGNED_LONG_LONG ms;
    if (h->kicked)
        uv_timer_start(&h->timer, on_timer, 0, 0);
    else if (MHD_get_timeout(h->daemon, &ms) == MHD_YES)
        uv_timer_start(&h->timer, on_timer, ms, 0);
    else
        uv_timer_stop(&h->timer);
    if (h->closing)
        finish_close(h);
}

static void on_timer(uv_timer_t *t)
{
    http_run(t->data);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
    http_run(p->data);
}

void http_kick(struct http *h)
{
    h->kicked = true; /* a run under way would set the timer anew */
    uv_timer_start(&h->timer, on_timer, 0, 0);
}

static void on_drained(void *arg)
{
    http_kick(arg);
}

/* The server. */

static int listen_on(const char *host, uint16_t port, int *ret, struct det_err *err)
{
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *a = NULL;
    int rc = getaddrinfo(host, service, &want, &a);
    if (rc)
        return det_fail(err, DET_EINVAL, "--host %s: %s", host, gai_strerror(rc));
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    rc = fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 4096) < 0 ? -errno : 0;
    freeaddrinfo(a);
    if (rc < 0) {
        if (fd >= 0)
            close(fd);
        return det_fail_errno(err, DET_EIO, -rc, "listen on %s:%u", host, port);
    }
    *ret = fd;
    return 0;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    char service[8] = "0";
    if (getsockname(fd, (struct sockaddr *)&a, &n) == 0)
        getnameinfo((struct sockaddr *)&a, n, NULL, 0, service, sizeof service, NI_NUMERICSERV);
    return (uint16_t)strtoul(service, NULL, 10);
}

static int daemon_start(struct http *h, int fd, const char *client_authority, struct det_err *err)
{
    bool tls = http_is_tls(h);
    unsigned most = http_peers_max(CONNECTIONS_MAX);
    h->peers.room = most > 4 * SPARE ? most - SPARE : most;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem pem[] = {http_tls_option(),
                                   {client_authority ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END,
                                    0, (void *)client_authority},
                                   {MHD_OPTION_END, 0, NULL}};
    h->daemon = MHD_start_daemon(
        flags | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL, on_access, h, MHD_OPTION_ARRAY,
        tls ? pem : pem + DET_ARRAY_LEN(pem) - 1, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, h, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_CONNECTION_LIMIT,
        most, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_END);
    if (!h->daemon) {
        close(fd);
        return det_fail(err, DET_EIO, "the HTTP server did not start");
    }
    return 0;
}

int http_create(uv_loop_t *loop, const struct http_options *o, struct http **ret,
                struct det_err *err)
{
    int fd = -1;
    int rc = listen_on(o->host, o->port, &fd, err);
    if (rc < 0)
        return rc;
    struct http *h = det_zalloc(sizeof *h);
    h->loop = loop;
    h->sh = o->sh;
    h->port = port_of(fd);
    h->is_tls = o->tls && o->tls->cert.len;
    h->web_hosts = det_strdup(o->web_hosts ? o->web_hosts : "");
    rc = h->is_tls ? http_tls_show(o->tls, err) : 0;
    if (rc < 0) {
        close(fd);
        det_wrap(err, rc, "the HTTP server did not start");
    } else {
        rc = daemon_start(h, fd, o->client_authority, err);
    }
    if (rc < 0) {
        free(h->web_hosts);
        free(h);
        return rc;
    }
    int epoll_fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_timer_init(loop, &h->timer);
    uv_poll_init(loop, &h->poll, epoll_fd);
    h->timer.data = h->poll.data = h;
    h->handles = HANDLES;
    http_drain_init(&h->drain, loop, on_drained, h);
    uv_timer_init(loop, &h->sweep);
    h->sweep.data = h;
    uv_timer_start(&h->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_poll_start(&h->poll, UV_READABLE, on_readable);
    *ret = h;
    return 0;
}

int http_add_routes(struct http *h, const struct http_route *table, size_t n, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = http_router_add(&h->router, &table[i], err);
    return rc;
}

void http_add_rest(struct http *h, bool (*covers)(const char *path), const struct http_route *route)
{
    h->covers = covers;
    h->rest = route;
}

bool http_is_tls(const struct http *h)
{
    return h->is_tls;
}

int http_set_certificate(struct http *h, const struct pem_pair *tls, struct det_err *err)
{
    return http_tls_show(tls, err);
}

uint16_t http_port(const struct http *h)
{
    return h->port;
}

const struct http_stats *http_stats(const struct http *h)
{
    return &h->stats;
}

size_t http_requests_open(const struct http *h)
{
    return h->pending;
}

/* The end. */

static void on_handle_closed(uv_handle_t *u)
{
    struct http *h = u->data;
    if (--h->handles > 0)
        return;
    void (*done)(void *) = h->on_closed;
    void *arg = h->closed_arg;
    http_free_when_over(h);
    if (done)
        done(arg);
}

/* Past the grace, what no handler answered is answered here. */
static void force_answers(struct http *h)
{
    for (struct http_conn *c = h->conns; c; c = c->next) {
        if (c->state != CONN_PENDING && c->state != CONN_WAITING)
            continue;
        c->forcing = true;
        http_fail(&c->req, DET_EUNAVAIL, "the master is stopping");
        c->forcing = false;
        c->forced = true;
    }
    http_streams_abort(h);
    http_drain_stop(&h->drain);
}

static void finish_close(struct http *h)
{
    if (h->handles < HANDLES || uv_is_closing((uv_handle_t *)&h->poll))
        return;
    bool late = uv_now(h->loop) >= h->close_deadline_ms;
    if ((h->pending || h->streams) && !late) {
        /* libmicrohttpd's own next timeout may be minutes away. */
        if (!uv_is_active((uv_handle_t *)&h->timer) ||
            uv_timer_get_due_in(&h->timer) > CLOSE_LOOK_MS)
            uv_timer_start(&h->timer, on_timer, CLOSE_LOOK_MS, 0);
        return;
    }
    force_answers(h);
    MHD_run(h->daemon);
    uv_close((uv_handle_t *)&h->poll, on_handle_closed);
    uv_close((uv_handle_t *)&h->timer, on_handle_closed);
    uv_close((uv_handle_t *)&h->sweep, on_handle_closed);
    h->drain.timer.data = h;
    uv_close((uv_handle_t *)&h->drain.timer, on_handle_closed);
    MHD_stop_daemon(h->daemon);
    h->daemon = NULL;
}

void http_stand_by(struct http *h, const char *leader_url)
{
    free(h->leader);
    h->leader = det_strdup(leader_url);
}

void http_close(struct http *h, void (*on_closed)(void *arg), void *arg)
{
    h->closing = true;
    h->on_closed = on_closed;
    h->closed_arg = arg;
    h->close_deadline_ms = uv_now(h->loop) + CLOSE_GRACE_MS;
    MHD_socket fd = MHD_quiesce_daemon(h->daemon);
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
    http_streams_wake(h);
    http_kick(h);
}
