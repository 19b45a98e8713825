/* One HTTP request between libmicrohttpd and a handler. Private to http*.c. */
#ifndef SHELL_HTTP_CONN_H
#define SHELL_HTTP_CONN_H

#include "http.h"
#include "http_drain.h"
#include "http_peer.h"
#include "http_route.h"
#include "http_stats.h"
#include <microhttpd.h>

/* Of a request's line and headers, as head_bytes() counts them. */
#define HTTP_HEAD_MAX (5 << 10)

enum http_conn_state {
    CONN_READING,  /* headers seen, body coming */
    CONN_ASKING,   /* auth_check() runs inside the access callback, before the body */
    CONN_WAITING,  /* suspended until it is known who sends the body */
    CONN_PENDING,  /* suspended; the handler owns the answer */
    CONN_INLINE,   /* the handler runs inside the access callback */
    CONN_ANSWERED, /* response is set: to be queued */
    CONN_QUEUED,   /* handed to libmicrohttpd */
};

struct http_chunk { /* of http_mem */
    struct http_chunk *next;
    _Alignas(16) char data[];
};
struct http_pair {
    char *key, *value;
};

struct http_conn {
    struct http *http;
    struct MHD_Connection *mhd;
    struct http_peer *peer;
    struct http_conn *prev, *next; /* of http->conns */
    enum http_conn_state state;
    char *uri;  /* raw, with the query */
    char *path; /* decoded, for people */
    struct http_match match;
    struct http_pair *query;
    size_t query_n, body_max;
    bool query_parsed, started, api;
    bool resumed;      /* after CONN_WAITING: libmicrohttpd shows the headers once more */
    bool forced;       /* answered in the handler's place; the handler has yet to answer */
    bool forcing;      /* just now */
    bool is_told;      /* that its cookies are too long: it is never begun */
    bool is_held;      /* the handler's answer is kept until http_release() */
    bool is_poll;      /* waits for something else than the database */
    bool is_ended;     /* its caller's right has ended: it becomes neither poll nor stream */
    uint64_t begun_ms; /* handed to its handler: the loop's time */
    char *early;       /* why it was refused before the body was read; NULL: it was not */
    int early_code, early_status;
    struct http_drained drained; /* if it is refused: its body */
    struct MHD_Response *response;
    int status;
    struct http_chunk *chunks;
    http_answer_fn *on_answer; /* NULL: nobody asks */
    void *on_answer_arg;
    http_answer_fn *on_kept;
    void *on_kept_arg;
    struct MHD_Response *kept; /* the handler's answer while it is held */
    int kept_status;
    void (*let_go)(struct shell *sh, void *kept); /* of req.kept */
    struct http_req req;
};

struct http {
    uv_loop_t *loop;
    struct shell *sh;
    struct MHD_Daemon *daemon;
    uint16_t port;
    struct http_router router;
    bool is_tls;
    char *web_hosts;
    bool (*covers)(const char *path); /* whether what has no route is rest's */
    const struct http_route *rest;    /* or NULL */
    uv_poll_t poll;                   /* libmicrohttpd's epoll descriptor */
    uv_timer_t timer;                 /* its next timeout, or 0 ms after a resume */
    struct http_conn *conns;
    struct http_peers peers;
    size_t peers_most; /* since memory was last given back */
    struct http_drain drain;
    uv_timer_t sweep;
    size_t pending;    /* requests in handlers' hands, or waiting to be identified */
    size_t body_bytes; /* of all requests' bodies */
    size_t orphans;    /* connections that have ended, but whose handlers have yet to answer */
    struct http_stream *streams;
    struct http_stats stats;
    bool closing, kicked;
    char *leader; /* standing by for it; NULL: serving */
    uint64_t close_deadline_ms;
    int handles;
    void (*on_closed)(void *arg);
    void *closed_arg;
};

/* True: so its client was told, 431, and the connection is to be ended. */
bool http_head_is_too_long(struct http_conn *c);
/* libmicrohttpd found no room for somebody's cookies, and is about to hang up: they are told. */
void http_head_cookies(struct http *h);
/* What is answered is data, not a page: a browser that is led to it shows nothing that runs. */
void http_data_headers(struct MHD_Response *r);
/* Runs libmicrohttpd in the next loop iteration: in external mode a resume wakes nobody. */
void http_kick(struct http *h);
/* Hands the answer over: queued now or when libmicrohttpd calls again. Takes r. */
void http_conn_answer(struct http_conn *c, int status, struct MHD_Response *r);
/* Whether the handler's answer is kept for later: then it took r. */
bool http_conn_keep(struct http_conn *c, int status, struct MHD_Response *r);
/* When the last handle has closed, the last orphan is answered and the last stream has ended, whose
 * handlers may outlive the server's end. */
void http_free_when_over(struct http *h);
/* Wakes every stream because the server stops. */
void http_streams_wake(struct http *h);
/* Cuts every stream off: libmicrohttpd must not be stopped with a suspended connection. */
void http_streams_abort(struct http *h);
bool http_is_ended(const struct http_who *w, const struct http_ended *e);
void http_streams_drop(struct http *h, const struct http_ended *e); /* of http_drop() */
/* Wakes those whose request was answered in the handler's place before they began. */
void http_streams_sweep(struct http *h);
/* PostgreSQL is away, hangs or holds up the core: answers the requests that wait for it
 * (http_late.c). */
void http_answer_late(struct http *h);
/* 503 without Retry-After: it may be done, or yet be done. */
void http_fail_unknown(struct http_req *req, const char *text);
/* Percent-decodes s in place ('+' too when query); a bad escape stays as it is. */
void http_unescape(char *s, bool query);

#endif
