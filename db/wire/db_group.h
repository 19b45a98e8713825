/*
 * Group commit: units gather while a group is in flight, then go out as one implicit transaction
 * (all statements up to one pipeline sync), led by the epoch check; neighbours of one kind as one
 * statement (db_many.h). When it fails, each unit goes
 * out again with a sync of its own, but for one that met the limit of time, which is the same for
 * all: what has its own goes apart. A lone unit's failure is its answer. Only the sync's answer
 * says that something is committed, whatever the statements' answers were, and only the flush after
 * it (db_flush.h) that it will stay. The next group goes out before that. Private to db/.
 */
#ifndef DB_DB_GROUP_H
#define DB_DB_GROUP_H

#include "db_flush.h"

#define DB_GROUP_UNITS_MAX 1024u
#define DB_GROUP_FLUSH_MIN                                                                         \
    3u /* fewer wait for the disk themselves: nothing else would go on                             \
        * meanwhile */
#define DB_GROUP_BYTES_MAX                                                                         \
    ((size_t)256 << 10)                          /* more: PostgreSQL would idle while the next     \
                                                  * gathers */
#define DB_PENDING_BYTES_MAX ((size_t)512 << 20) /* beyond: DET_EUNAVAIL */

struct db_tx {
    struct db *db;
    struct db_tx *next;
    struct db_stmt **stmts;
    size_t n, cap, bytes;
    bool is_quiet;    /* db_tx_quiet() */
    bool validates;   /* db_tx_validates() */
    bool is_apart;    /* db_tx_apart() */
    const char *many; /* the statement for several such units, of one statement each; or NULL */
    db_cb *cb;
    void *arg;
    struct db_result result; /* of the last statement, or of the first that failed */
    size_t answered;         /* statements so far */
    int64_t sent_us;         /* of the first of a group; monotonic */
};
void db_tx_free(struct db_tx *tx);

struct db_group {
    struct db_conn *conn;
    int64_t epoch;
    struct db_tx *head, *tail; /* waiting */
    size_t unanswered;         /* bytes of what was sent and not answered */
    size_t bytes;              /* waiting */
    struct db_tx *flight;      /* in order */
    struct db_flush flush;     /* of those before it */
    struct db_tx *settling;    /* of the flight, alone: the first whose sync did not come yet */
    size_t units, flight_left; /* in flight; retries without an answer */
    bool failed, alone;        /* of the group in flight; alone: each unit has its own sync */
    bool waits;                /* its commit waits for the disk itself: there is little to write */
    struct db_stats stats;
    uint64_t changes;     /* units that were not quiet and are answered */
    uint64_t validations; /* those that were, but validate */
    void (*on_deposed)(void *arg);
    void (*on_idle)(void *arg); /* nothing in flight any more */
    void *arg;
};
/* The rest of g is the caller's to fill. */
void db_group_init(struct db_group *g, struct db_conn *writer, struct db_conn *flusher);
/* Takes tx. */
void db_group_push(struct db_group *g, struct db_tx *tx);
/* Sends what waits, if the connection is up and nothing is in flight. */
void db_group_kick(struct db_group *g);
/* Ends everything that waits with this code. */
void db_group_fail(struct db_group *g, int code, const char *why);

#endif
