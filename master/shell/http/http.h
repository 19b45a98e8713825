/*
 * The HTTP server: libmicrohttpd driven by the libuv loop, one const route table.
 *
 * A request is matched (literal segments before variables, trailing slash stripped), its body read
 * whole (bounded by the route), its caller identified, then handed to the route's handler. The
 * handler answers now or later, exactly once: http_reply*(), http_fail*(), or a stream. The request
 * lives until then, also when its client has gone (the answer is then dropped), so a handler never
 * races its client. Connections are kept alive. Every error has the API's shape
 * {"error":{"code":5,"reason":"NotFound","error":"..."}}; on non-API paths {"message":"..."}.
 *
 * Thread: the loop's. All strings handed out are borrowed and live as long as the request.
 *
 * The files of this folder:
 *   authority.c: the cluster's own certificate authority
 *   browser.c: what other pages may not send
 *   guard.c: how often somebody may be wrong
 *   http.c: listening, connections, requests
 *   http_drain.c: bodies of refused requests
 *   http_head.c: heads that are too long
 *   http_late.c: answers in the place of handlers that wait too long
 *   http_peer.c: how long a connection may keep the server waiting
 *   http_query.c: what a handler reads of its request
 *   http_reply.c: answers and errors
 *   http_route.c: the table of routes
 *   http_stats.c: counts for /metrics
 *   http_stream.c: streamed answers
 *   http_tls.c: the certificate that is shown
 */
#ifndef SHELL_HTTP_H
#define SHELL_HTTP_H

#include "authority.h"
#include "buf.h"
#include "det/err.h"
#include "shared_buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum http_method { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_METHOD_COUNT };

/* Who may call a route: any bit that fits. 0 = everybody, no token looked at. */
#define HTTP_AUTH_NONE  0u
#define HTTP_AUTH_USER  1u /* a user's session */
#define HTTP_AUTH_ALLOC 2u /* a task's allocation token */
#define HTTP_AUTH_AGENT 4u /* an agent's certificate, or the agents' token */
#define HTTP_AUTH_ADMIN 8u /* a user who is an administrator */
#define HTTP_AUTH_ANY   (HTTP_AUTH_USER | HTTP_AUTH_ALLOC)

enum http_who_kind { WHO_NOBODY, WHO_USER, WHO_ALLOC, WHO_AGENT };
/* The caller. For an allocation, user_id is its owner. */
struct http_who {
    enum http_who_kind kind;
    int64_t user_id;
    char username[128];
    bool is_admin;
    uint64_t roles;    /* WHO_USER: in the whole cluster; a set of bits 1 << id (rights.h) */
    int64_t token_id;  /* WHO_USER: of an access token; 0: it is a session's */
    char session[65];  /* WHO_USER: sha256 hex of the token: the key of the session */
    int64_t until_ms;  /* WHO_USER: when that ends by itself, clk_mono_ms() */
    char alloc_id[96]; /* WHO_ALLOC: what the token is bound to, also below */
    char task_id[80];
    int64_t experiment_id, trial_id, run_id;
    char agent_id[65]; /* WHO_AGENT: whom its certificate is for; "" of the agents' token */
};

struct shell; /* shell.h: the daemon's parts */
struct http_req;
typedef void http_handler(struct shell *sh, struct http_req *req);

#define HTTP_BODY_STRANGERS ((size_t)4 << 10) /* of a route for everybody */
#define HTTP_BODY_DEFAULT   ((size_t)1 << 20)
#define HTTP_BODY_MAX       ((size_t)96 << 20)
struct http_route {
    enum http_method method;
    const char *pattern; /* "/api/v1/trials/{trialId}/logs"; one segment a variable */
    unsigned auth;       /* HTTP_AUTH_* bits */
    http_handler *fn;
    size_t body_max; /* bytes; 0: HTTP_BODY_DEFAULT or _STRANGERS. Longer: 413, code 8 */
};

struct http_req {
    enum http_method method;
    const char *path; /* without the query, percent-decoded, no trailing slash */
    const struct http_route *route;
    struct http_who who;
    struct buf body; /* whole; NUL follows */
    void *kept;      /* http_keep() */
    /* the rest is private to http.c */
    struct http_conn *conn;
    struct shell *sh;
};

/* Path variable by its name in the pattern, percent-decoded; never NULL for a name of the pattern.
 */
const char *http_param(const struct http_req *req, const char *name);
/* The same as an integer; DET_EINVAL names it. */
DET_MUST int http_param_i64(const struct http_req *req, const char *name, int64_t *ret,
                            struct det_err *err);
/* First value of a query parameter, or NULL; camelCase also finds its snake_case form. */
const char *http_query(const struct http_req *req, const char *name);
/* All values of a repeated one, in order: at most max; returns how many were stored. */
size_t http_query_all(const struct http_req *req, const char *name, const char **ret, size_t max);
/* DET_EINVAL names the parameter. Absent or empty: fallback. */
DET_MUST int http_query_i64(const struct http_req *req, const char *name, int64_t fallback,
                            int64_t *ret, struct det_err *err);
DET_MUST int http_query_bool(const struct http_req *req, const char *name, bool fallback, bool *ret,
                             struct det_err *err);
const char *http_header(const struct http_req *req, const char *name); /* NULL if absent */
/* The client's, without its port; of IPv6 its network (64 bits), since a host has all of that. */
#define HTTP_ADDRESS_MAX 64
const char *http_address(const struct http_req *req, char out[HTTP_ADDRESS_MAX]);
/* The certificate that its client has shown, and proved to hold the key of: sha256, hex. What it is
 * worth is the caller's matter. NULL: none. */
const char *http_certificate(const struct http_req *req, char out[65]);
/* Cleared memory that is freed with the request: a handler's own state. */
void *http_mem(struct http_req *req, size_t bytes);
char *http_strdup(struct http_req *req, const char *s);

/* req->kept = p; let_go(sh, p) runs when the request ends. Once. */
void http_keep(struct http_req *req, void *p, void (*let_go)(struct shell *sh, void *p));

/* A long poll: what it waits for is not the database, so it outlives an outage. Every other request
 * that waits for PostgreSQL in vain is answered in its handler's place within 15 s: 503, which of a
 * write says that the outcome is not known. */
void http_is_poll(struct http_req *req);

/* fn runs once, when the request is answered, whoever does it: with what status. */
typedef void http_answer_fn(struct http_req *req, void *arg, int status);
void http_on_answer(struct http_req *req, http_answer_fn *fn, void *arg);

/* The handler's answer, once it is given, is kept until http_release(): what it tells is not on
 * disk yet. on_kept runs when it is given, with its status. Until the release, which comes exactly
 * once, before or after the answer, the request lives. */
void http_hold(struct http_req *req, http_answer_fn *on_kept, void *arg);
void http_release(struct http_req *req);
/* Of one whose answer is kept: a 503 takes its place, which claims neither. */
void http_release_unknown(struct http_req *req, const char *text);

/* Answers. status 200 unless the contract says otherwise; json is copied. */
void http_reply(struct http_req *req, int status, const char *json);
void http_reply_buf(struct http_req *req, int status, struct buf *json); /* takes json's bytes */
/* The API's error for a DET_E* code (http_status_of below). */
void http_fail(struct http_req *req, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void http_fail_err(struct http_req *req, const struct det_err *err); /* err->code, err->text */
/* 429: not before so many seconds have passed; the answer says when. */
void http_fail_later(struct http_req *req, int seconds, const char *why);
void http_fail_upgrade(struct http_req *req, const char *text); /* 426: another protocol */
void http_fail_coding(struct http_req *req, const char *text);  /* 415: a body that is packed */
struct http_answer {
    int status;
    const char *content_type;   /* NULL: application/json */
    const char *disposition;    /* Content-Disposition, or NULL */
    const char *cookie;         /* Set-Cookie, or NULL */
    int retry_after_s;          /* 0: no Retry-After */
    const char *const *headers; /* name, value, ..., NULL; NULL: those of data (http_conn.h) */
};
void http_reply_with(struct http_req *req, const struct http_answer *a, const void *p, size_t n);
/* The same without a copy: the answer owns body, too. Nobody changes it any more. */
void http_reply_shared(struct http_req *req, const struct http_answer *a, struct shared_buf *body);
void http_reply_made(struct http_req *req, struct shared_buf *json); /* as http_reply_buf() */
/* DET_E* -> HTTP status and gRPC code of the contract's table. */
int http_status_of(int code, int *ret_grpc, const char **ret_reason);

/*
 * A streamed answer. The handler owns the stream from http_stream_begin (which answers the request
 * with 200 and chunked encoding: req is gone) until http_stream_end, also when the client is gone:
 * writing then does nothing. on_wake(arg) runs when the client went away, when the server is
 * stopping, and when the bytes waiting fell below a quarter of HTTP_STREAM_FULL after having been
 * full. Who writes on into a full one all the same is bounded: with more than HTTP_STREAM_MAX
 * waiting, the client is taken for gone.
 */
#define HTTP_STREAM_FULL ((size_t)256 << 10)
#define HTTP_STREAM_MAX  ((size_t)64 << 20)
struct http_stream;
struct http_stream *http_stream_begin(struct http_req *req,
                                      const char *content_type, /* NULL: JSON */
                                      void (*on_wake)(void *arg), void *arg);
/* The same with the answer's type and disposition. */
struct http_stream *http_stream_begin_as(struct http_req *req, const struct http_answer *a,
                                         void (*on_wake)(void *arg), void *arg);
void http_stream_write(struct http_stream *s, const void *p, size_t n); /* copied; never blocks */
/* One message line {"result":<json>}. */
void http_stream_result(struct http_stream *s, const char *json, size_t len);
/* The error line of a stream. */
void http_stream_error(struct http_stream *s, int code, const char *text);
bool http_stream_is_full(const struct http_stream *s); /* stop producing until on_wake */
bool http_stream_is_gone(const struct http_stream *s);
uint64_t http_stream_taken(const struct http_stream *s); /* bytes that its connection has taken */
void http_stream_end(struct http_stream *s); /* sends what waits, then ends; s is gone */
/* Ends it so that its client sees that something is missing; s is gone. */
void http_stream_cut(struct http_stream *s);

/* Whose right to listen has ended. */
struct http_ended {
    int64_t user_id;     /* of all sessions of this user, */
    const char *keep;    /* but this one (a sha256; or NULL); or */
    const char *session; /* this one (a sha256; or NULL); or */
    int64_t token_id;    /* of this access token; 0: none; or */
    int64_t by_ms;       /* of all whose time is over by then (until_ms); 0: none */
};
/* Cuts their streams off, also those that are about to begin, and answers their long polls 401:
 * what was asked before ends too. */
struct http;
void http_drop(struct http *h, const struct http_ended *e);

/* The server. */
struct http_options {
    const char *host;             /* "127.0.0.1", "0.0.0.0", "::1" */
    uint16_t port;                /* 0: any free one */
    const struct pem_pair *tls;   /* empty: plain HTTP */
    const char *client_authority; /* PEM: clients may show its certificates; or NULL */
    struct shell *sh;
    const char *web_hosts; /* browser.h: names, copied */
};
DET_MUST int http_create(uv_loop_t *loop, const struct http_options *o, struct http **ret,
                         struct det_err *err);
/* Adds a const table (api.h: api_routes, api_routes_n; agents.h: agents_routes); DET_EINVAL when a
 * pattern is malformed or twice there. Before the loop runs. */
DET_MUST int http_add_routes(struct http *h, const struct http_route *table, size_t n,
                             struct det_err *err);
/* GETs that no pattern fits and covers() takes go to this route, which is a browser's page. */
void http_add_rest(struct http *h, bool (*covers)(const char *path),
                   const struct http_route *route);
bool http_is_tls(const struct http *h);
/* Another one (borrowed) from the next handshake on; connections that there are stay. DET_EINVAL:
 * it is none, and nothing changes. */
DET_MUST int http_set_certificate(struct http *h, const struct pem_pair *tls, struct det_err *err);
uint16_t http_port(const struct http *h);
/* Another master leads (NULL: none does any more, serve): every request is answered 503 with its
 * address; GET /healthz alone is 200. */
void http_stand_by(struct http *h, const char *leader_url);
struct http_stats; /* http_stats.h */
const struct http_stats *http_stats(const struct http *h);
size_t http_streams_open(const struct http *h);
size_t http_requests_open(const struct http *h); /* in handlers' hands, long polls too */
/* Stops accepting, wakes streams, answers waiting requests 503, then calls on_closed from the loop.
 */
void http_close(struct http *h, void (*on_closed)(void *arg), void *arg);

#endif
