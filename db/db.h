/*
 * The connection pool: libpq, non-blocking and pipelined, on the caller's libuv loop.
 *
 * Two kinds of work:
 *  - db_query(): a read, on the one of a few read connections that has the most room; while none
 *    has any it waits for the first that has.
 *  - db_write() and db_tx_*: writes; everything of one loop iteration, or gathered while a commit
 *    was in flight, goes out as ONE transaction (group commit), answered when it is on disk
 *    (db_flush.h). When that transaction fails, each unit is tried again in a transaction of its
 *    own, so a bad row fails only its own report. Every writing transaction checks the leader's
 *    epoch first: a master that was replaced writes nothing.
 *
 * Invariants: a callback runs exactly once, from the loop, never from inside the call that took it.
 * A write's callback with rc 0 means durably committed. While PostgreSQL is away every unit ends at
 * once with DET_EUNAVAIL and the pool reconnects by itself (50 ms to 2 s apart). So it is while
 * PostgreSQL hangs: noticed within 3 s by the leader's beat, which nothing else can hold up
 * (db_lead.h); reads that were sent before then end with DET_EUNAVAIL, writes stay in flight. After
 * a connection is lost in mid-commit the outcome is unknown, so units must be safe to repeat, or
 * numbered (db_cluster.h: db_begin_batch). SQL text is constant; what a user sends travels as
 * arguments only. Thread: the loop's.
 */
#ifndef DB_DB_H
#define DB_DB_H

#include "det/err.h"
#include "hist.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define DB_ARGS_MAX 32

struct db_arg {
    const char *p; /* NULL: SQL null */
    int len;
    int format;   /* 0 text, 1 binary */
    char num[40]; /* storage of printed numbers and times */
};
/* Arguments $1..$n. Strings and bytes are borrowed until the db_* call that uses them returns. */
struct db_args {
    struct db_arg v[DB_ARGS_MAX];
    int n;
};
#define DB_ARGS (&(struct db_args){0})
/* Each appends one argument and returns a, so that calls chain. */
struct db_args *db_str_arg(struct db_args *a, const char *s);               /* NULL: SQL null */
struct db_args *db_text_arg(struct db_args *a, const char *p, size_t len);  /* p[len] must be NUL */
struct db_args *db_bytes_arg(struct db_args *a, const void *p, size_t len); /* bytea */
struct db_args *db_i64_arg(struct db_args *a, int64_t v);
struct db_args *db_f64_arg(struct db_args *a, double v);
struct db_args *db_bool_arg(struct db_args *a, bool v);
struct db_args *db_null_arg(struct db_args *a);
/* Wall microseconds as timestamptz text; 0 becomes null. */
struct db_args *db_time_arg(struct db_args *a, int64_t wall_us);

/* What a statement gave; lives until the callback returns. */
struct db_result;
int db_rc(const struct db_result *r);                      /* 0 or DET_E* */
const struct det_err *db_error(const struct db_result *r); /* never NULL; text empty when rc is 0 */
/* The beginning of the statement that failed, for a log: who asked is not shown it. Or "". */
const char *db_statement(const struct db_result *r);
const char *db_sqlstate(const struct db_result *r); /* "23505"; "" unless the server said so */
/* What of an SQLSTATE somebody here decides by. */
enum db_state {
    DB_STATE_OTHER,      /* none of these; all went well, or no server said anything */
    DB_STATE_DEPOSED,    /* another one leads */
    DB_STATE_DONE,       /* a batch that is committed already */
    DB_STATE_TAKEN,      /* what must be there once is there */
    DB_STATE_MISSING,    /* what is named is not there */
    DB_STATE_NO_ROWS,    /* a function found nothing to do it to */
    DB_STATE_LOCKED,     /* somebody holds a lock, or waits in a circle */
    DB_STATE_OVERTIME,   /* the statement took longer than it may */
    DB_STATE_UNPREPARED, /* a prepared statement is gone, or does not fit any more */
};
enum db_state db_state(const struct db_result *r);
const char *db_words(const struct db_result *r); /* its own, without the statement; or "" */
bool db_timed_out(const struct db_result *r);    /* the statement took longer than it may */
/* Nobody could be asked, or at a bad moment: the same may go through later. A statement that took
 * too long would do so again. */
bool db_is_away(const struct db_result *r);
int db_rows(const struct db_result *r);         /* rows returned */
int64_t db_affected(const struct db_result *r); /* rows written */
/* Whose fault a failure is, as far as its SQLSTATE tells. */
enum db_blame {
    DB_BLAME_NOBODY, /* it is none */
    DB_BLAME_SERVER, /* not reached, ending, full, read-only, or somebody has a lock: whatever is
                      * asked */
    DB_BLAME_LEADER, /* another one leads */
    DB_BLAME_SCHEMA, /* a table, column or function is not as this version lays it */
    DB_BLAME_DATA,   /* however often it is asked, the database will never take it */
    DB_BLAME_MOMENT, /* the time limit: as a rule it passes */
    DB_BLAME_STRAIN, /* memory, or reading and writing of a disk: mostly the server's, but one row
                      * may need too much of it, or lie where the disk is bad */
    DB_BLAME_UNKNOWN /* the data's, or nobody's */
};
enum db_blame db_blame(const struct db_result *r);
/* Of a unit: which statement this is the result of, from 0; of a failure, which failed. SIZE_MAX:
 * none of them. */
size_t db_stmt_index(const struct db_result *r);
bool db_is_null(const struct db_result *r, int row, int col);
const char *db_text(const struct db_result *r, int row, int col); /* "" for null; borrowed */
size_t db_text_len(const struct db_result *r, int row, int col);
int64_t db_i64(const struct db_result *r, int row, int col); /* 0 for null */
double db_f64(const struct db_result *r, int row, int col);
bool db_bool(const struct db_result *r, int row, int col);
/* A bytea column (text format "\x..") appended to out, decoded. */
struct buf;
struct shared_buf;
DET_MUST int db_bytes(const struct db_result *r, int row, int col, struct buf *out,
                      struct det_err *err);

/* What a reader made of a read's result, for those who asked the same and get the same result after
 * him: empty at first. NULL: of no read. It may follow from nothing but the statement, its
 * arguments and the result. Borrowed; who owns it too may answer with it later. */
struct shared_buf *db_made(const struct db_result *r);

typedef void db_cb(void *arg, const struct db_result *r);

struct db_options {
    const char *conninfo;                 /* libpq's, or a URI; copied */
    int readers;                          /* read connections; 0: 2 */
    bool always_anew;                     /* db_query_list() and _chart(): no recent answers */
    const char *url;                      /* where this master serves, for others to see;
                                           * borrowed */
    void (*on_state)(void *arg, bool up); /* the write connection came up or went away */
    void (*on_deposed)(void *arg);        /* another master leads: write nothing, exit */
    int (*on_authority)(void *arg);       /* standing by: the table authority has another one than
                                           * at the last look, or this was the first; may be NULL.
                                           * <0: it is called again at the next look */
    void *arg;
};
struct db; /* the pool */

/* Blocking, before the loop runs: applies the migrations under a lock. A database of a newer
 * program is refused (DET_ESTATE). */
DET_MUST int db_migrate(const char *conninfo, struct det_err *err);
/* Called with db_options.arg when another master is seen to lead, and when that changes. */
typedef void db_wait_cb(void *arg, const char *leader_url);
/* Returns when this master leads, with a raised epoch; until then the loop runs in here, and
 * on_wait (may be NULL) tells who leads. By which rules a leader is replaced: lead.h. DET_EUNAVAIL
 * when PostgreSQL cannot be reached in the first place. Until db_start() only db_query_now() may be
 * called. */
DET_MUST int db_create(uv_loop_t *loop, const struct db_options *o, db_wait_cb *on_wait,
                       struct db **ret, struct det_err *err);
/* Ends the blocking part: the connections join the loop. */
DET_MUST int db_start(struct db *db, struct det_err *err);
/* Ends what is queued with DET_ECANCELED, closes the connections and calls on_closed from the loop.
 */
void db_close(struct db *db, void (*on_closed)(void *arg), void *arg);
int64_t db_epoch(const struct db *db);
bool db_is_up(const struct db *db);
struct db_stats {
    uint64_t commits, commits_failed; /* transactions of groups, and those that had to be split */
    uint64_t units;                   /* units of work in them */
    struct hist commit;               /* from sending a group to its answer */
    size_t waiting_bytes;             /* gathered, not yet sent */
};
void db_stats(const struct db *db, struct db_stats *ret);

/* A read. */
void db_query(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg);
/* A read that may take long, as a search for what a user made up: on connections of their own, so
 * that no other read waits for it, and ended after 10 s: db_timed_out(). */
void db_query_search(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                     void *arg);
/* A search whose answer may be a recent one: many look at the same list. None is given after a
 * write was acknowledged since, but those of db_tx_quiet(): what they wrote may be missing for ten
 * times as long as it takes to look it up, and for two seconds at most. */
#define DB_RECENT_TIMES 10
#define DB_RECENT_MS    2000
void db_query_list(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                   void *arg);
/* What of db_tx_quiet() an answer rests on, beside all that is written otherwise. */
enum db_rests {
    DB_RESTS_REPORTS,     /* all of it, or the time of day */
    DB_RESTS_VALIDATIONS, /* what db_tx_validates() */
    DB_RESTS_STATE        /* none of it */
};
/* A read of many reports, as of a large experiment's chart: apart from the other reads too, and
 * ended after 10 s; but its statement is one of ours, and planned once. The answer may be recent as
 * that of db_query_list(). */
void db_query_chart(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                    void *arg);
/* The three of an answer that misses nothing: it is given again, also where db_options.always_anew,
 * until something that it rests on was acknowledged, and for DB_RECENT_MS at most. Where it rests
 * on reports they are the three. Equal questions rest on the same. */
void db_query_lasting(struct db *db, enum db_rests on, const char *sql, const struct db_args *args,
                      db_cb *cb, void *arg);
void db_query_list_lasting(struct db *db, enum db_rests on, const char *sql,
                           const struct db_args *args, db_cb *cb, void *arg);
void db_query_chart_lasting(struct db *db, enum db_rests on, const char *sql,
                            const struct db_args *args, db_cb *cb, void *arg);
/* A read, by $1 = id, that tells what a request has done already: it waits until PostgreSQL is back
 * instead of failing, since its failure would say that nothing was done. */
void db_query_kept(struct db *db, const char *sql, int64_t id, db_cb *cb, void *arg);
/* A unit of one statement, in the group commit. */
void db_write(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg);
/* A unit of several statements: all or none; the callback sees the LAST statement's result. A unit
 * that must hold a fence begins with "SELECT fence_trial($1, $2)" (trial, run): DET_ESTALE
 * otherwise. */
struct db_tx;
struct db_tx *db_tx_begin(struct db *db);
void db_tx_add(struct db_tx *tx, const char *sql, const struct db_args *args);
/* tx is one statement. sql does the same for several such units, each of whose arguments comes as
 * text[], one element a unit, and answers with one row a unit, in order. */
void db_tx_many(struct db_tx *tx, const char *sql);
/* What it writes comes all the time, a trial's reports or log lines, and may be missing from lists
 * and charts for a moment (db_query_list()). */
void db_tx_quiet(struct db_tx *tx);
/* It is quiet, but may change what a trial's validations say. */
void db_tx_validates(struct db_tx *tx);
/* Whether a report of a trial's run at these steps leaves validations as they are (db_reported.h);
 * and that one is kept. */
bool db_has_reported(const struct db *db, int64_t trial, int64_t run, int64_t steps);
void db_note_reported(struct db *db, int64_t trial, int64_t run, int64_t steps);
/* db_write() of such a one. */
void db_write_quiet(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                    void *arg);
/* It shares its transaction with no other unit: what it sets for the transaction is its own. */
void db_tx_apart(struct db_tx *tx);
size_t db_tx_size(const struct db_tx *tx);                 /* statements so far */
void db_tx_commit(struct db_tx *tx, db_cb *cb, void *arg); /* takes tx */
/* A transaction that writes nothing, but fails when another master leads. */
void db_tx_fence(struct db_tx *tx);
/* Blocking statement of the start, before db_start(): cb (may be NULL) sees the result at once. */
DET_MUST int db_query_now(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                          void *arg, struct det_err *err);

#endif
