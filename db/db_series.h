/* Series of metrics for charts. */
#ifndef DB_DB_SERIES_H
#define DB_DB_SERIES_H

#include "db.h"

/* Columns: trial's place in trial_ids and group's in groups (both from 1), metric's place in the
 * group's names (from 1), low and high point as text; high null: a single report. In this order,
 * then by steps. trial_ids: JSON array; groups: JSON [{"group", "names": [..]}]. */
enum db_series_col { SERIES_TRIAL, SERIES_GROUP, SERIES_NAME, SERIES_LOW, SERIES_HIGH };
struct db_series {
    const char *trial_ids, *groups;
    int64_t from, to; /* steps, both within */
    int64_t buckets;  /* from so many chunks up, chunks will do */
};
void db_series_read(struct db *db, const struct db_series *s, db_cb *cb, void *arg);
/* Trials of a JSON array of ids, in its order. Columns: id, state, trial.v1.Trial without state. */
void db_series_trials(struct db *db, const char *trial_ids, db_cb *cb, void *arg);

#endif
