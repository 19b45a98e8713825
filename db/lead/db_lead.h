/*
 * The leadership, on a session of its own: stands by, takes the lead, then shows signs of life
 * (lead.h says by which rules). Private to db/.
 *
 * Its session does nothing else, so neither a long write nor a lock that somebody holds makes a
 * living leader look silent, and an unanswered beat means that PostgreSQL itself hangs.
 */
#ifndef DB_DB_LEAD_H
#define DB_DB_LEAD_H

#include "db_conn.h"
#include "lead.h"
#include "lead_probe.h"

/* Every session of a leader begins with it: it shares the lock that says "a leader lives". */
#define LEAD_JOIN "SELECT pg_advisory_lock_shared(4919001), (SELECT epoch FROM cluster)"
enum { LEAD_JOIN_EPOCH = 1 }; /* its column */

struct db_lead {
    struct db_conn conn;
    uv_timer_t timer; /* the next look, beat or dial */
    const char *url;  /* borrowed: ours, for others to see */
    int64_t epoch;    /* 0: standing by */
    struct lead_watch watch;
    struct lead_probe probe; /* of the leader's address */
    char leader_url[256];
    int backoff_ms, unanswered; /* beats due since one was answered */
    bool is_asking, is_closing, is_refused;
    struct det_err err;                                 /* is_refused: why the first dial failed */
    void (*on_wait)(void *arg, const char *leader_url); /* may be NULL; whenever the leader
                                                         * changes */
    int (*on_authority)(void *arg);                     /* as db_options; wait_arg too */
    char authority_at[64]; /* when the one was made that it has taken, as text */
    void *wait_arg;
    void (*on_stalled)(void *arg, bool is_stalled); /* leading: beats stay unanswered, or are
                                                     * again */
    void (*on_deposed)(void *arg);
    void *arg;
    const char *conninfo;
};

/* The caller has filled url, conninfo, arg and the callbacks. */
void db_lead_begin(struct db_lead *l, uv_loop_t *loop);
/* Closes the session; the timer is the caller's to close. */
void db_lead_end(struct db_lead *l);

#endif
