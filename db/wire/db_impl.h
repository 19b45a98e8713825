/* What db.c and db_reads.c share; not for others. */
#ifndef DB_IMPL_H
#define DB_IMPL_H

#include "db.h"
#include "db_conn.h"
#include "db_group.h"
#include "db_lead.h"
#include "db_recent.h"
#include "db_reported.h"

enum { DB_READERS_MAX = 8, DB_SEARCHERS = 2, DB_CHARTS = 2 };
#define DB_UNREACHABLE "PostgreSQL is not reachable; try again"

struct db_link { /* a connection and its way back up */
    struct db *db;
    struct db_conn conn;
    uv_timer_t timer;
    int backoff_ms;
    bool usable; /* up, and for the writer: leading */
};

/* Reads that share connections, and wait for them in one line (db_reads.c). */
struct db_lane {
    struct db *db;
    struct db_link *links;
    int links_n;
    size_t ops_max, waiting_max; /* of one connection at a time: a read and its sync each are one */
    struct db_read *waiting, **end, *flying;
    size_t n; /* that wait */
    struct db_recents recent;
};

struct db {
    uv_loop_t *loop;
    char *conninfo, *read_conninfo;
    PGconn *start; /* the blocking connection until db_start */
    struct db_lead lead;
    bool stalled, told_up; /* PostgreSQL hangs; what on_state was told last */
    struct db_link writer, flusher, readers[DB_READERS_MAX], searchers[DB_SEARCHERS],
        charts[DB_CHARTS];
    int readers_n;
    uv_timer_t watch;
    struct db_group group;
    struct deferred *deferred, **deferred_end;
    struct db_lane reads, searches, drawings;
    struct db_kept *kept; /* db_reads.c's */
    struct db_reported reported;
    uv_timer_t kick; /* 0 ms: runs in the next iteration, after everything of this one gathered */
    struct db_options o;
    bool closing, is_started;
    int handles; /* open timers */
    void (*on_closed)(void *arg);
    void *closed_arg;
};

/* Answers in the next iteration of the loop: nobody is answered from within his own call. cb: NULL
 * ok. */
void db_fail_later(struct db *db, db_cb *cb, void *arg, int code, const char *text);
/* The same with a recent answer. */
void db_recent_later(struct db *db, struct db_recent *r, db_cb *cb, void *arg);
void db_run_deferred(struct db *db); /* all such answers, now; and the next group */
void db_kick(struct db *db);         /* the same in the next iteration */
void db_kick_group(struct db *db);   /* the next group alone, where it can be sent */

void db_reads_init(struct db *db);
/* Sends what waits for a connection: one has come up, or has room again. */
void db_reads_send(struct db *db);
/* Lets go of answers that are not recent any more, or of all. */
void db_reads_forget(struct db *db, bool all);
/* Sends what waits for PostgreSQL (db_query_kept), if that can be reached. */
void db_kept_send_all(struct db *db);
/* Fails it, at the end. */
void db_kept_fail(struct db *db);

#endif
