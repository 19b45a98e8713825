/* Task logs as the API shows them. */
#ifndef DB_DB_LOG_READ_H
#define DB_DB_LOG_READ_H

#include "db.h"

/* Lists are JSON arrays as text, NULL: no such filter. */
struct db_log_filter {
    const char *task_id;
    int64_t trial_id; /* > 0: lines come as TrialLogsResponse, else as TaskLogsResponse */
    const char *allocation_ids, *agent_ids, *container_ids, *stdtypes, *sources;
    const char *rank_ids;        /* -1: lines without a rank */
    const char *levels;          /* numbers */
    int64_t before_us, after_us; /* 0: none; <= before, > after */
    const char *search;          /* substring, or NULL */
    bool desc;
};
/* At most n lines beyond id (0: from the start), in order. Columns: id, document. */
void db_log_read(struct db *db, const struct db_log_filter *f, int64_t beyond, int64_t n, db_cb *cb,
                 void *arg);
/* One row: TaskLogsFieldsResponse of a task; without_allocations: TrialLogsFieldsResponse. */
void db_log_fields(struct db *db, const char *task_id, bool without_allocations, db_cb *cb,
                   void *arg);

#endif
