/*
 * The HTTP client of programs with a libuv loop: any number of exchanges at once on one loop
 * (libcurl's multi interface). Options, requests and answers are those of client.h; an exchange is
 * one attempt: when to try again is the owner's decision, who has timers.
 *
 * Every exchange ends in exactly one `done`, from the loop and never from within the call that
 * began it; a canceled one ends in none.
 */
#ifndef CLIENT_UV_H
#define CLIENT_UV_H

#include "client.h"
#include <uv.h>

struct client_uv;
struct client_uv_call;

/* What the first client_uv_create() would do once in a process; children of fork() share it. */
void client_uv_warm_up(void);
/* loop is borrowed; token, TLS and timeouts are the options'. */
DET_MUST int client_uv_create(uv_loop_t *loop, const struct client_options *o,
                              struct client_uv **ret, struct det_err *err);
/* The client's own certificate (client_options) of exchanges that begin from now on; copied. */
void client_uv_set_certificate(struct client_uv *u, const char *cert, const char *key);
/* Cancels what is under way; memory goes when the loop has closed the handles. NULL ok. */
void client_uv_close(struct client_uv *u);

/* rc is 0 for a 2xx, else a code, and err says what client_call() would; both are borrowed. The
 * owner may begin and cancel other exchanges here. */
typedef void client_uv_done(void *arg, int rc, const struct client_resp *resp,
                            const struct det_err *err);
/* req is copied. Never NULL. */
struct client_uv_call *client_uv_start(struct client_uv *u, const struct client_req *req,
                                       client_uv_done *done, void *arg);
/* The same for an NDJSON answer. on_line's non-zero result ends it; that is done's rc. silence_ms
 * as in client_stream(). done's rc is 0 when the server ended the stream. */
struct client_uv_call *
client_uv_stream(struct client_uv *u, const struct client_req *req, int64_t silence_ms,
                 int (*on_line)(void *arg, const char *line, size_t len, struct det_err *err),
                 client_uv_done *done, void *arg);
/* No callback comes any more. Also from within on_line. */
void client_uv_cancel(struct client_uv_call *c);

#endif
