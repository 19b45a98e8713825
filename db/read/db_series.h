/* Series of metrics for charts. */
#ifndef DB_DB_SERIES_H
#define DB_DB_SERIES_H

#include "db.h"

/* A row for each metric of each group of each trial, in this order. Columns: trial's place in
 * trial_ids, group's in groups and metric's in the group's names (each from 1), then the metric's
 * items as text (proto/charts/series.h). trial_ids: JSON array; groups: JSON [{"group", "names":
 * [..]}]. */
enum db_series_col { SERIES_TRIAL, SERIES_GROUP, SERIES_NAME, SERIES_ITEMS };
struct db_series {
    const char *trial_ids, *groups;
    int64_t from, to; /* steps, both within */
    int64_t buckets;  /* from so many chunks up, chunks will do */
};
void db_series_read(struct db *db, const struct db_series *s, db_cb *cb, void *arg);
/* Trials of a JSON array of ids, in its order. Columns: id, state, then trial.v1.Trial without
 * state as members (db_doc.h). */
enum { SERIES_TRIAL_ID, SERIES_TRIAL_STATE, SERIES_TRIAL_MEMBERS };
void db_series_trials(struct db *db, const char *trial_ids, db_cb *cb, void *arg);

#endif
