/* Task log lines: inserted in batches; a line with an offset is kept once however often it comes.
 */
#ifndef DB_DB_LOGS_H
#define DB_DB_LOGS_H

#include "db_done.h"
#include <stddef.h>
#include <stdint.h>

struct db;

struct db_log_line {
    const char *task_id;       /* required */
    const char *allocation_id; /* this and the next four: NULL when unknown */
    const char *agent_id, *container_id, *stdtype, *source;
    int64_t rank;    /* -1: none */
    int level;       /* log.v1.LogLevel; 0: none */
    int64_t time_us; /* wall; 0: now */
    const char *log; /* bytes; invalid UTF-8 and NUL are replaced */
    size_t log_len;
    int64_t offset; /* per (allocation, container, rank, stdtype); -1: none, not idempotent */
};
/* Lines are borrowed until return. When cb says 0 they are committed; call hub_notify then. */
void db_logs_write(struct db *db, const struct db_log_line *lines, size_t n, db_done_cb *cb,
                   void *arg);
/* The same as statements of a transaction. */
struct db_tx;
void db_logs_add(struct db_tx *tx, const struct db_log_line *lines, size_t n);
/* Makes the marks (db/functions/logs.sql) that a log of an older release lacks, in the background,
 * a portion at a time. New lines get theirs as they are written. */
void db_logs_mark(struct db *db, const char *task_id);

#endif
