#include "http_conn.h"
#include "json.h"
#include "mem.h"

#include <stdio.h>
#include <string.h>

int http_status_of(int code, int *ret_grpc, const char **ret_reason)
{
    static const struct {
        int code, status, grpc;
        const char *reason;
    } table[] = {
        {DET_EINVAL, 400, 3, "InvalidArgument"},    {DET_EINVALIDHP, 400, 3, "InvalidArgument"},
        {DET_ENOENT, 404, 5, "NotFound"},           {DET_EEXIST, 409, 6, "AlreadyExists"},
        {DET_EPERM, 403, 7, "PermissionDenied"},    {DET_EAUTH, 401, 16, "Unauthenticated"},
        {DET_ESTATE, 400, 9, "FailedPrecondition"}, {DET_ESTALE, 409, 10, "Aborted"},
        {DET_ETIMEOUT, 504, 4, "DeadlineExceeded"}, {DET_EUNAVAIL, 503, 14, "Unavailable"},
        {DET_EUNIMPL, 501, 12, "Unimplemented"},    {DET_ETOOBIG, 413, 8, "ResourceExhausted"},
        {DET_ECANCELED, 503, 14, "Unavailable"},    {DET_ECORRUPT, 500, 15, "DataLoss"},
    };
    int status = 500, grpc = 13;
    const char *reason = "Internal";
    for (size_t i = 0; i < DET_ARRAY_LEN(table); i++) {
        if (table[i].code != code)
            continue;
        status = table[i].status;
        grpc = table[i].grpc;
        reason = table[i].reason;
    }
    if (ret_grpc)
        *ret_grpc = grpc;
    if (ret_reason)
        *ret_reason = reason;
    return status;
}

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
    if (value)
        MHD_add_response_header(r, name, value);
}

void http_data_headers(struct MHD_Response *r)
{
    add_header(r, "X-Content-Type-Options", "nosniff");
    add_header(r, "Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'");
}

static void queue_reply(struct http_req *req, const struct http_answer *a, struct MHD_Response *r)
{
    if (!r)
        abort(); /* only out of memory */
    add_header(r, "Content-Type", a->content_type ? a->content_type : "application/json");
    add_header(r, "Content-Disposition", a->disposition);
    add_header(r, "Set-Cookie", a->cookie);
    if (a->retry_after_s) {
        char text[16];
        snprintf(text, sizeof text, "%d", a->retry_after_s);
        add_header(r, "Retry-After", text);
    }
    if (!a->headers)
        http_data_headers(r);
    for (const char *const *p = a->headers; p && *p; p += 2)
        add_header(r, p[0], p[1]);
    http_conn_answer(req->conn, a->status ? a->status : 200, r);
}

void http_reply_with(struct http_req *req, const struct http_answer *a, const void *p, size_t n)
{
    void *from = (void *)(n ? p : "");
    queue_reply(req, a, MHD_create_response_from_buffer(n, from, MHD_RESPMEM_MUST_COPY));
}

static void on_sent(void *arg)
{
    shared_buf_unref(arg);
}

void http_reply_shared(struct http_req *req, const struct http_answer *a, struct shared_buf *body)
{
    if (body->b.len == 0) {
        http_reply_with(req, a, NULL, 0);
        return;
    }
    queue_reply(req, a,
                MHD_create_response_from_buffer_with_free_callback_cls(
                    body->b.len, body->b.p, on_sent, shared_buf_ref(body)));
}

/* ?pretty: people with curl. Text that is not JSON stays as it is. */
static bool make_pretty(struct http_req *req, struct buf *json)
{
    if (!http_query(req, "pretty"))
        return false;
    JSON_OWN j = json_parse(buf_str(json), json->len, NULL);
    if (!j)
        return false;
    buf_clear(json);
    json_write_pretty(json, j);
    buf_add_ch(json, '\n');
    return true;
}

void http_reply_buf(struct http_req *req, int status, struct buf *json)
{
    make_pretty(req, json);
    size_t n = json->len;
    buf_str(json);
    buf_add(json, "", 0);
    queue_reply(req, &(struct http_answer){.status = status},
                MHD_create_response_from_buffer(n, buf_steal(json), MHD_RESPMEM_MUST_FREE));
}

void http_reply_made(struct http_req *req, struct shared_buf *json)
{
    if (!http_query(req, "pretty")) {
        http_reply_shared(req, &(struct http_answer){0}, json);
        return;
    }
    struct buf own = BUF_INIT;
    buf_add(&own, json->b.p, json->b.len);
    http_reply_buf(req, 200, &own);
    buf_finish(&own);
}

void http_reply(struct http_req *req, int status, const char *json)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, json);
    http_reply_buf(req, status, &b);
}

static void fail_body(const struct http_req *req, int code, const char *text, struct buf *out)
{
    int grpc;
    const char *reason;
    http_status_of(code, &grpc, &reason);
    JSON_OWN j = json_object();
    if (req->conn->api) {
        json_t *e = json_object();
        json_set(e, "code", json_integer(grpc));
        json_set(e, "reason", json_string(reason));
        json_set(e, "error", json_lossy(text, strlen(text)));
        json_set(j, "error", e);
    } else {
        json_set(j, "message", json_lossy(text, strlen(text)));
    }
    json_write(out, j);
}

static void fail_text(struct http_req *req, int status, int code, const char *text,
                      int retry_after_s)
{
    struct buf b = BUF_INIT;
    fail_body(req, code, text, &b);
    struct http_answer a = {.status = status, .retry_after_s = retry_after_s};
    http_reply_with(req, &a, b.p, b.len);
    buf_finish(&b);
}

void http_fail_err(struct http_req *req, const struct det_err *err)
{
    int code = err->code ? err->code : DET_EIO;
    int status = http_status_of(code, NULL, NULL);
    fail_text(req, status, code, err->text, status == 503 ? 1 : 0);
}

void http_fail_upgrade(struct http_req *req, const char *text)
{
    fail_text(req, 426, DET_EUNIMPL, text, 0);
}

void http_fail_coding(struct http_req *req, const char *text)
{
    fail_text(req, 415, DET_EINVAL, text, 0);
}

void http_fail_later(struct http_req *req, int seconds, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "%s; try again in %d s", why, seconds);
    fail_text(req, 429, DET_ETOOBIG, text, seconds);
}

void http_fail_unknown(struct http_req *req, const char *text)
{
    fail_text(req, 503, DET_EUNAVAIL, text, 0);
}

void http_fail(struct http_req *req, int code, const char *fmt, ...)
{
    struct det_err err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err.text, sizeof err.text, fmt, ap);
    va_end(ap);
    err.code = code;
    http_fail_err(req, &err);
}
