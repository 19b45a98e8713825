/* Task logs as the API shows them. */
#ifndef DB_DB_LOG_READ_H
#define DB_DB_LOG_READ_H

#include "db.h"

/* Lists are JSON arrays as text, NULL: no such filter. */
struct db_log_filter {
    const char *task_id;
    int64_t trial_id; /* > 0: the lines were asked for as a trial's */
    const char *allocation_ids, *agent_ids, *container_ids, *stdtypes, *sources;
    const char *rank_ids;        /* -1: lines without a rank */
    const char *levels;          /* numbers */
    int64_t before_us, after_us; /* 0: none; <= before, > after */
    const char *search;          /* substring, or NULL */
    bool is_regex;               /* search is a regular expression of PostgreSQL */
    bool desc;
    int64_t beyond_id; /* where the first page begins, as in db_log_read(); 0: at the end */
};
/* At most n lines beyond id (0: from the start), in order. Time in wall microseconds. A search ends
 * when the next n take longer than 10 s to find: db_timed_out(). */
enum db_log_col {
    LOG_COL_ID,
    LOG_COL_TIME,
    LOG_COL_LEVEL,
    LOG_COL_RANK,
    LOG_COL_TASK,
    LOG_COL_ALLOCATION,
    LOG_COL_AGENT,
    LOG_COL_CONTAINER,
    LOG_COL_STDTYPE,
    LOG_COL_SOURCE,
    LOG_COL_TEXT
};
void db_log_read(struct db *db, const struct db_log_filter *f, int64_t beyond, int64_t n, db_cb *cb,
                 void *arg);
/* Fails with DET_EINVAL when it is no regular expression. */
void db_log_regex_check(struct db *db, const char *regex, db_cb *cb, void *arg);
/* One row: TaskLogsFieldsResponse of a task; without_allocations: TrialLogsFieldsResponse. */
void db_log_fields(struct db *db, const char *task_id, bool without_allocations, db_cb *cb,
                   void *arg);

#endif
