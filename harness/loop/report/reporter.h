/*
 * Reports to the master, asynchronous and in order. reporter_post() puts a call into the spool
 * (client/spool.h) and returns; a thread sends them in order, and again with growing pauses
 * while the master is away, so training never waits for the network. Only reporter_flush() waits,
 * and who posts while the spool is full (spool_bytes_max): until all that is there was sent.
 *
 * What is reported while a request is under way goes with the next one, several metric reports as
 * one (bundle.h); to a master that does not know that, one by one.
 *
 * Answers: what client/report.h makes of them; what tells of a fault goes again ten times. 409:
 * this run is no longer the trial's current one (DET_ESTALE): nothing more is sent, ever. Whatever
 * else is refused is an error that the loop finds at its next boundary.
 */
#ifndef REPORTER_H
#define REPORTER_H

#include "loop.h"

struct reporter_options {
    struct loop_http http;
    const char *spool_path;   /* NULL: in memory */
    uint64_t spool_bytes_max; /* 0: SPOOL_BYTES_MAX */
    int64_t run_id;
};

struct reporter;
DET_MUST int reporter_open(const struct reporter_options *o, struct reporter **ret,
                           struct det_err *err);
/* Gives the thread linger_ms to send what is left; then the calls in flight are ended (http.cancel:
 * no other call may follow) and the rest stays in the spool. NULL ok. */
void reporter_close(struct reporter *r, int linger_ms);

/* A POST, of any thread; `body` is taken. DET_EIO (full disk), DET_ETOOBIG; or why reporting has
 * ended. */
DET_MUST int reporter_post(struct reporter *r, const char *path, json_t *body, struct det_err *err);
/* The same with JSON text, borrowed; NULL: no body. */
DET_MUST int reporter_post_text(struct reporter *r, const char *path, const char *text,
                                struct det_err *err);
/* 0 while all is well; DET_ESTALE or what the master refused. Cheap: one atomic load. */
DET_MUST int reporter_failed(struct reporter *r, struct det_err *err);
/* Waits until everything posted so far has arrived. */
DET_MUST int reporter_flush(struct reporter *r, struct det_err *err);

/* One call that the loop itself waits for: again until there is an answer that is not "try again".
 * *ret_status; the body in *out (may be NULL). DET_ESTALE on 409. */
DET_MUST int reporter_call(struct reporter *r, const char *method, const char *path,
                           const char *body, int *ret_status, struct buf *out, struct det_err *err);
/* One try, no longer than timeout_ms: for what the loop can do without. */
DET_MUST int reporter_try(struct reporter *r, const char *path, int timeout_ms, int *ret_status,
                          struct buf *out, struct det_err *err);

#endif
