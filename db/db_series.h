/* Series of metrics for charts. */
#ifndef DB_DB_SERIES_H
#define DB_DB_SERIES_H

#include "db.h"

/* Columns: trial's place in trial_ids and group's in groups (both from 1), metric's place in the
 * group's names (from 1); then of a single report its value, steps and time (seconds), of a chunk
 * of reports [count, sum, [low, steps, time], [high, steps, time], last] with steps null: a chunk
 * of what is not numbers has no points in it. In this order, then by steps. trial_ids: JSON array;
 * groups: JSON
 * [{"group", "names": [..]}]. */
enum db_series_col {
    SERIES_TRIAL,
    SERIES_GROUP,
    SERIES_NAME,
    SERIES_ITEM,
    SERIES_STEPS,
    SERIES_AT
};
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
