/*
 * Answers in the place of handlers that wait for a PostgreSQL that does not answer, or whose
 * callers are let in no more. What they wait for goes on: a commit in flight may land, and the
 * core's batch is written when PostgreSQL is back. So a write's answer claims neither, and carries
 * no Retry-After, which would invite to do it twice.
 */
#include "http_conn.h"

/* With the time until a hang is noticed (db.h) and that between two sweeps, 13 s in all. */
enum { LATE_MS = 5000 };

/* Its handler, which waits on, answers for nobody. */
static void answer_ended(struct http_conn *c)
{
    c->forcing = true;
    http_fail(&c->req, DET_EAUTH, "this session or token has ended");
    c->forcing = false;
    c->forced = true;
}

void http_is_poll(struct http_req *req)
{
    struct http_conn *c = req->conn;
    c->is_poll = true;
    if (c->is_ended && c->state == CONN_PENDING)
        answer_ended(c);
}

void http_drop(struct http *h, const struct http_ended *e)
{
    http_streams_drop(h, e);
    for (struct http_conn *c = h->conns; c; c = c->next) {
        if (c->state != CONN_PENDING || !http_is_ended(&c->req.who, e))
            continue;
        c->is_ended = true;
        if (c->is_poll)
            answer_ended(c);
    }
}

static void answer_late(struct http_conn *c)
{
    c->forcing = true;
    if (c->req.method == HTTP_GET || c->state == CONN_WAITING) /* nothing of it was done */
        http_fail(&c->req, DET_EUNAVAIL, "PostgreSQL does not answer; try again");
    else
        http_fail_unknown(&c->req, "PostgreSQL does not answer: whether this was done is not known "
                                   "until it does; look before asking again");
    c->forcing = false;
    c->forced = true;
}

void http_answer_late(struct http *h)
{
    uint64_t now = uv_now(h->loop);
    for (struct http_conn *c = h->conns; c; c = c->next)
        if ((c->state == CONN_PENDING || c->state == CONN_WAITING) && !c->is_poll &&
            now - c->begun_ms >= LATE_MS)
            answer_late(c);
}

/* ---- answers that wait until what they tell is on disk ---- */

void http_hold(struct http_req *req, http_answer_fn *on_kept, void *arg)
{
    struct http_conn *c = req->conn;
    c->is_held = true;
    c->on_kept = on_kept;
    c->on_kept_arg = arg;
}

bool http_conn_keep(struct http_conn *c, int status, struct MHD_Response *r)
{
    if (!c->is_held || c->forcing)
        return false;
    c->kept = r;
    c->kept_status = status;
    c->on_kept(&c->req, c->on_kept_arg, status);
    return true;
}

void http_release(struct http_req *req)
{
    struct http_conn *c = req->conn;
    struct MHD_Response *kept = c->kept;
    c->is_held = false;
    c->kept = NULL;
    if (kept)
        http_conn_answer(c, c->kept_status, kept);
}

void http_release_unknown(struct http_req *req, const char *text)
{
    struct http_conn *c = req->conn;
    c->is_held = false;
    MHD_destroy_response(c->kept);
    c->kept = NULL;
    http_fail_unknown(req, text);
}
