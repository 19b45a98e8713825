/*
 * What retention deletes of trials that ended, in portions. A trial's log lines go so many days
 * after its end: as its experiment says (retention_policy.log_retention_days), else as the master
 * does. So go its reports of batches, their chunks and its profile; validation rows, summaries,
 * best values and how far it came stay. Every statement can be repeated at will.
 */
#ifndef DB_DB_RETENTION_H
#define DB_DB_RETENTION_H

#include "db.h"

/* Below 0: for ever. */
struct db_retention {
    int64_t log_days; /* where the experiment says nothing */
    int64_t metric_days;
};

/* The trials among the next few hundred after trial `beyond` (0: the first) that have something to
 * delete, by id. The first row tells in DUE_NEXT where to go on (null: these were the last), and
 * has no trial when there is none. */
enum db_due_col { DUE_NEXT, DUE_TRIAL, DUE_LOGS, DUE_METRICS };
void db_retention_due(struct db *db, const struct db_retention *keep, int64_t beyond, db_cb *cb,
                      void *arg);

enum db_retention_kind {
    RETENTION_LOGS,
    RETENTION_METRICS,
    RETENTION_CHUNKS,
    RETENTION_PROFILE,
    RETENTION_KINDS
};
struct db_retention_portion {
    enum db_retention_kind kind;
    int64_t trial_id;
    int64_t days; /* what the master says of the kind */
    int64_t rows; /* at most */
};
/* Deletes them if they are due now; db_affected() tells how many. */
void db_retention_delete(struct db *db, const struct db_retention_portion *p, db_cb *cb, void *arg);

/* One row: trials and log lines that are due, then trials and reports. */
enum db_retained_col { COUNT_LOG_TRIALS, COUNT_LOGS, COUNT_METRIC_TRIALS, COUNT_METRICS };
void db_retention_count(struct db *db, const struct db_retention *keep, db_cb *cb, void *arg);

#endif
