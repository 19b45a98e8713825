/* What db.c and db_reads.c share; not for others. */
#ifndef DB_IMPL_H
#define DB_IMPL_H

#include "db.h"
#include "db_conn.h"
#include "db_group.h"
#include "db_lead.h"

enum { DB_READERS_MAX = 8 };
#define DB_UNREACHABLE "PostgreSQL is not reachable; try again"

struct db_link { /* a connection and its way back up */
    struct db *db;
    struct db_conn conn;
    uv_timer_t timer;
    int backoff_ms;
    bool usable; /* up, and for the writer: leading */
};

struct db {
    uv_loop_t *loop;
    char *conninfo, *read_conninfo;
    PGconn *start; /* the blocking connection until db_start */
    struct db_lead lead;
    bool stalled, told_up; /* PostgreSQL hangs; what on_state was told last */
    struct db_link writer, flusher, readers[DB_READERS_MAX], searcher;
    int readers_n;
    uv_timer_t watch;
    struct db_group group;
    struct deferred *deferred, **deferred_end;
    struct db_read *reads, **reads_end; /* db_reads.c's, as the next two */
    size_t reads_n;
    struct db_kept *kept;
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

/* Sends what waits for a connection: one has come up, or has room again. */
void db_reads_send(struct db *db);
/* Sends what waits for PostgreSQL (db_query_kept), if that can be reached. */
void db_kept_send_all(struct db *db);
/* Fails it, at the end. */
void db_kept_fail(struct db *db);

#endif
