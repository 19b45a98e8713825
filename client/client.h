/*
 * The one HTTP client (libcurl): blocking calls, for the harness, the CLI and det-task. For
 * programs with a loop there is client_uv.h, which shares the options, requests and responses of
 * this header.
 *
 * A client keeps its connection alive between calls and serves one thread at a time: threads that
 * call at the same moment need a client each (they are cheap); only client_cancel() may come from
 * another thread. Nothing here logs.
 *
 * What is tried again: a connection that cannot be made or breaks before an answer, and the
 * statuses 502, 503 and 504 (Retry-After is honoured), with a growing pause and jitter, until
 * `retries` or `retry_ms` is used up. A 4xx never is. A request that is sent again may have arrived
 * before, so whatever is sent must be idempotent or say `once`.
 *
 * Statuses become codes: 400 DET_EINVAL (of reason FailedPrecondition DET_ESTATE), 401 DET_EAUTH,
 * 403 DET_EPERM, 404 DET_ENOENT, 408 and 504 DET_ETIMEOUT, 409 DET_ESTALE (of reason AlreadyExists
 * DET_EEXIST), 413 DET_ETOOBIG, 429, 502, 503 and no connection DET_EUNAVAIL, 501 DET_EUNIMPL,
 * other 4xx DET_EINVAL, other 5xx DET_EIO. The text is the server's own where it gave one.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "buf.h"
#include "det/err.h"
#include "json.h"
#include "mem.h"
#include <stdbool.h>
#include <stdint.h>

#define CLIENT_BODY_MAX ((size_t)128 << 20) /* a larger answer is DET_ETOOBIG: see answer_max */
#define CLIENT_LINE_MAX ((size_t)16 << 20)  /* a longer NDJSON line is DET_ETOOBIG */

struct sockaddr;
enum client_token {
    CLIENT_TOKEN_NONE,
    CLIENT_TOKEN_USER,       /* Authorization: Bearer T */
    CLIENT_TOKEN_ALLOCATION, /* Grpc-Metadata-x-allocation-token: Bearer T */
    CLIENT_TOKEN_AGENT       /* Authorization: Bearer T */
};

/* All strings are copied; zero means the default. */
struct client_options {
    /* "http://host:port", "https://...", "host:port", "host" (port 8080); several masters, of which
     * one leads: "http://a:8080,http://b:8080", asked in turn until one serves. */
    const char *url;
    enum client_token token_kind;
    const char *token; /* NULL: none; see client_set_token() */
    const char *
        ca_file; /* PEM of the master's certificate or its CA; "noverify": no check; NULL: system */
    const char *authority;  /* PEM: the only authority that counts, whatever ca_file and the
                             * system say; NULL: none */
    const char *cert_name;  /* name expected in the certificate when it is not the URL's host */
    const char *cert, *key; /* PEM: the client's own certificate and its key; NULL: none */
    const char *pin;        /* "sha256//base64" of the server's public key; NULL: none */
    const char *user_agent; /* NULL: "det/VERSION" */
    /* NULL, or whether an address may be dialled, whatever name it was given for; no proxy is asked
     * then, which would dial what it likes. dial_arg is borrowed. */
    bool (*may_dial)(const void *dial_arg, const struct sockaddr *a);
    const void *dial_arg;
    int64_t connect_timeout_ms; /* 0: 5,000 */
    int64_t timeout_ms;         /* of one attempt, answer included; 0: 60,000 */
    int retries;                /* attempts after the first; 0: 5; < 0: see retry_ms alone */
    int64_t retry_ms;           /* no attempt begins later than this after the call; 0: no limit */
};

/* Everything is borrowed for the call. */
struct client_req {
    const char *method;         /* NULL: "POST" when there is a body, else "GET" */
    const char *path;           /* "/api/v1/me"; already escaped */
    const char *query;          /* "a=1&b=2", already escaped; NULL: none */
    const char *const *headers; /* "Name: value" each, ends in NULL; NULL: none */
    const void *body;           /* NULL: none */
    size_t body_len;            /* 0 with a body: its strlen */
    const char *content_type;   /* NULL: application/json */
    int64_t timeout_ms;         /* of one attempt; 0: the client's */
    size_t answer_max;          /* 0: CLIENT_BODY_MAX */
    bool once;                  /* never send it twice */
    /* client_stream() alone: a 2xx came, the lines may be long in coming; with on_line's arg. NULL:
     * nobody asks. */
    void (*on_open)(void *arg);
};

/* CLIENT_RESP_INIT before the first use; the buffers are cleared by each call and may be used
 * again. */
struct client_resp {
    int status; /* 0: no answer came to its end, nor to answer_max */
    struct buf body;
};
#define CLIENT_RESP_INIT                                                                           \
    {                                                                                              \
        0                                                                                          \
    }
void client_resp_finish(struct client_resp *r);

struct client;
/* Makes no connection yet. DET_EINVAL: a wrong URL. */
DET_MUST int client_create(const struct client_options *o, struct client **ret,
                           struct det_err *err);
void client_destroy(struct client *c); /* NULL ok */
DET_DEFINE_CLEANUP(struct client *, client_destroy)
/* Ends the call in progress, and every later one, with DET_ECANCELED. From any thread. */
void client_cancel(struct client *c);
void client_set_token(struct client *c, enum client_token kind, const char *token); /* copied */
/* The (first) URL in its full form, "http://host:port", no slash at the end; borrowed. */
const char *client_url(const struct client *c);

/* 0 only for a 2xx. On failure *err names the method, the path and what the server said;
 * resp->status and resp->body are the answer's in both cases. resp may be NULL. */
DET_MUST int client_call(struct client *c, const struct client_req *req, struct client_resp *resp,
                         struct det_err *err);
/* The same with JSON: in (borrowed, NULL: no body), *ret_out (new reference; may be NULL). method
 * NULL as in client_req. An answer that is not JSON is DET_ECORRUPT. */
DET_MUST int client_json(struct client *c, const char *method, const char *path, const json_t *in,
                         json_t **ret_out, struct det_err *err);

/*
 * A GET (or req->method) whose answer is NDJSON without an end. on_line gets each line without its
 * newline, NUL-terminated, borrowed until it returns; non-zero ends the stream and is returned.
 * Returns 0 when the server ended the stream, DET_ETIMEOUT when no byte came for silence_ms (0: no
 * watchdog), DET_EUNAVAIL when it broke; it is not dialled again: the caller knows where to go on.
 * An answer other than 2xx fails as in client_call().
 */
DET_MUST int client_stream(struct client *c, const struct client_req *req, int64_t silence_ms,
                           int (*on_line)(void *arg, const char *line, size_t len,
                                          struct det_err *err),
                           void *arg, struct det_err *err);

/* The certificates that the master sends, as PEM, its own first: nobody has looked at them yet. No
 * request is made, nothing is told to whoever answers there. */
DET_MUST int client_peer_chain(const struct client *c, struct buf *out, struct det_err *err);

/* The certificates that came with the last call's connection, as client_peer_chain() has them, but
 * checked as the options say. Of a client with an authority, whose last call made a connection;
 * else nothing is appended. */
void client_shown_chain(const struct client *c, struct buf *out);

/* The addresses in url (as in client_options) in their full form, "http://host:port" each, commas
 * between; caller frees. NULL with *err: DET_EINVAL. */
char *client_full_url(const char *url, struct det_err *err);
/* The masters that the environment names: DET_MASTERS (all of them), else DET_MASTER; or NULL. */
const char *client_env_url(void);
/* The code of a status as the head of this file says, with the text of the body into *err; 0 for
 * 2xx. */
DET_MUST int client_status(int status, const char *body, size_t len, struct det_err *err);

#endif
