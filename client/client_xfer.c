#include "client_impl.h"

#include "agentlink.h"
#include "clk.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

const char *client_req_method(const struct client_req *req)
{
    return req->method ? req->method : req->body ? "POST" : "GET";
}

/* Feeds whole lines to on_line; the rest waits in x->partial. */
static void feed_lines(struct client_xfer *x, const char *p, size_t n)
{
    while (n > 0 && x->stop == 0) {
        const char *nl = memchr(p, '\n', n);
        size_t take = nl ? (size_t)(nl - p) : n;
        buf_add(&x->partial, p, take);
        if (x->partial.len > CLIENT_LINE_MAX)
            x->stop =
                det_fail(&x->err, DET_ETOOBIG, "a line of more than %zu bytes", CLIENT_LINE_MAX);
        if (!nl)
            return;
        if (x->partial.len > 0 && x->stop == 0)
            x->stop = x->on_line(x->line_arg, x->partial.p, x->partial.len, &x->err);
        buf_clear(&x->partial);
        p += take + 1;
        n -= take + 1;
    }
}

static bool is_success(const struct client_xfer *x)
{
    long status = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct client_xfer *x = arg;
    x->last_byte_ms = clk_mono_ms();
    if (x->on_line && is_success(x)) {
        feed_lines(x, p, n);
    } else if (x->resp->body.len + n > x->answer_max) {
        x->stop =
            det_fail(&x->err, DET_ETOOBIG, "the answer has more than %zu bytes", x->answer_max);
    } else {
        buf_add(&x->resp->body, p, n);
    }
    return x->stop == 0 ? n * size : CURL_WRITEFUNC_ERROR;
}

/* An empty line ends a head, of which there may be several: a proxy's, 100 Continue, the answer's.
 */
static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct client_xfer *x = arg;
    x->last_byte_ms = clk_mono_ms();
    if (x->on_open && n > 0 && (p[0] == '\r' || p[0] == '\n') && is_success(x)) {
        x->on_open(x->line_arg);
        x->on_open = NULL;
    }
    return n * size;
}

static void add_header(struct client_xfer *x, const char *line)
{
    struct curl_slist *more = curl_slist_append(x->headers, line);
    if (!more)
        abort(); /* as every small allocation */
    x->headers = more;
}

static void set_headers(struct client_xfer *x, const struct client_conf *conf,
                        const struct client_req *req)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    add_header(x, "Expect:");
    if (conf->addrs[x->addr].host_header)
        add_header(x, conf->addrs[x->addr].host_header);
    if (conf->o.token && conf->o.token_kind != CLIENT_TOKEN_NONE) {
        buf_addf(&b, "%s: Bearer %s",
                 conf->o.token_kind == CLIENT_TOKEN_ALLOCATION ? "Grpc-Metadata-x-allocation-token"
                                                               : "Authorization",
                 conf->o.token);
        add_header(x, b.p);
        buf_clear(&b);
    }
    if (conf->o.token_kind == CLIENT_TOKEN_ALLOCATION) {
        buf_addf(&b, LINK_HEADER ": %d", LINK_PROTOCOL);
        add_header(x, b.p);
        buf_clear(&b);
    }
    if (req->body) {
        buf_addf(&b, "Content-Type: %s",
                 req->content_type ? req->content_type : "application/json");
        add_header(x, b.p);
    }
    for (const char *const *h = req->headers; h && *h; h++)
        add_header(x, *h);
    curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
}

/* A libcurl without OpenSSL takes none, and would trust the system's authorities in the place of
 * ours. */
static void set_blob(CURL *e, CURLoption option, const char *pem)
{
    struct curl_blob blob = {.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    if (curl_easy_setopt(e, option, &blob) != CURLE_OK)
        abort();
}

/* Not even an authority of the system's counts beside this one. */
static void set_authority(CURL *e, const char *pem)
{
    set_blob(e, CURLOPT_CAINFO_BLOB, pem);
    curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
}

static void set_tls(CURL *e, const struct client_conf *conf)
{
    const char *ca = conf->o.ca_file;
    if (conf->o.authority) {
        set_authority(e, conf->o.authority);
        curl_easy_setopt(e, CURLOPT_CERTINFO, 1L);
    } else if (ca && strcmp(ca, "noverify") == 0) {
        curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (ca) {
        curl_easy_setopt(e, CURLOPT_CAINFO, ca);
    }
    if (conf->o.cert && conf->o.key) {
        set_blob(e, CURLOPT_SSLCERT_BLOB, conf->o.cert);
        set_blob(e, CURLOPT_SSLKEY_BLOB, conf->o.key);
    }
    if (conf->o.pin)
        curl_easy_setopt(e, CURLOPT_PINNEDPUBLICKEY, conf->o.pin);
}

static void set_method(CURL *e, const struct client_req *req)
{
    const char *method = client_req_method(req);
    size_t len = req->body_len ? req->body_len : req->body ? strlen(req->body) : 0;
    if (req->body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
        strcmp(method, "PATCH") == 0) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, req->body ? req->body : "");
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    } else if (strcmp(method, "HEAD") == 0) {
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
}

struct curl_slist *client_addr_dial(const struct client_addr *addr, CURL *easy)
{
    struct curl_slist *connect_to = NULL;
    if (addr->connect_to) {
        connect_to = curl_slist_append(NULL, addr->connect_to);
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to);
    }
    if (addr->is_loopback) /* whatever the environment says of proxies */
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    return connect_to;
}

static void set_url(struct client_xfer *x, const struct client_conf *conf,
                    const struct client_req *req)
{
    const struct client_addr *addr = &conf->addrs[x->addr];
    det_cleanup(freep) char *url =
        det_asprintf("%s%s%s%s%s", addr->dial, req->path[0] == '/' ? "" : "/", req->path,
                     req->query && req->query[0] ? "?" : "", req->query ? req->query : "");
    curl_easy_setopt(x->easy, CURLOPT_URL, url);
    curl_easy_setopt(x->easy, CURLOPT_PATH_AS_IS, 1L);
    x->connect_to = client_addr_dial(addr, x->easy);
}

static void set_callbacks(struct client_xfer *x)
{
    CURL *e = x->easy;
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->curl_text);
}

/* A host that vanishes, or a network with a gap, sends no reset: whoever waits for an answer that
 * may be long in coming hears of it a minute later. What a kernel cannot do is done without. */
static void notice_silence(int fd)
{
    enum { IDLE_S = 30, BETWEEN_S = 10, GONE_MS = 60 * 1000 };
    const int on = 1, idle = IDLE_S, between = BETWEEN_S, gone = GONE_MS;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &gone, sizeof gone);
}

/* The address itself, after names are resolved: one that may not be dialled is a connection that
 * cannot be made. Not to be inherited: a child would keep the connection open after its owner's
 * death. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    const struct client_conf *conf = arg;
    if (conf->o.may_dial && !conf->o.may_dial(conf->o.dial_arg, &a->addr))
        return CURL_SOCKET_BAD;
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    if (fd >= 0)
        notice_silence(fd);
    return fd;
}

void client_xfer_begin(struct client_xfer *x, CURL *easy, const struct client_conf *conf,
                       const struct client_req *req, struct client_resp *resp)
{
    *x = (struct client_xfer){
        .easy = easy, .resp = resp, .addr = conf->at, .last_byte_ms = clk_mono_ms()};
    x->answer_max = req->answer_max ? req->answer_max : CLIENT_BODY_MAX;
    resp->status = 0;
    buf_clear(&resp->body);
    curl_easy_reset(easy); /* keeps the connections */
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, conf);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, conf->o.user_agent);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)conf->o.connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     (long)(req->timeout_ms > 0 ? req->timeout_ms : conf->o.timeout_ms));
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* else its end waits for a name server */
    set_url(x, conf, req);
    if (conf->o.may_dial)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    set_tls(easy, conf);
    set_method(easy, req);
    set_headers(x, conf, req);
    set_callbacks(x);
}

void client_xfer_finish(struct client_xfer *x)
{
    curl_slist_free_all(x->headers);
    curl_slist_free_all(x->connect_to);
    x->headers = x->connect_to = NULL;
    buf_finish(&x->partial);
}

static int curl_failure(const struct client_xfer *x, CURLcode code, struct det_err *err)
{
    const char *text = x->curl_text[0] ? x->curl_text : curl_easy_strerror(code);
    long error = 0;
    switch ((int)code) { /* curl has a hundred */
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &error);
        return error ? det_fail_errno(err, DET_EUNAVAIL, (int)error, "%s", text)
                     : det_fail(err, DET_EUNAVAIL, "%s", text);
    case CURLE_OPERATION_TIMEDOUT: return det_fail(err, DET_ETIMEOUT, "%s", text);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_CACERT_BADFILE:
        return det_fail(err, DET_EAUTH, "the server's certificate is not trusted: %s", text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return det_fail(err, DET_EINVAL, "%s", text);
    case CURLE_OUT_OF_MEMORY: return det_fail(err, DET_ENOMEM, "%s", text);
    default: return det_fail(err, DET_EUNAVAIL, "%s", text);
    }
}

int client_xfer_result(struct client_xfer *x, CURLcode code, const struct client_req *req,
                       struct det_err *err)
{
    long status = 0;
    int rc;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    x->resp->status = code == CURLE_OK || x->stop == DET_ETOOBIG ? (int)status : 0;
    if (x->stop != 0) {
        if (err)
            *err = x->err;
        rc = x->stop;
        if (x->stop > 0) /* the reader had enough: no failure of ours */
            return rc;
    } else if (code != CURLE_OK) {
        rc = curl_failure(x, code, err);
    } else {
        rc = client_status((int)status, buf_str(&x->resp->body), x->resp->body.len, err);
    }
    return rc < 0 ? det_wrap(err, rc, "%s %s", client_req_method(req), req->path) : rc;
}
