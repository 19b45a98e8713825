/*
 * Streamed answers. Two sides hold a stream: the handler until http_stream_end, libmicrohttpd until
 * the response dies; the later one frees it. While nothing waits to be sent the connection is
 * suspended, and a uv_poll for UV_DISCONNECT watches its socket, because libmicrohttpd does not
 * look at a suspended one.
 */
#include "http_conn.h"
#include "json.h"
#include "mem.h"

#include <string.h>
#include <sys/socket.h>

/* A block is what a client of HTTP/1.0 gets at once; chunks to all others come from their
 * connection's own memory. */
enum { KEEP_BYTES = 512, BLOCK_BYTES = 1 << 10 };

struct http_stream {
    struct http *http;
    struct http_stream *prev, *next; /* of http->streams */
    struct http_conn *conn;          /* NULL once libmicrohttpd let go */
    struct buf out;
    size_t off;     /* sent of out */
    uint64_t taken; /* sent in all */
    bool ended, gone, suspended, was_full;
    uv_poll_t *watch; /* while suspended */
    void (*on_wake)(void *arg);
    void *arg;
};

static void stream_free(struct http_stream *s)
{
    struct http *h = s->http;
    if (s->prev)
        s->prev->next = s->next;
    else
        h->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    buf_finish(&s->out);
    free(s);
    http_free_when_over(h);
}

static void on_watch_closed(uv_handle_t *h)
{
    free(h);
}

static void stop_watch(struct http_stream *s)
{
    if (!s->watch)
        return;
    uv_poll_stop(s->watch);
    uv_close((uv_handle_t *)s->watch, on_watch_closed);
    s->watch = NULL;
}

static void resume_stream(struct http_stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    stop_watch(s);
    MHD_resume_connection(s->conn->mhd);
    http_kick(s->http);
}

static void wake_owner(struct http_stream *s)
{
    if (!s->ended && s->on_wake)
        s->on_wake(s->arg);
}

static void on_disconnect(uv_poll_t *h, int status, int events)
{
    struct http_stream *s = h->data;
    s->gone = true;
    resume_stream(s);
    wake_owner(s);
}

static int fd_of(const struct http_stream *s)
{
    return MHD_get_connection_info(s->conn->mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static void suspend_stream(struct http_stream *s)
{
    s->watch = det_zalloc(sizeof *s->watch);
    s->watch->data = s;
    if (uv_poll_init(s->http->loop, s->watch, fd_of(s)) < 0) {
        free(s->watch);
        s->watch = NULL;
    } else {
        uv_poll_start(s->watch, UV_DISCONNECT, on_disconnect);
    }
    s->suspended = true;
    MHD_suspend_connection(s->conn->mhd);
}

/* Nobody reads. The handler, who is writing, hears of it when the connection has ended. */
static void give_up(struct http_stream *s)
{
    s->gone = true;
    buf_finish(&s->out);
    s->off = 0;
    shutdown(fd_of(s), SHUT_RDWR); /* libmicrohttpd waits to write, without end */
    resume_stream(s);
}

static ssize_t on_read(void *cls, uint64_t pos, char *to, size_t max)
{
    struct http_stream *s = cls;
    size_t have = s->out.len - s->off;
    if (s->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (have == 0) {
        if (s->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        suspend_stream(s);
        return 0;
    }
    size_t n = have < max ? have : max;
    memcpy(to, s->out.p + s->off, n);
    s->off += n;
    s->taken += n;
    if (s->off == s->out.len) {
        if (s->out.cap > KEEP_BYTES) /* thousands of streams had much to say, once */
            buf_finish(&s->out);
        buf_clear(&s->out);
        s->off = 0;
    }
    if (s->was_full && s->out.len - s->off < HTTP_STREAM_FULL / 4) {
        s->was_full = false;
        wake_owner(s);
    }
    return (ssize_t)n;
}

static void on_response_free(void *cls)
{
    struct http_stream *s = cls;
    stop_watch(s);
    s->conn = NULL;
    s->gone = true;
    if (s->ended)
        stream_free(s);
    else
        wake_owner(s);
}

struct http_stream *http_stream_begin(struct http_req *req, const char *content_type,
                                      void (*on_wake)(void *arg), void *arg)
{
    return http_stream_begin_as(req, &(struct http_answer){.content_type = content_type}, on_wake,
                                arg);
}

struct http_stream *http_stream_begin_as(struct http_req *req, const struct http_answer *a,
                                         void (*on_wake)(void *arg), void *arg)
{
    struct http_stream *s = det_zalloc(sizeof *s);
    s->http = req->conn->http;
    s->conn = req->conn;
    s->gone = s->conn->is_ended;
    s->arg = arg;
    s->next = s->http->streams;
    if (s->next)
        s->next->prev = s;
    s->http->streams = s;
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                               on_read, s, on_response_free);
    if (!r)
        abort(); /* only out of memory */
    MHD_add_response_header(r, "Content-Type",
                            a->content_type ? a->content_type : "application/json");
    if (a->disposition)
        MHD_add_response_header(r, "Content-Disposition", a->disposition);
    http_data_headers(r);
    http_conn_answer(req->conn, 200, r);
    s->on_wake = on_wake; /* not from in here, where the caller does not know s yet */
    return s;
}

void http_stream_write(struct http_stream *s, const void *p, size_t n)
{
    if (s->gone || n == 0)
        return;
    if (s->off > HTTP_STREAM_FULL) {
        buf_consume(&s->out, s->off);
        s->off = 0;
    }
    if (n > HTTP_STREAM_MAX - (s->out.len - s->off)) {
        give_up(s);
        return;
    }
    buf_add(&s->out, p, n);
    if (s->out.len - s->off >= HTTP_STREAM_FULL)
        s->was_full = true;
    resume_stream(s);
}

void http_stream_result(struct http_stream *s, const char *json, size_t len)
{
    if (s->gone)
        return;
    http_stream_write(s, "{\"result\":", 10);
    http_stream_write(s, json, len);
    http_stream_write(s, "}\n", 2);
}

void http_stream_error(struct http_stream *s, int code, const char *text)
{
    int grpc;
    const char *reason;
    int status = http_status_of(code, &grpc, &reason);
    JSON_OWN j = json_object();
    json_t *e = json_object();
    json_set(e, "grpcCode", json_integer(grpc));
    json_set(e, "httpCode", json_integer(status));
    json_set(e, "message", json_lossy(text, strlen(text)));
    json_set(e, "httpStatus", json_string(reason));
    json_set(e, "details", json_array());
    json_set(j, "error", e);
    struct buf b = BUF_INIT;
    json_write(&b, j);
    buf_add_ch(&b, '\n');
    http_stream_write(s, b.p, b.len);
    buf_finish(&b);
}

bool http_stream_is_full(const struct http_stream *s)
{
    return s->out.len - s->off >= HTTP_STREAM_FULL;
}

uint64_t http_stream_taken(const struct http_stream *s)
{
    return s->taken;
}

bool http_stream_is_gone(const struct http_stream *s)
{
    return s->gone || s->http->closing;
}

void http_stream_end(struct http_stream *s)
{
    s->ended = true;
    if (s->conn)
        resume_stream(s);
    else
        stream_free(s);
}

void http_stream_cut(struct http_stream *s)
{
    s->gone = true;
    http_stream_end(s);
}

size_t http_streams_open(const struct http *h)
{
    size_t n = 0;
    for (const struct http_stream *s = h->streams; s; s = s->next)
        n++;
    return n;
}

void http_streams_wake(struct http *h)
{
    struct http_stream *next;
    for (struct http_stream *s = h->streams; s; s = next) {
        next = s->next; /* waking a stream may end it, but no other one */
        wake_owner(s);
    }
}

void http_streams_sweep(struct http *h)
{
    struct http_stream *next;
    for (struct http_stream *s = h->streams; s; s = next) {
        next = s->next;
        if (!s->conn)
            wake_owner(s);
    }
}

bool http_is_ended(const struct http_who *w, const struct http_ended *e)
{
    if (w->kind != WHO_USER)
        return false;
    if (e->by_ms)
        return w->until_ms <= e->by_ms;
    if (e->token_id)
        return w->token_id == e->token_id;
    if (e->session)
        return strcmp(w->session, e->session) == 0;
    return w->user_id == e->user_id && !(e->keep && strcmp(w->session, e->keep) == 0);
}

void http_streams_drop(struct http *h, const struct http_ended *e)
{
    struct http_stream *next;
    for (struct http_stream *s = h->streams; s; s = next) {
        next = s->next; /* waking a stream may end it, but no other one */
        if (!s->conn || !http_is_ended(&s->conn->req.who, e))
            continue;
        s->gone = true;
        resume_stream(s);
        wake_owner(s);
    }
}

void http_streams_abort(struct http *h)
{
    for (struct http_stream *s = h->streams; s; s = s->next) {
        s->gone = true;
        resume_stream(s);
    }
}
