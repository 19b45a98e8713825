/*
 * Answers in the place of handlers that wait for a PostgreSQL that does not answer. What they wait
 * for goes on: a commit in flight may land, and the core's batch is written when PostgreSQL is
 * back. So a write's answer claims neither, and carries no Retry-After, which would invite to do it
 * twice.
 */
#include "http_conn.h"

/* With the time until a hang is noticed (db.h) and that between two sweeps, 13 s in all. */
enum { LATE_MS = 5000 };

void http_is_poll(struct http_req *req)
{
    req->conn->is_poll = true;
}

static void answer_late(struct http_conn *c)
{
    if (c->req.method == HTTP_GET || c->state == CONN_WAITING) /* nothing of it was done */
        http_fail(&c->req, DET_EUNAVAIL, "PostgreSQL does not answer; try again");
    else
        http_fail_unknown(&c->req, "PostgreSQL does not answer: whether this was done is not known "
                                   "until it does; look before asking again");
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
