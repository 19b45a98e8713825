/* Following logs: shared by the streams of trials and tasks. Private to api/. */
#ifndef API_API_LOGS_H
#define API_API_LOGS_H

#include "db_log_read.h"
#include "http.h"

/* False (answered) when the query is wrong. Strings live in the request. */
bool logs_query(struct http_req *req, struct db_log_filter *f, int64_t *limit, bool *follow);
/* Begins the stream: req is gone. trial_id 0: none. Copies f. */
void logs_stream(struct shell *sh, struct http_req *req, const struct db_log_filter *f,
                 int64_t trial_id, int64_t limit, bool follow);
/* The same for the distinct fields of a task's lines. */
void logs_fields_stream(struct shell *sh, struct http_req *req, const char *task_id,
                        int64_t trial_id, bool of_trial, bool follow);
/* Whether a task may still write: its trial is not finished, or an allocation of it lives. */
bool logs_is_live(struct shell *sh, const char *task_id, int64_t trial_id);
/* What went wrong with a read, for who asked: a search that took too long says so. */
void logs_error(const struct db_result *r, struct det_err *ret);
/* A row of db_log_read() appended as the API shows it: TrialLogsResponse when trial_id > 0, else
 * TaskLogsResponse. */
void log_line_write(struct buf *out, const struct db_result *r, int row, int64_t trial_id);

#endif
