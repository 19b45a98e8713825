/* What happened to trials, row by row: only ever added to. */
#ifndef DB_DB_TIMELINE_H
#define DB_DB_TIMELINE_H

#include "db.h"
#include "rows.h"

/* One statement for all of them; a row that is there already is passed over. n > 0. */
void db_save_timeline(struct db_tx *tx, const struct row_timeline *rows, size_t n);

/* The rows of a trial, at most 10,000 of them, by time; one whose kind is null when there are none
 * yet, no row when there is no such trial. */
enum { LINE_TIME, LINE_AT, LINE_RUN, LINE_NODE, LINE_KIND, LINE_DURATION, LINE_DETAIL };
void db_timeline_read(struct db *db, int64_t trial_id, db_cb *cb, void *arg);

#endif
